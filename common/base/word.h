/* word.h - tables of the words that users write, and a guess at the word they meant.
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

/* Whether words has text; if so, *value is its value. */
bool word_find(const struct word *words, const char *text, int *value);
/* "auto, verbs, tcp or shm". */
void word_list(const struct word *words, char *buf, size_t len);

/* "'text'" for a message. It is cut after 64 bytes, and control characters become '?', so that it
 * can't end the line or steer a terminal. buf has WORD_QUOTED_BYTES. */
enum { WORD_QUOTED_BYTES = 80 };
const char *word_quote(const char *text, char *buf);

/* Finds the known word nearest to an unknown one. Start with unknown set and offer every known
 * word; nearest stays NULL if none of them is near. */
struct word_guess {
	const char *unknown, *nearest;
	size_t distance;
};
void word_guess_offer(struct word_guess *guess, const char *known);

#endif
