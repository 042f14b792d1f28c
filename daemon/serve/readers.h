/* readers.h - how many of a mount's I/O threads read /dev/fuse: threads 0 .. n - 1.
 *
 * A program that does one thing after the other is served fastest by one thread: its caches are
 * warm, and it never wakes on the program's own CPU. Large transfers and many programs need more
 * threads. The requests do not show which load it is, so this tries it out. When the readers find
 * one request after the other without having to wait, one more thread reads for a moment. It stays
 * if more was done meanwhile. Now and then one fewer reads, and it stays so if as much was done.
 *
 * A thread that does not read serves the requests that it has read before. After each tick in which
 * no thread has read anything it looks for messages, so that a reader that stands still holds
 * nobody up for long.
 *
 * THREADS    readers_review() and readers_review_due() are thread 0's; any thread may call the
 *            others. Nothing waits.
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
	int64_t since;                  /* when this period began, with these totals */
	uint64_t served, behind;        /* requests read, and those behind others */
	double rate;                    /* requests per ms in the period before this one */
	int64_t more_at, fewer_at;      /* not to be tried before */
	unsigned more_wait, fewer_wait; /* ms; longer after each failure */
};

void readers_init(struct readers *readers, unsigned max);
/* The number of readers. */
unsigned readers_now(const struct readers *readers);
/* Whether thread index reads. */
bool readers_has(const struct readers *readers, unsigned index);
/* For each turn of thread 0: whether it is time to sum up for readers_review(). */
bool readers_review_due(const struct readers *readers, int64_t now);
/* served: requests that all threads have read so far; behind: those of them that came while their
 * reader had others to serve. Returns the thread that begins to read and is to be woken, or 0:
 * none. */
unsigned readers_review(struct readers *readers, int64_t now, uint64_t served, uint64_t behind);
/* A reader can't read for lack of room, or another thread has found a message that no reader took.
 * Called at each tick for as long as that lasts. Returns as readers_review(). */
unsigned readers_stand_in(struct readers *readers, int64_t now);

#endif
