/* removed.h - names that this client has taken away by itself, and that the server still has.
 *
 * UNLINK and RMDIR are answered here where ops/remove_here.h allows it. These names are one queue
 * for the whole mount, in the order of their answers. It goes to the server by REMOVALS, one
 * message at a time: when as many names have gathered as one message takes, when something comes
 * behind them, and within a second.
 *
 *     answered -> queued -> sent -> answered by the server
 *
 * Behind the names that were answered before it comes
 * - each request that changes something at the server, also a COMMIT or MAKE (commit.h). So if this
 *   client dies, the server has a beginning of all that it was to do, in the order in which its
 *   programs saw it, and with it all data that was closed;
 * - fsync of anything, and close of a file that was open for writing;
 * - a request that reads the directory, or is about the inode;
 * - a snapshot, a change to read-only, an upgrade, the end of the mount (commit_tick()).
 *
 * OWNERSHIP  A struct removed has a reference to its inode and its directory, and the inode points
 *            to it, from the answer to the program to that of the REMOVALS. If the server refuses,
 *            nothing that is known of the directory is believed any more.
 * THREADS    Any. The lock is taken inside an inode's lock, and inboxes' inside it. A message is
 *            filled, and its answer is taken, by the thread that sends it, without the lock.
 * ERRORS     A name that the server refuses to remove is there again: removed_hooks.refused.
 */
#ifndef RMEMFS_DAEMON_FILE_REMOVED_H
#define RMEMFS_DAEMON_FILE_REMOVED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote.h"

struct inode;
struct io_thread;

/* MESSAGE: names in one message, at most. QUEUE: more that wait are not taken. */
enum { REMOVED_MESSAGE = 128, REMOVED_QUEUE = 512, REMOVED_TAIL_BYTES = RPC_MSG_BYTES - 256 };

struct removed {
	struct list link;
	struct inode *inode, *dir; /* referenced */
	uint64_t number;           /* it counts the mount's */
	int64_t time;
	uint16_t len;
	char name[NAME_BYTES_MAX + 1];
};

struct removed_hooks {
	/* The name is about to be sent. Whether nobody uses the inode any more: then the server
	 * ends it with the name, and it counts as returned. Called under the inode's lock, once
	 * more if the message has to be sent again. */
	bool (*gives_up_locked)(struct inode *inode);
	/* The server has answered, and the inode has no struct removed any more. */
	void (*settle)(struct inode *inode, struct io_thread *thread);
	/* The same, before settle: it still has the name. */
	void (*refused)(struct inode *inode, const struct removed *one, int status);
};

/* Something that is no request, and waits for the names before it. */
struct removed_behind {
	struct list link;
	uint64_t until;
	struct io_thread *thread;
	struct thread_call call; /* call.run is the caller's */
};

struct removed_names {
	const struct removed_hooks *hooks;
	pthread_mutex_t lock;
	struct list queued, sent;
	atomic_uint n; /* of both */
	unsigned nqueued;
	uint64_t last, done; /* numbers: of the last one; all up to it are answered */
	uint64_t wanted;     /* those up to it are sent at once */
	unsigned nalone;     /* so many are sent one by one: together they were refused */
	struct list waiters; /* struct waiter, by `until` */
	struct list behind;  /* struct removed_behind */
	bool running;        /* a message is on its way, or is being filled */
	bool called;         /* `call` is in an inbox */
	struct thread_call call;
	struct io_thread *caller;

	/* The message's. */
	struct io_thread *thread;
	struct rpc_call rpc;
	uint8_t tail[REMOVED_TAIL_BYTES];
};

void removed_init(struct removed_names *r, const struct removed_hooks *hooks);
void removed_fini(struct removed_names *r);

static inline bool removed_any(const struct removed_names *r)
{
	return atomic_load(&r->n);
}

/* Whether one more may be taken. */
bool removed_has_room(struct removed_names *r);
/* NULL: no memory. removed_drop() is for one that was not added. */
struct removed *removed_new(struct inode *inode, struct inode *dir, const char *name, int64_t time);
void removed_drop(struct removed *one);
/* Under the inode's lock. removed_added() follows, without it. */
void removed_add_locked(struct removed_names *r, struct removed *one);
void removed_added(struct removed_names *r, struct io_thread *thread);

/* Sends all that are queued, if no message is on its way; else behind that. */
void removed_flush(struct removed_names *r, struct io_thread *thread);

/* The number up to which a request has to wait; 0: there is nothing to wait for. */
uint64_t removed_before(struct removed_names *r, const struct op_about *about);
/* Waits until all up to that number are answered. True: there is nothing to wait for. False:
 * then(req, status) follows; -ECANCELED: the operation was taken back. */
bool removed_wait(
	struct request *req, uint64_t until, void (*then)(struct request *req, int status));
/* The same for all that there are now: false: behind->call is run in the thread. May be called
 * under an inode's lock. */
bool removed_wait_behind(
	struct removed_names *r, struct removed_behind *behind, struct io_thread *thread);

#endif
