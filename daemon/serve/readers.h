/* readers.h - how many of a mount's I/O threads read /dev/fuse: threads 0 .. n - 1.
 *
 * A program that does one thing after the other is served fastest by one thread, whose caches are
 * warm and which never wakes on the program's own CPU; large transfers and many programs want more
 * of them. Which load it is can't be seen from the requests, so it is tried: when the readers find
 * one request after the other without having to wait, one more reads for a moment, and stays if
 * more was done in it; and now and then one fewer does, and it stays so if as much was.
 *
 * Who does not read serves what it has read before, and looks after each tick in which nobody has
 * read anything, so that a reader that stands still holds nobody up for long.
 *
 * THREADS    readers_review() and readers_review_due() are thread 0's, all else is anybody's.
 *            Nothing waits.
 */
#ifndef RMEMFS_DAEMON_SERVE_READERS_H
#define RMEMFS_DAEMON_SERVE_READERS_H

#include <stdbool.h>
#include <stdint.h>

struct readers {
	unsigned max;
	unsigned n;       /* atomic: 1 .. max */
	int64_t short_at; /* atomic: when readers_stand_in() was last called */

	/* NONE: no period has begun. */
	enum { READERS_NONE, READERS_STEADY, READERS_TRY_MORE, READERS_TRY_FEWER } phase;
	int64_t since;                  /* when this period began; and then: */
	uint64_t served, behind;        /* the totals */
	double rate;                    /* requests a ms of the period before the one that tries */
	int64_t more_at, fewer_at;      /* not to be tried before */
	unsigned more_wait, fewer_wait; /* ms; longer after each failure */
};

void readers_init(struct readers *readers, unsigned max);
/* How many read. */
unsigned readers_now(const struct readers *readers);
/* Whether thread index reads. */
bool readers_has(const struct readers *readers, unsigned index);
/* For each turn of thread 0: whether it is time to sum up for readers_review(). */
bool readers_review_due(const struct readers *readers, int64_t now);
/* served: requests that all threads have read so far; behind: those of them that came while their
 * reader had others to do. Returns the thread that begins to read and is to be woken, or 0: none.
 */
unsigned readers_review(struct readers *readers, int64_t now, uint64_t served, uint64_t behind);
/* A reader can't read for lack of room, or somebody else has found what no reader took. To be said
 * at each tick for as long as it is so. Returns as readers_review(). */
unsigned readers_stand_in(struct readers *readers, int64_t now);

#endif
