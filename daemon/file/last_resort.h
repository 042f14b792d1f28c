/* last_resort.h - the last try before a caller is told that there is no room, whether for pages,
 * for names or within a quota. Earlier requests to this client take effect first, and it gives back
 * what it holds and does not need.
 *
 *     1. One thread reads the kernel's messages, then every I/O thread passes a turn. Requests are
 *        read in the order in which they were sent; some threads may pass over FORGETs. Each
 *        thread looks at what it has read before it does anything else. So all earlier requests
 *        are done then, or wait for an answer as their callers do. Otherwise one thread might
 *        have read a RELEASE and not run since, while others served the UNLINK and now this.
 *     2. Inodes' unused pages and quota go back to the pools, as far as they are wanted.
 *     3. Names that were removed here are removed at the server (name_queue.h), and inodes without
 * a name that nobody uses are returned. Those that still wait for an answer about them are returned
 * after that (inode_return.h).
 *     4. The owners' pools give their quotas back to the server, if that is wanted.
 *
 * Then each waiter tries again, and takes a refusal for the truth. Requests that come meanwhile get
 * a round of their own. A round does not wait for messages that a thread has parked for want of
 * room (fuse/receive.c): they may wait for those that wait here.
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

/* In addition to the other steps of a round. */
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
	struct io_thread *first, *at; /* the round's: only it touches them */
	struct thread_call call;
};

void last_resort_init(struct last_resorts *r);
void last_resort_fini(struct last_resorts *r);

/* There is no room for what req needs. True: then(req, 0) follows, and tries again. False: all of
 * this was released for req since its last success (op.released). */
bool last_resort_wait(
	struct request *req, unsigned what, void (*then)(struct request *req, int status));

/* Sends op->call, whose op and body have been filled in; answered(req, rep) goes on. It is sent
 * when the server knows the new files that it is about (make_first.h). If the server has no room
 * for a change, it is tried once more by last_resort_wait(). A change with staged parts is not.
 * These waits use op->waiter. */
void op_rpc(
	struct request *req, void (*answered)(struct request *req, const struct rpc_reply *rep));

#endif
