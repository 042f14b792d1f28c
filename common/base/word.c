#include "common/base/word.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"

/* Nobody mistypes a longer word by one slip. */
enum { GUESS_BYTES_MAX = 32, QUOTED_MAX = 64 };

bool word_find(const struct word *words, const char *text, int *value)
{
	for (; words->text; words++) {
		if (strcmp(words->text, text) == 0) {
			*value = words->value;
			return true;
		}
	}
	return false;
}

void word_list(const struct word *words, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (const struct word *w = words; w->text && at < len; w++) {
		const char *separator = w == words ? "" : w[1].text ? ", " : " or ";

		at += (size_t)snprintf(buf + at, len - at, "%s%s", separator, w->text);
	}
}

const char *word_quote(const char *text, char *buf)
{
	size_t len = strlen(text);
	bool cut = len > QUOTED_MAX;
	int n = snprintf(buf, WORD_QUOTED_BYTES, "'%.*s%s'", QUOTED_MAX, text, cut ? "..." : "");

	for (int i = 0; i < n; i++)
		if (iscntrl((unsigned char)buf[i]))
			buf[i] = '?';
	return buf;
}

/* How many characters one must insert, delete, replace or swap with their neighbour to make one
 * word of the other (optimal string alignment, three rows of its table). */
static size_t edit_distance(const char *a, const char *b)
{
	size_t alen = strlen(a), blen = strlen(b);
	uint8_t rows[3][GUESS_BYTES_MAX + 1];

	for (size_t j = 0; j <= blen; j++)
		rows[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= alen; i++) {
		uint8_t *now = rows[i % 3], *above = rows[(i - 1) % 3];
		const uint8_t *swapped = rows[(i + 1) % 3];

		now[0] = (uint8_t)i;
		for (size_t j = 1; j <= blen; j++) {
			uint64_t least = min_u64(now[j - 1] + 1u, above[j] + 1u);

			least = min_u64(least, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				least = min_u64(least, swapped[j - 2] + 1u);
			now[j] = (uint8_t)least;
		}
	}
	return rows[alen % 3][blen];
}

void word_guess_offer(struct word_guess *guess, const char *known)
{
	size_t len = strlen(guess->unknown), distance;

	if (len > GUESS_BYTES_MAX || strlen(known) > GUESS_BYTES_MAX)
		return;
	distance = edit_distance(guess->unknown, known);
	/* One slip in three characters; a greater distance means another word. */
	if (distance > len / 3 || (guess->nearest && distance >= guess->distance))
		return;
	guess->nearest = known;
	guess->distance = distance;
}
