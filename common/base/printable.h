/* printable.h - makes texts that others have chosen safe to show.
 *
 * Anything that comes from a peer may hold any bytes: names of clients and files, error texts and
 * all else. A terminal acts upon control characters. Characters that change the direction of
 * writing make a line read differently from what it says. Each of these becomes one '?':
 *
 *     U+0000 to U+001F, U+007F         controls, newline and tab among them
 *     U+0080 to U+009F                 controls, too: U+009B means the same as ESC [
 *     U+202A to U+202E, U+2066 to U+2069  the direction of writing
 *     a byte that is not part of valid UTF-8, such as one of a character that was cut
 *
 * All else stays as it is. A text is cleaned where it is received, and again where it is printed.
 * File names keep their bytes: only the printed copy is cleaned.
 *
 * THREADS    Any. Nothing depends on the locale.
 */
#ifndef RMEMFS_COMMON_BASE_PRINTABLE_H
#define RMEMFS_COMMON_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first character of a text of `len` bytes, more than 0: its code point, and its length of 1 to
 * 4 bytes. A byte that is not part of valid UTF-8 counts as one bad character. */
struct printable_char {
	uint32_t code;
	uint8_t len;
	bool bad; /* must not be shown */
};
struct printable_char printable_char(const char *text, size_t len);

/* Cleans in place and returns the new length, which is never more than the old one. */
size_t printable_clean(char *text, size_t len);
/* The same for a NUL-terminated text. Returns text. */
char *printable_clean_string(char *text);
/* Copies into a buffer of `size` bytes, more than 0, and adds a NUL. Copies as many whole
 * characters as fit. */
void printable_copy(char *buf, size_t size, const char *text, size_t len);

#endif
