#include "common/base/printable.h"

#include <string.h>

/* How many bytes the character has that begins with this byte; 0: it begins none. */
static unsigned length_from(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Whether UTF-8 encodes this code point in so many bytes: in the shortest form, neither a UTF-16
 * surrogate nor beyond the last code point. */
static bool is_valid(uint32_t code, unsigned len)
{
	static const uint32_t first[] = {0, 0, 0x80, 0x800, 0x10000};

	return code >= first[len] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

struct printable_char printable_char(const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	const struct printable_char invalid = {.code = bytes[0], .len = 1, .bad = true};
	unsigned n = length_from(bytes[0]);
	uint32_t code = n > 1 ? bytes[0] & (0x7fU >> n) : bytes[0];

	if (!n || n > len)
		return invalid;
	for (unsigned i = 1; i < n; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return invalid;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	if (!is_valid(code, n))
		return invalid;
	return (struct printable_char){.code = code, .len = (uint8_t)n, .bad = is_control(code)};
}

/* to may equal text, since writing is never ahead of reading. Returns how many bytes were
 * written. */
static size_t clean(char *to, size_t room, const char *text, size_t len)
{
	size_t n = 0;

	for (size_t at = 0; at < len;) {
		struct printable_char c = printable_char(text + at, len - at);
		size_t more = c.bad ? 1 : c.len;

		if (more > room - n)
			break;
		if (c.bad)
			to[n] = '?';
		else
			memmove(to + n, text + at, more);
		n += more;
		at += c.len;
	}
	return n;
}

size_t printable_clean(char *text, size_t len)
{
	return clean(text, len, text, len);
}

char *printable_clean_string(char *text)
{
	text[printable_clean(text, strlen(text))] = '\0';
	return text;
}

void printable_copy(char *buf, size_t size, const char *text, size_t len)
{
	buf[clean(buf, size - 1, text, len)] = '\0';
}
