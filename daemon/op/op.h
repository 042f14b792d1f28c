/* op.h - what the file operations share: how one waits, is woken, is taken back, and ends.
 *
 * An operation is a chain of small functions on its request. Each step either goes on at once or
 * registers where it wants to go on: at the end of an RPC or a transfer, at the inode's gate, a
 * commit, the grant pool, the notifier. Its state begins with struct op and lives in the request,
 * so nothing is allocated.
 *
 *     op_begin -> steps -> op_end, then one reply
 *
 * THREADS    A request's steps run in its own thread. Other threads wake it by waiter_wake().
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

/* A request in a list of requests that wait for the same thing. */
struct waiter {
	struct list link; /* under the lock of that list */
	struct request *req;
	void (*resume)(struct request *req, int status);
	int status;
	/* Commit: the change to be covered; drop: the round; pages, quota: how often was asked
	 * before. */
	uint64_t until;
	struct thread_call call;
};

void waiter_init(
	struct waiter *w, struct request *req, void (*resume)(struct request *req, int status));
/* Any thread, with the list's lock held or the waiter taken out of it. */
void waiter_wake(struct waiter *w, int status);
void waiters_wake(struct list *waiters, int status);
/* The same, but a failure is an answer only to those that asked before the n-th time. Later waiters
 * stay. */
void waiters_answer(struct list *waiters, uint64_t n, int status);

/* The thing that an operation waits for. */
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
	OP_AT_CONVERSION,
	OP_AT_APPEND,
	OP_AT_NAMES,
	OP_WAITS,
};

enum { OP_CHILDREN_MAX = 2 };

/* The inodes that a request to the server is about: a file, or the directory that it is in. */
struct op_about {
	uint64_t ino[2];     /* 0: none */
	bool all;            /* it may be about any */
	bool changes;        /* it comes behind all names that were changed before */
	struct rpc_str name; /* of these only this one of directory ino[0] matters; len 0: all do */
};

struct op {
	struct list interrupted; /* fs_thread.interrupted: op_watch() */
	struct inode *inode;     /* of the request's node; referenced */
	struct inode *leftover;  /* abandoned.h: the inode that it may still change; referenced */
	/* Inodes that its answer says it has changed, besides those that it names; 0: none. */
	uint64_t children[OP_CHILDREN_MAX];
	enum op_wait wait;
	struct waiter waiter;
	/* How it is taken back from where it waits: see op_waits(), op_waits_by(). */
	pthread_mutex_t *waiter_lock;
	bool (*withdraw)(struct request *req);
	struct op_hold *holds; /* the things that it is inside of, the newest first */
	void (*undropped)(struct request *req, int status); /* stale_pages_wait's */
	struct rpc_call call;
	void (*answered)(struct request *req, const struct rpc_reply *rep);
	unsigned released; /* enum release_what: was done for want of room, since its last
			    * success */
	bool changing;     /* it can't begin anew: a request that changes something was sent */
	unsigned renewal;  /* FSYNC and the like: the first one that concerns it */
	void (*learned)(struct request *req, int status);  /* op_know_map's, op_make_sure's */
	void (*filled)(struct request *req, int status);   /* fill_holes_wait's */
	void (*refilled)(struct request *req, int status); /* grant_refill_wait's */
	struct io_call io;
	void (*moved)(struct request *req, int status);
	bool writing; /* it counts among the thread's writes: snapshot_freeze.h */
	struct op_hold writing_hold, abandoned_hold;
	/* make_first's: what the request is about, and how far it is. */
	struct op_about about;
	uint64_t made_number, made_last;
	void (*made)(struct request *req, int status);
	bool leased;      /* it uses a lease: its calls come first at the server */
	struct attr seen; /* the attributes in an answer: op_reply_entry's */
	uint32_t attr_ms; /* sharing mount: for how long the kernel may keep them (kernel_attr.h) */
	bool acked;       /* a WRITE whose caller was told that it is done */
	struct rpc_setattr set; /* op_set_attr's and op_grow's */
	bool stays_inside;      /* op_grow: its caller is in the gate */
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

/* Its name in status and in the log: "server", "lease" ... */
const char *op_wait_name(enum op_wait wait);
/* The op of any request. */
struct op *op_of(struct request *req);

/* The operation waits by its waiter, in a list under that lock; NULL: the list is the thread's own.
 * op_cancel() takes it out. */
void op_waits(struct op *op, enum op_wait wait, pthread_mutex_t *lock);
/* The same, but withdraw() takes it out. It returns false if the operation is about to go on. */
void op_waits_by(struct op *op, enum op_wait wait, bool (*withdraw)(struct request *req));

/* The operation is inside of something. op_end() calls leave(), unless the operation has left
 * before. leave() calls op_has_left(). */
void op_is_inside(struct request *req, struct op_hold *hold, void (*leave)(struct request *req));
void op_has_left(struct request *req, struct op_hold *hold);
/* Before a wait that others had better not wait for: leaves all that yields. */
void op_yield(struct request *req);

/* Takes a data buffer; then(req, 0) goes on, at once if one is free. */
void op_take_buffer(struct request *req, void (*then)(struct request *req, int status));

/* Starts the transfer of the request's works; moved(req, status) goes on. */
void op_io(struct request *req, enum io_dir dir, uint32_t nworks,
	void (*moved)(struct request *req, int status));

/* The same for a READ whose len bytes answer the kernel: after an end without an error,
 * op_reply_read() does that. */
void op_io_reply(struct request *req, uint32_t nworks, uint32_t len,
	void (*moved)(struct request *req, int status));
void op_reply_read(struct request *req, uint32_t len);

/* Takes the request back from where it waits, and ends it with `error`: true. Its steps see
 * -ECANCELED, which is no failure: nothing that they waited for has happened, and others that wait
 * for the same thing try for themselves. False: part of it is on the way, or it is about to go on,
 * or it was acknowledged. */
bool op_cancel(struct request *req, int error);
/* Whether part of it is on the way to the server, and the outcome open. */
bool op_is_sent(const struct op *op);

/* The ticks look after req, as if its caller had been signalled, until its operation ends. */
void op_watch(struct request *req);
/* For an operation that begins: the ticks look after it if its caller was signalled before, or if
 * the kernel would not tell (request_signals_are_untold()). */
void op_watch_begin(struct request *req);

/* Whether the operation ends with this status because the session has ended. */
bool op_ends_with_session(const struct request *req, int status);
#endif
