/* damping.h - inodes whose leases were taken away a short time ago, perhaps again and again.
 *
 * Two clients that change an inode in turns, a directory for example, should not pass its lease
 * back and forth: each would wait for the other's RETURN. So after a recall the server gives no
 * lease of it unasked for a while. If the next lease is soon taken away, too, that while is twice
 * as long.
 *
 * The table is bounded. An entry that has no room is forgotten, which only costs a recall.
 *
 * THREADS  The caller's lock. Times are any one clock's.
 */
#ifndef RMEMFS_SERVER_RECALL_DAMPING_H
#define RMEMFS_SERVER_RECALL_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

enum { DAMPING_SETS = 512, DAMPING_WAYS = 4, DAMPING_FIRST_MS = 1000, DAMPING_LAST_MS = 32000 };

/* On until until_ms. A lease that is taken away within span_ms after that doubles the span. */
struct damped {
	uint64_t ino; /* 0: free */
	unsigned export_index;
	int64_t span_ms, until_ms;
};

/* All zero: no inode is known. */
struct damping {
	struct damped sets[DAMPING_SETS][DAMPING_WAYS];
};

/* A lease of the inode is recalled, and its holder may keep less than SHARED. */
void damping_recalled(struct damping *d, unsigned export_index, uint64_t ino, int64_t now_ms);
bool damping_is_on(const struct damping *d, unsigned export_index, uint64_t ino, int64_t now_ms);

#endif
