/* last_resort.h - the last try before somebody is told that there is no room, whether for pages, for
 * names or within a quota: what this client was asked for before has its effect, and what it holds
 * and does not need goes back.
 *
 *     1. One thread reads what the kernel has, then every I/O thread passes a turn. Requests are
 *        read in the order they were sent in, FORGETs may be passed over by some; and each thread
 *        looks at what it has read before it does anything else. So all that came before is done
 *        then, or waits for an answer as its caller does. Or else one thread might have read a
 *        RELEASE and not run since, while others served the UNLINK and now this.
 *     2. What inodes were going to be filled with goes back to the pools, as far as it is wanted.
 *     3. Inodes without a name that nobody uses are returned, and those that are only kept by what
 *        of them is on its way to the server, after that (inode_return.h).
 *     4. What owners' pools have of their quotas goes back to the server, if that is wanted.
 *
 * Then each that waits tries again, and takes a refusal for the truth. What comes while this is
 * going on gets a round of its own. Not waited for are messages that a thread has parked for want
 * of room (fuse/receive.c): they may wait for those that wait here.
 *
 * A round waits for turns of threads and for answers to COMMIT and RETURN, which wait for nobody.
 *
 * THREADS    Any I/O thread. One round at a time goes from thread to thread. Its lock is taken
 *            inside no other one, and inboxes' inside it.
 */
#ifndef RMEMFS_DAEMON_FILE_LAST_RESORT_H
#define RMEMFS_DAEMON_FILE_LAST_RESORT_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/list.h"
#include "daemon/request/io_thread.h"
#include "common/rpc/rpc.h"

struct request;

/* Besides what every round does. */
enum release_what {
	RELEASE_NOTHING_MORE = 1,
	RELEASE_WINDOWS = 2,    /* inodes' pages, to the pool of grants */
	RELEASE_SHARES = 4,     /* inodes' shares of their owners' quotas, to the owners' pools */
	RELEASE_ALLOWANCES = 8, /* these pools, to the server */
};

struct last_resorts {
	pthread_mutex_t lock;
	bool running;
	struct list waiters, next;    /* struct waiter: of this round, of the next */
	unsigned what, next_what;     /* enum release_what */
	struct io_thread *first, *at; /* the round's; its own while it runs */
	struct thread_call call;
};

void last_resort_init(struct last_resorts *r);
void last_resort_fini(struct last_resorts *r);

/* There is no room for what req needs. True: then(req, 0) follows, and is to try again. False: all
 * of this was released for it since its last success (op.released). */
bool last_resort_wait(
	struct request *req, unsigned what, void (*then)(struct request *req, int status));

/* Sends op->call, whose op and body have been filled in; answered(req, rep) goes on. A change that
 * the server has no room for is tried once more (last_resort.h; but not one whose parts were
 * staged).
 */
void op_rpc(
	struct request *req, void (*answered)(struct request *req, const struct rpc_reply *rep));

#endif
