#include "common/conf/conf_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"

enum { FILE_BYTES_MAX = 1 << 20 };

/* Reads up to max bytes of fd and adds a NUL; text has room for max + 1 bytes. */
static int read_text(int fd, char *text, size_t max, size_t *len)
{
	for (*len = 0; *len <= max;) {
		ssize_t n = read(fd, text + *len, max + 1 - *len);

		if (n == 0) {
			text[*len] = '\0';
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			*len += (size_t)n;
	}
	return -EFBIG;
}

/* ---- scanning -------------------------------------------------------------------------------- */

/* Returns the end of the string that begins at p. */
static const char *skip_string(const char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : p;
}

static const char *skip_comment(const char *p)
{
	const char *end;

	if (p[0] == '/' && p[1] == '*') {
		end = strstr(p + 2, "*/");
		return end ? end + 2 : p + strlen(p);
	}
	return p + strcspn(p, "\n");
}

static bool is_comment(const char *p)
{
	return *p == '#' || (*p == '/' && (p[1] == '/' || p[1] == '*'));
}

static const char *word_end(const char *p)
{
	while (isalnum((unsigned char)*p) || *p == '_' || *p == '-' || *p == '*' || *p == '.')
		p++;
	return p;
}

/* Whether libconfig would cut this integer: it has no L and does not fit into 32 bits. Hexadecimal
 * integers are unsigned. */
static bool is_cut_integer(const char *word, const char *end)
{
	const char *digits = *word == '-' ? word + 1 : word;
	bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	unsigned long long n;
	char *stop;

	if (!isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	n = strtoull(digits, &stop, hex ? 16 : 10);
	return stop == end && (errno == ERANGE || n > (hex ? UINT_MAX : INT_MAX));
}

static int line_of(const char *text, const char *at)
{
	int line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

static int check_text(const char *path, const char *text, char *why, size_t whylen)
{
	const char *p = text;

	while (*p) {
		const char *end = word_end(p);

		if (is_cut_integer(p, end)) {
			snprintf(why, whylen, "%s:%d: %.*s: too large; write %.*sL", path,
				line_of(text, p), (int)(end - p), p, (int)(end - p), p);
			return -EINVAL;
		}
		if (*p == '@') {
			snprintf(why, whylen, "%s:%d: @include is not supported", path,
				line_of(text, p));
			return -EINVAL;
		}
		if (end > p)
			p = end;
		else if (*p == '"')
			p = skip_string(p);
		else
			p = is_comment(p) ? skip_comment(p) : p + 1;
	}
	return 0;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int conf_text_load_file(const char *path, char **out)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	autofree char *text = NULL;
	size_t len;
	int err;

	if (fd < 0)
		return -errno;
	text = malloc(FILE_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	err = read_text(fd, text, FILE_BYTES_MAX, &len);
	if (err)
		return err;
	if (strlen(text) != len)
		return -EINVAL;
	*out = steal_ptr(&text);
	return 0;
}

int conf_text_load(const char *path, char **out, char *why, size_t whylen)
{
	autofree char *text = NULL;
	int err;

	err = conf_text_load_file(path, &text);
	if (!text) {
		snprintf(why, whylen, "configuration file %s: %s", path,
			err == -EINVAL ? "not a text file" : errno_text(err));
		return err;
	}
	err = check_text(path, text, why, whylen);
	if (!err)
		*out = steal_ptr(&text);
	return err;
}
