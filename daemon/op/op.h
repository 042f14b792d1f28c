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

#include "daemon/lease/append_order.h"
#include "daemon/op/hold.h"
#include "daemon/file/gate.h"
#include "daemon/file/inode.h"
#include "daemon/request/io_thread.h"
#include "daemon/lease/lease.h"
#include "daemon/fuse/notifier.h"
#include "daemon/remote/remote.h"
#include "daemon/request/request.h"

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
	OP_AT_LEFTOVERS,
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

/* An operation's way through the gate of an inode. */
struct op_pass {
	struct gate_pass pass;
	struct op *op;
	struct inode *inode;
	bool inside;
};

enum { OP_CHILDREN_MAX = 2, OP_LEASES = 2 };

struct op {
	struct list interrupted; /* fs_thread.interrupted: fs_watch() */
	struct inode *inode;     /* of the request's node; referenced */
	struct inode *leftover;  /* leftover.h: what it may still change; referenced */
	/* Inodes that its answer says it has changed, besides those it names; 0: none. */
	uint64_t children[OP_CHILDREN_MAX];
	enum op_wait wait;
	struct waiter waiter;
	/* How it is taken back from where it waits: see op_waits(), op_waits_by(). */
	pthread_mutex_t *waiter_lock;
	bool (*withdraw)(struct request *req);
	struct op_hold *holds; /* what it is inside of, the newest first */
	void (*undropped)(struct request *req, int status); /* drop_wait's */
	struct rpc_call call;
	void (*answered)(struct request *req, const struct rpc_reply *rep);
	unsigned released; /* enum release_what: for want of room, since its last success */
	bool changing;     /* a request that changes something was sent: it can't begin anew */
	void (*filled)(struct request *req, int status);   /* fill_wait's */
	void (*refilled)(struct request *req, int status); /* refill_wait's */
	struct io_call io;
	void (*moved)(struct request *req, int status);
	struct op_pass pass;     /* its own inode's */
	struct op_pass *at_gate; /* OP_AT_GATE: where */
	bool writing;            /* snapshot_freeze.h: its writes count */
	struct op_hold writing_hold, leftover_hold, lease_hold;
	/* lease.h: what it uses; the last may be what it waits for. */
	struct op_lease leases[OP_LEASES];
	unsigned nleases;
	struct op_lease *at_lease;
	void (*lease_then)(struct request *req, int status);
	struct attr seen;       /* what an answer has told of an inode: op_reply_entry's */
	uint32_t attr_ms;       /* of a sharing mount: for how long it may be kept (told.h) */
	bool acked;             /* a WRITE whose caller was told that it is done */
	struct rpc_setattr set; /* op_set_attr's and op_grow's */
	bool stays_inside;      /* op_grow: the gate is its caller's */
	void (*set_done)(struct request *req, int status);
	void (*all_remote)(struct request *req, int status); /* op_wait_acknowledged's */
	void (*dropped)(struct request *req, int status);    /* op_drop_privileges' */
	void (*buffered)(struct request *req, int status);
	struct notifier_job job; /* op_expire_attr's */
	void (*expired)(struct request *req, int status);
	struct op_append append;
};

static inline struct rpc_str op_name(const char *name)
{
	return (struct rpc_str){.s = name, .len = (uint16_t)strlen(name)};
}

/* After append_enter(), lease_admit() or lease_take() have returned false: what others may need
 * (request.h) does not stay with the request, which may end. */
void op_wait_for_others(struct request *req);

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

/* First and last of every operation. op_end leaves the gate and drops the inode; the reply follows
 * at once. */
struct op *op_begin(struct request *req);
/* The same with an inode that the caller has a reference to, and gives away. */
struct op *op_begin_with(struct request *req, struct inode *inode);
/* The inode that the request is about, with a reference. */
struct inode *op_inode_of(const struct request *req);
void op_end(struct request *req);
/* Both ends in one, without a body: 0 or -errno. */
void op_finish(struct request *req, int status);
/* The same for one that has not begun. */
void op_refuse(struct request *req, int status);

/* Takes a data buffer; then(req, 0) goes on, at once if one is free. */
void op_take_buffer(struct request *req, void (*then)(struct request *req, int status));

/* Whether `status` of a GETATTR or READDIR says that another client has removed the directory. It
 * is no error to who has it open, and that is not known: the kernel sends no OPENDIR. */
bool op_is_removed_directory(struct request *req, int status);

/* Sends op->call, whose op and body have been filled in; answered(req, rep) goes on. A change that
 * the server has no room for is tried once more (release.h; but not one whose parts were staged).
 */
void op_rpc(
	struct request *req, void (*answered)(struct request *req, const struct rpc_reply *rep));

/* Starts the transfer of the request's works; moved(req, status) goes on. */
void op_io(struct request *req, enum io_dir dir, uint32_t nworks,
	void (*moved)(struct request *req, int status));

/* The same for a READ whose len bytes are what the kernel is to be answered: op_reply_read() does
 * that, after an end without an error. */
void op_io_reply(struct request *req, uint32_t nworks, uint32_t len,
	void (*moved)(struct request *req, int status));
void op_reply_read(struct request *req, uint32_t len);

/* Passes the inode's gate. True: inside. False: then(req, 0) is called when it is. */
bool op_enter(struct request *req, enum gate_kind kind, uint64_t first, uint64_t end,
	void (*then)(struct request *req, int status));
void op_leave(struct request *req);
/* The same under the inode's lock, so that nobody sees it inside after what it has changed there.
 * True: the inode is an orphan, which returns_settle() has to see without the lock. */
bool op_leave_locked(struct request *req);
/* The same for another inode, or both of them: in the order of their numbers, so that no two wait
 * for each other. */
bool op_enter_pass(struct request *req, struct op_pass *pass, struct inode *inode,
	enum gate_kind kind, void (*then)(struct request *req, int status));
void op_leave_pass(struct request *req, struct op_pass *pass);

/* Waits until all writes of the inode that were acknowledged before are remote, or have failed.
 * True: there are none. False: then(req, status) follows. The caller is outside of the gate. */
bool op_wait_acknowledged(struct request *req, void (*then)(struct request *req, int status));

/* Fetches the inode's extents until all is known below page `end`, while inside the gate. True:
 * it is known. False: then(req, status) follows, and is to ask again. */
bool op_know_map(struct request *req, uint64_t end, void (*then)(struct request *req, int status));

/* Whether what is known under a lease may be told: it is good for as long as the server has heard
 * of us, and no longer. */
bool op_may_tell(const struct request *req);
/* Before what nobody else was asked for is answered, as that a file ends there: asks the server
 * whether the session is there if that may not be told. True: it may. False: then(req, status)
 * follows. */
bool op_make_sure(struct request *req, void (*then)(struct request *req, int status));

/* Changes the inode's attributes (op->set.ino is filled in). A change of size lets no I/O of the
 * inode run meanwhile; before one of size or times all that was written is committed. */
void op_set_attr(struct request *req, const struct rpc_setattr *set,
	void (*then)(struct request *req, int status));
/* Whether a change of these (SET_*) lets no I/O of a file run meanwhile. It waits for nobody's
 * lease then, or what has the lease here could not end: on a sharing mount it has LEASE_EXCLUSIVE.
 */
bool op_set_attr_keeps_others_out(const struct fs *fs, uint32_t valid);
/* The file's size, which is less, becomes `size`: what is mapped in between is zero then, whoever
 * has written there. The caller is inside the inode's gate, exclusively, and stays there. */
void op_grow(struct request *req, uint64_t size, void (*then)(struct request *req, int status));
/* True: the inode's mode loses something, or may, when the caller, who is not privileged, has
 * written or changed the owner, and the set, unless NULL, has it taken away. */
bool op_takes_privileges(const struct request *req, struct inode *inode, struct rpc_setattr *set);

/* Likewise, where the request does not say whether its caller is privileged: all but root are not.
 */
bool op_caller_takes_privileges(const struct request *req, struct inode *inode);

/* Takes away from a file what changing its data does: capabilities, and with set_ids set-user-id.
 * Then then(req, 0) goes on. */
void op_drop_privileges(
	struct request *req, bool set_ids, void (*then)(struct request *req, int status));

/* Makes the kernel ask anew for the inode's attributes; then(req, 0) goes on. */
void op_expire_attr(struct request *req, void (*then)(struct request *req, int status));
/* The same, when it has been told all that cached.h has to tell it by now. */
void op_expire_attr_behind_drops(
	struct request *req, void (*then)(struct request *req, int status));

/* Ends the operation with an entry for the inode, whose reference it takes over, and whose
 * attributes are in op->seen. */
void op_reply_entry(struct request *req, struct inode *inode);

/* Takes the request back from where it waits, and ends it with `error`: true. Its steps see
 * -ECANCELED, which tells them from a failure: nothing of what they waited for has happened, and
 * whoever waits with them tries for himself. False: something of it is on the way, or it is about
 * to go on, or it was acknowledged. */
bool op_cancel(struct request *req, int error);
/* Whether something of it is on the way to the server, and the outcome open. */
bool op_is_sent(const struct op *op);

/* The time that the kernel may keep what it is told now. */
struct ttl op_ttl(struct request *req);

#endif
