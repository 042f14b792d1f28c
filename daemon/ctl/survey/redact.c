#include "daemon/ctl/survey/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define KEY_BEGINS "RMEMFS-KEY-"

/* The secret and its check are 48 characters. */
enum { SECRET_CHARS = 40 };

static void cover(char *text, size_t len)
{
	memset(text, 'x', len);
}

static void redact_keys(char *text, size_t len)
{
	char *at = text, *end = text + len;

	while ((at = memmem(at, (size_t)(end - at), KEY_BEGINS, strlen(KEY_BEGINS)))) {
		char *newline;

		at += strlen(KEY_BEGINS);
		newline = memchr(at, '\n', (size_t)(end - at));
		cover(at, (size_t)((newline ? newline : end) - at));
		at = newline ? newline : end;
	}
}

static bool is_base64(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '/';
}

/* Of 48 random characters of base64 fewer than this are capitals, or small letters, once in five
 * million times. Most paths and hashes have no capitals. One of 3,500 keys has no digit. */
enum { LETTERS_MIN = 4 };

static bool looks_random(const char *word, size_t len)
{
	unsigned upper = 0, lower = 0;

	for (size_t i = 0; i < len; i++) {
		upper += isupper((unsigned char)word[i]) != 0;
		lower += islower((unsigned char)word[i]) != 0;
	}
	return upper >= LETTERS_MIN && lower >= LETTERS_MIN;
}

static void redact_words(char *text, size_t len)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		n = 0;
		while (at + n < len && is_base64(text[at + n]))
			n++;
		if (n >= SECRET_CHARS && looks_random(text + at, n))
			cover(text + at, n);
	}
}

void redact_text(char *text, size_t len)
{
	redact_keys(text, len);
	redact_words(text, len);
}
