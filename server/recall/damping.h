/* damping.h - inodes whose leases were taken away a short time ago, again and again perhaps.
 *
 * What two clients change in turns, a directory say, is not to be handed back and forth: each
 * would wait for the other's giving back. So when a lease was taken away, none is given for a
 * while to who can do without, which is twice as long each time that it comes to nothing.
 *
 * The table is bounded: what has no room is forgotten, which only costs a recall.
 *
 * THREADS  The caller's lock. Times are any one clock's.
 */
#ifndef RMEMFS_SERVER_RECALL_DAMPING_H
#define RMEMFS_SERVER_RECALL_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

enum { DAMPING_SETS = 512, DAMPING_WAYS = 4, DAMPING_FIRST_MS = 1000, DAMPING_LAST_MS = 32000 };

/* On until then. What is taken away within as long again lasts twice as long. */
struct damped {
	uint64_t ino; /* 0: free */
	unsigned export_index;
	int64_t span_ms, until_ms;
};

/* All zero: nothing is known. */
struct damping {
	struct damped sets[DAMPING_SETS][DAMPING_WAYS];
};

/* A lease of the inode is wanted back by who lets others have none. */
void damping_recalled(struct damping *d, unsigned export_index, uint64_t ino, int64_t now_ms);
bool damping_is_on(const struct damping *d, unsigned export_index, uint64_t ino, int64_t now_ms);

#endif
