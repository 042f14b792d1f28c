/* fill_holes.h - gives the holes of a file pages of the session's grants.
 *
 * The new extents are FILLING until extent_map_filled(). When the pool is empty, grant_refill.h
 * gets more pages. When the file's owner may have no more, quota_allowance.h asks for more.
 *
 * THREADS    The request's own. It is inside the inode's gate, exclusively or for these pages.
 */
#ifndef RMEMFS_DAEMON_FILE_FILL_HOLES_H
#define RMEMFS_DAEMON_FILE_FILL_HOLES_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct request;

/* Fills the holes of pages [first, end) of the request's inode, in order, as far as they are known.
 * *filled: all is mapped up to there. -EAGAIN: the pool has no more; -EDQUOT: the owner's allowance
 * has no more; -ENOMEM. */
int fill_holes(struct request *req, uint64_t first, uint64_t end, uint64_t *filled);

/* True: the request's payload has landed in granted pages (landing.h), all of [first, end) was a
 * hole, and these pages are the file's now. */
bool fill_holes_landed(struct request *req, uint64_t first, uint64_t end);

/* -EAGAIN and -EDQUOT can be waited for. True: there is more by now. False: then(req, status)
 * follows; 0: try again; -ENOSPC, -EDQUOT: there is nothing left. */
static inline bool fill_lacks(int status)
{
	return status == -EAGAIN || status == -EDQUOT;
}
bool fill_holes_wait(struct request *req, int lacks, void (*then)(struct request *req, int status));

#endif
