/* word.h - the words that users write, and what they may have meant by one that is none of them.
 *
 * ERRORS     As each function says; nothing is allocated.
 */
#ifndef RMEMFS_COMMON_BASE_WORD_H
#define RMEMFS_COMMON_BASE_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* A table of words ends with a NULL text. */
struct word {
	const char *text;
	int value;
};

/* Whether text is one of words; *value is its value then. */
bool word_find(const struct word *words, const char *text, int *value);
/* "auto, verbs, tcp or shm". */
void word_list(const struct word *words, char *buf, size_t len);

/* "'text'" for a message: cut after 64 bytes, and without what would end the line or steer a
 * terminal. buf has WORD_QUOTED_BYTES. */
enum { WORD_QUOTED_BYTES = 80 };
const char *word_quote(const char *text, char *buf);

/* Of several known words the one nearest to an unknown one. Start with the unknown one alone, offer
 * all that are known; nearest stays NULL when none of them is near. */
struct word_guess {
	const char *unknown, *nearest;
	size_t distance;
};
void word_guess_offer(struct word_guess *guess, const char *known);

#endif
