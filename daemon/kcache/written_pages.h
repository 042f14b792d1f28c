/* written_pages.h - pages that a write past the cache is about to change, while a mapping may be
 * stored into.
 *
 * The kernel drops them before it sends the write. But a store may bring them again before the
 * write is done. And the bytes of an append may go to another place than the kernel takes for the
 * file's end. The kernel would write back what such a page has over the new bytes. So the pages are
 * dropped once more before the write is done, and READs of them wait for it:
 *
 *     in the gate: may the kernel have some? -> out of it, until they are dropped -> in the gate:
 *     none? -> READs that come later wait -> the write
 *
 * Nothing waits for itself: the write waits for a drop as all operations do that wait for the lease
 * (lease/enter.c), outside of the gate. Inside it waits for no drop. A READ that waits for the
 * write has its pages locked, and empty.
 *
 * A program that stores all the time might keep a write from ever being done. So after some rounds
 * the write is done nevertheless, as one with O_DIRECT beside a mapping is.
 *
 * OWNERSHIP  The write's.
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_KCACHE_WRITTEN_PAGES_H
#define RMEMFS_DAEMON_KCACHE_WRITTEN_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct request;

struct written_pages {
	uint8_t rounds;
	bool dropped; /* since the write is in the gate */
};

/* The write is in the gate of its inode, and others have no lease of that. True: its pages are
 * being dropped. The caller leaves the gate, waits for the lease, and comes again. */
bool written_pages_drop(struct request *req, struct written_pages *w);
/* The write leaves the gate before it is done. */
void written_pages_left(struct written_pages *w);

#endif
