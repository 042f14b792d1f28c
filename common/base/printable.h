/* printable.h - texts that others have chosen, made safe to show.
 *
 * Names of clients and files, error texts and all else that comes from a peer may hold anything. A
 * terminal acts upon control characters, and characters that turn the direction of writing make a
 * line read differently from what it says. Each of these becomes one '?':
 *
 *     U+0000 to U+001F, U+007F         controls, newline and tab among them
 *     U+0080 to U+009F                 controls, too: U+009B is what ESC [ is
 *     U+202A to U+202E, U+2066 to U+2069  the direction of writing
 *     a byte that is not part of valid UTF-8, such as one of a character that was cut
 *
 * All else stays as it is. A text is cleaned where it comes in, and again where it is printed.
 * Names of files keep their bytes: only what is printed of them is cleaned.
 *
 * THREADS    Any. Nothing depends on the locale.
 */
#ifndef RMEMFS_COMMON_BASE_PRINTABLE_H
#define RMEMFS_COMMON_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character that a text of `len` bytes, more than 0, begins with: its bytes, 1 to 4, and its
 * code point. A byte that is not part of valid UTF-8 is alone, and bad. */
struct printable_char {
	uint32_t code;
	uint8_t len;
	bool bad; /* is not to be shown */
};
struct printable_char printable_char(const char *text, size_t len);

/* In place. Returns how long the text is now: never longer than it was. */
size_t printable_clean(char *text, size_t len);
/* The same for a text that ends with its NUL. Returns text. */
char *printable_clean_string(char *text);
/* Into a buffer of `size` bytes, more than 0, with a NUL behind it: as many whole characters as
 * there is room for. */
void printable_copy(char *buf, size_t size, const char *text, size_t len);

#endif
