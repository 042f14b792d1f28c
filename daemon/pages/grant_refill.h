/* grant_refill.h - keeps the grant pool filled: it asks the server for pages before they are
 * needed, more each time while files grow. It gives back pages that were not used for some seconds.
 *
 * When the server has no more pages, the writers that wait get -ENOSPC. They try once more after
 * the windows of inodes were emptied into the pool and nameless inodes were returned
 * (last_resort.h). Then the server is asked to wait for pages that it is freeing.
 *
 * When other clients lack pages, the server asks for unused ones. The RETURN that leaves this
 * client none answers that. It waits for no RPC on its way but a GRANT: while writers here lack
 * pages, there are none to give. Pages that come then go first to the writers that have waited
 * here: nothing goes back before each of them has tried again.
 *
 * Pages that come along with CREATE or TMPFILE save an RPC. But that one may wait for another
 * client, and a writer that lacks pages must not, since it may be inside a lease. So such a writer
 * sends a GRANT of its own.
 *
 * THREADS    Fields belong to the grant pool's lock. One request to the server at a time, from the
 *            thread that noticed the need. A CREATE or TMPFILE may ask along with it.
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

/* Holders of unused pages. Set at the start of the mount. */
struct refill_holders {
	/* Files that were not written since then (io_thread_now()) give their pages to the pool. */
	void (*empty_windows)(struct fs *fs, int64_t since_ms);
	/* Files without a name go back to the server, and their pages with them. */
	void (*return_nameless)(struct io_thread *thread);
};

struct grant_refill {
	const struct refill_holders *holders;
	bool busy;            /* GRANT, or a RETURN of grants, is on its way or is being prepared */
	bool along;           /* a CREATE or TMPFILE on its way asks for pages, too */
	uint32_t target, max; /* pages to ask for next, and at most */
	int64_t used_ms;      /* when pages were last taken */
	int64_t hold_ms;      /* the server has none: it is not asked ahead before then */
	unsigned nlent;       /* threads between grant_refill_lend_begin() and _end() */
	bool idle;            /* the windows were emptied since used_ms */
	/* other clients lack pages: the number that RETURN answers; 0: they do not */
	uint64_t wanted;
	struct list waiters; /* struct waiter: writers without pages */
	unsigned nwoken;     /* writers that were woken and have not tried yet */
	/* Questions, ever: a waiter is told only of failures of those asked after it came. */
	uint64_t nasked;
	bool patient;             /* the server may let the present GRANT wait */
	struct io_thread *thread; /* that asks */
	struct rpc_call call;
	uint8_t tail[RETURN_EXTENTS * RPC_EXTENT_BYTES];
};

void grant_refill_init(struct grant_refill *r, const struct refill_holders *holders);
/* Called when the session tells how large the export is. */
void grant_refill_set_limit(struct grant_refill *r, uint64_t export_pages);

/* Pages were taken: asks ahead if the pool has become low. */
void grant_refill_check(struct io_thread *thread);

/* The pool had nothing for req. True: it has now. False: then(req, status) follows; 0: try again;
 * -ENOSPC: the server has nothing. If req has released all that it could (op.released), nothing is
 * getting free either. */
bool grant_refill_wait(struct request *req, void (*then)(struct request *req, int status));

/* Around a moment for which a thread keeps pages of the pool that it may not need. Before they are
 * back no writer is told that there are none. */
void grant_refill_lend_begin(struct fs *fs);
void grant_refill_lend_end(struct fs *fs);

/* Pages that a CREATE or TMPFILE is to ask for, or 0. If not 0,
 * grant_refill_along_done() has to follow, with the pages that came. */
uint32_t grant_refill_along(struct io_thread *thread);
void grant_refill_along_done(struct io_thread *thread, const struct extent *grant, unsigned n);

/* Give unused pages back: _tick when none were used for a while, _give_back when others lack them
 * (PING's give_pages). The latter also returns nameless inodes, and tells the server when it has no
 * more. */
void grant_refill_tick(struct io_thread *thread, int64_t now);
void grant_refill_give_back(struct io_thread *thread, uint64_t wanted);
/* While nobody writes: gives all pages back, those of files' windows, too. True: the server has all
 * of them. False: to be called again when no RPC of this thread is on its way. */
bool grant_refill_give_all(struct io_thread *thread);

#endif
