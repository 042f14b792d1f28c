/* grant_refill.h - keeps the grant pool filled: asks the server for pages before they are needed, more
 * each time while files grow, and gives back what has not been used for some seconds.
 *
 * When the server has no more the writers that wait get -ENOSPC, and try once more after the
 * windows of inodes were emptied into the pool and nameless inodes were returned (last_resort.h):
 * then the server is asked to wait for what it is freeing.
 *
 * When other clients lack pages the server asks for those that are not used. That is answered by
 * the RETURN after which there are none, whatever else is on its way but a GRANT: who lacks pages
 * himself has none. What comes then is first for those who have waited for it here: nothing goes
 * back before each of them has tried again.
 *
 * Pages that come along with another RPC save one. But that may wait for another client, which
 * nobody does who needs pages: he may be inside a lease. So who waits for pages asks for himself.
 *
 * THREADS    Fields belong to the grant pool's lock. One request to the server at a time, from the
 *            thread that noticed, but for what asks by the way.
 */
#ifndef RMEMFS_DAEMON_PAGES_GRANT_REFILL_H
#define RMEMFS_DAEMON_PAGES_GRANT_REFILL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/remote/remote.h"

struct fs;
struct request;

enum { REFILL_PAGES_MIN = 256, REFILL_PAGES_MAX = 16384, RETURN_EXTENTS = 256 };

/* What holds pages that are not used: set by who starts the mount. */
struct refill_holders {
	/* Files that were not written since then (io_thread_now()) give their pages to the pool. */
	void (*empty_windows)(struct fs *fs, int64_t since_ms);
	/* Files without a name go back to the server, and their pages with them. */
	void (*return_nameless)(struct io_thread *thread);
};

struct grant_refill {
	const struct refill_holders *holders;
	bool busy;            /* GRANT, or a RETURN of grants, is on its way or is being prepared */
	bool along;           /* another RPC asks for pages by the way */
	uint32_t target, max; /* pages to ask for next, and at most */
	int64_t used_ms;      /* when pages were last taken */
	int64_t hold_ms;      /* the server has none: not asked ahead before this */
	unsigned nlent;       /* threads between grant_refill_lend_begin() and _end() */
	bool idle;            /* the windows were emptied since used_ms */
	uint64_t wanted;     /* others lack pages: the number that RETURN answers; 0: they do not */
	struct list waiters; /* struct waiter: writers without pages */
	unsigned nwoken;     /* of those that were told of some and have not tried yet */
	/* Ever: waiters are told of answers to what was asked after they came. */
	uint64_t nasked;
	bool patient;             /* what is asked for now may take its time */
	struct io_thread *thread; /* that asks */
	struct rpc_call call;
	uint8_t tail[RETURN_EXTENTS * RPC_EXTENT_BYTES];
};

void grant_refill_init(struct grant_refill *r, const struct refill_holders *holders);
/* Once the session tells how large the export is. */
void grant_refill_set_limit(struct grant_refill *r, uint64_t export_pages);

/* Pages were taken: asks ahead where the pool has become low. */
void grant_refill_check(struct io_thread *thread);

/* The pool had nothing for req. True: it has now. False: then(req, status) follows; 0: try again,
 * -ENOSPC: the server has nothing, and if req has released what it could (op.released) nothing that
 * is getting free either. */
bool grant_refill_wait(struct request *req, void (*then)(struct request *req, int status));

/* Around a moment for which a thread keeps pages of the pool that it may have no use for: before
 * they are back nobody is told that there are none. */
void grant_refill_lend_begin(struct fs *fs);
void grant_refill_lend_end(struct fs *fs);

/* Pages that an RPC is to ask for by the way, or 0. If not 0, grant_refill_along_done() has to
 * follow, with what came. */
uint32_t grant_refill_along(struct io_thread *thread);
void grant_refill_along_done(struct io_thread *thread, const struct extent *grant, unsigned n);

/* Gives unused pages back: when none were used for a while, and when others lack them (PING's
 * give_pages); then nameless inodes, too, and the server is told when there is nothing. */
void grant_refill_tick(struct io_thread *thread, int64_t now);
void grant_refill_give_back(struct io_thread *thread, uint64_t wanted);

#endif
