/* op.h - what the file operations share: how one waits, is woken, is taken back, and ends.
 *
 * An operation is a chain of small functions on its request. Each step either goes on at once or
 * leaves word where it wants to be continued: an RPC's or a transfer's completion, the inode's
 * gate, a commit, the grant pool, the notifier. Its state begins with struct op and lives in the
 * request, so nothing is allocated.
 *
 *     op_begin -> steps -> op_end, then one reply
 *
 * THREADS    A request's steps run in its own thread. Whoever wakes it uses waiter_wake().
 */
#ifndef RMEMFS_DAEMON_OP_OP_H
#define RMEMFS_DAEMON_OP_OP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "daemon/op/hold.h"
#include "daemon/request/io_thread.h"
#include "daemon/fuse/notifier.h"
#include "daemon/remote/remote.h"
#include "daemon/request/request.h"

struct inode;

/* A request in a list of others that wait for the same. */
struct waiter {
	struct list link; /* under the lock of what it waits for */
	struct request *req;
	void (*resume)(struct request *req, int status);
	int status;
	/* Commit: the change to be covered; drop: the round; pages, quota: what was asked before.
	 */
	uint64_t until;
	struct thread_call call;
};

void waiter_init(
	struct waiter *w, struct request *req, void (*resume)(struct request *req, int status));
/* Any thread, with the list's lock held or the waiter taken out of it. */
void waiter_wake(struct waiter *w, int status);
void waiters_wake(struct list *waiters, int status);
/* The same where a failure tells only of what was asked up to the n-th time, and so nothing to
 * those that have come since: they stay. */
void waiters_answer(struct list *waiters, uint64_t n, int status);

/* What an operation waits for. */
enum op_wait {
	OP_RUNS,
	OP_AT_ABANDONED,
	OP_AT_BUFFER,
	OP_AT_RPC,
	OP_AT_IO,
	OP_AT_GATE,
	OP_AT_INODE,
	OP_AT_DROP,
	OP_AT_PAGES,
	OP_AT_FREEZE,
	OP_AT_QUOTA,
	OP_AT_RELEASE,
	OP_AT_REMOUNT,
	OP_AT_LEASE,
	OP_AT_RENEWAL,
	OP_AT_APPEND,
};

enum { OP_CHILDREN_MAX = 2 };

struct op {
	struct list interrupted; /* fs_thread.interrupted: op_watch() */
	struct inode *inode;     /* of the request's node; referenced */
	struct inode *leftover;  /* abandoned.h: what it may still change; referenced */
	/* Inodes that its answer says it has changed, besides those it names; 0: none. */
	uint64_t children[OP_CHILDREN_MAX];
	enum op_wait wait;
	struct waiter waiter;
	/* How it is taken back from where it waits: see op_waits(), op_waits_by(). */
	pthread_mutex_t *waiter_lock;
	bool (*withdraw)(struct request *req);
	struct op_hold *holds; /* what it is inside of, the newest first */
	void (*undropped)(struct request *req, int status); /* stale_pages_wait's */
	struct rpc_call call;
	void (*answered)(struct request *req, const struct rpc_reply *rep);
	unsigned released; /* enum release_what: for want of room, since its last success */
	bool changing;     /* a request that changes something was sent: it can't begin anew */
	void (*filled)(struct request *req, int status);   /* fill_holes_wait's */
	void (*refilled)(struct request *req, int status); /* grant_refill_wait's */
	struct io_call io;
	void (*moved)(struct request *req, int status);
	bool writing; /* snapshot_freeze.h: its writes count */
	struct op_hold writing_hold, abandoned_hold;
	bool leased;      /* it uses a lease: its calls come first at the server */
	struct attr seen; /* what an answer has told of an inode: op_reply_entry's */
	uint32_t attr_ms; /* of a sharing mount: for how long it may be kept (kernel_attr.h) */
	bool acked;       /* a WRITE whose caller was told that it is done */
	struct rpc_setattr set; /* op_set_attr's and op_grow's */
	bool stays_inside;      /* op_grow: the gate is its caller's */
	void (*set_done)(struct request *req, int status);
	void (*all_remote)(struct request *req, int status); /* op_wait_acknowledged's */
	void (*dropped)(struct request *req, int status);    /* op_drop_privileges' */
	void (*buffered)(struct request *req, int status);
	struct notifier_job job; /* op_expire_attr's */
	void (*expired)(struct request *req, int status);
};

static inline struct rpc_str op_name(const char *name)
{
	return (struct rpc_str){.s = name, .len = (uint16_t)strlen(name)};
}

/* The op of any request. */
struct op *op_of(struct request *req);

/* The operation waits by its waiter, in a list under that lock; NULL: the list is the thread's own.
 * op_cancel() takes it out. */
void op_waits(struct op *op, enum op_wait wait, pthread_mutex_t *lock);
/* The same where more is to be done: withdraw() does it. False: it is about to go on. */
void op_waits_by(struct op *op, enum op_wait wait, bool (*withdraw)(struct request *req));

/* It is inside of something, which op_end() has it leave, unless it has left before: then leave()
 * calls op_has_left(). */
void op_is_inside(struct request *req, struct op_hold *hold, void (*leave)(struct request *req));
void op_has_left(struct request *req, struct op_hold *hold);
/* Before a wait that others had better not wait for: leaves what yields. */
void op_yield(struct request *req);

/* Takes a data buffer; then(req, 0) goes on, at once if one is free. */
void op_take_buffer(struct request *req, void (*then)(struct request *req, int status));

/* Starts the transfer of the request's works; moved(req, status) goes on. */
void op_io(struct request *req, enum io_dir dir, uint32_t nworks,
	void (*moved)(struct request *req, int status));

/* The same for a READ whose len bytes are what the kernel is to be answered: op_reply_read() does
 * that, after an end without an error. */
void op_io_reply(struct request *req, uint32_t nworks, uint32_t len,
	void (*moved)(struct request *req, int status));
void op_reply_read(struct request *req, uint32_t len);

/* Takes the request back from where it waits, and ends it with `error`: true. Its steps see
 * -ECANCELED, which tells them from a failure: nothing of what they waited for has happened, and
 * whoever waits with them tries for himself. False: something of it is on the way, or it is about
 * to go on, or it was acknowledged. */
bool op_cancel(struct request *req, int error);
/* Whether something of it is on the way to the server, and the outcome open. */
bool op_is_sent(const struct op *op);

/* Has the ticks look after req as if its caller had been signalled, until its op ends. */
void op_watch(struct request *req);
/* For an op that begins: nobody looks after it but if its caller was signalled before. */
void op_watch_begin(struct request *req);

/* Whether an operation that ends so does so with the session. */
bool op_ends_with_session(const struct request *req, int status);
#endif
