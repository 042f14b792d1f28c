/* GETLK, SETLK, SETLKW: one RPC, or none where the mount keeps its locks by itself. A wait for a
 * lock is in lock/lock_wait.c. */
#include <errno.h>

#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/make_first.h"
#include "daemon/file/op_inode.h"

/* In place of the server, if the mount has its locks. A session that is lost has none. */
static void ask_table(struct request *req, uint16_t rpc,
	void (*answered)(struct request *req, const struct rpc_reply *rep))
{
	struct op *op = op_of(req);
	const struct rpc_lock *lock = &op->call.req.lock;
	struct rpc_reply rep = {.op = rpc};

	if (session_lost(req->thread->fs->session))
		rep.status = -ESTALE;
	else if (rpc == RPC_GETLK)
		local_locks_find(op->inode, lock, &rep.getlk);
	else
		rep.status = local_locks_set(op->inode, lock);
	answered(req, &rep);
}

static void lock_ask(struct request *req, int status, uint16_t rpc,
	void (*answered)(struct request *req, const struct rpc_reply *rep))
{
	struct op *op = op_of(req);

	if (!status)
		status = lock_owner_asks(req, op->inode, &op->call.req.lock);
	if (status) {
		op_finish(req, status);
		return;
	}
	if (local_locks_are_kept(req->thread->fs)) {
		ask_table(req, rpc, answered);
		return;
	}
	op->call.req.op = rpc;
	op_rpc(req, answered);
}

/* ---- GETLK ----------------------------------------------------------------------------------- */

static void getlk_answered(struct request *req, const struct rpc_reply *rep)
{
	struct lock_found found = {0};

	if (rep->status) {
		op_finish(req, rep->status);
		return;
	}
	found.type = rep->getlk.type;
	found.start = rep->getlk.start;
	found.end = rep->getlk.end;
	found.pid = rep->getlk.pid;
	op_end(req);
	reply_lock(req, &found);
}

static void getlk(struct request *req, int status)
{
	lock_ask(req, status, RPC_GETLK, getlk_answered);
}

void op_getlk(struct request *req)
{
	op_begin(req);
	if (lock_leaving_wait(req, getlk))
		getlk(req, 0);
}

/* ---- SETLK ----------------------------------------------------------------------------------- */

/* A caller that was told of a failure must not have the lock. */
static void got_or_not(struct request *req, const struct rpc_reply *rep)
{
	struct op *op = op_of(req);
	const struct rpc_lock *lock = &op->call.req.lock;
	bool granted = !rep->status;

	if (granted && req->replied)
		lock_give_up(req, op->inode, lock);
	lock_owner_answered(op->inode, lock->owner, granted && !req->replied);
	op_finish(req, rep->status);
}

static void try_lock(struct request *req, int status)
{
	lock_ask(req, status, RPC_LOCK, got_or_not);
}

static void unlocked(struct request *req, const struct rpc_reply *rep)
{
	struct op *op = op_of(req);

	if (!rep->status)
		lock_owner_freed(op->inode, &op->call.req.lock);
	op_finish(req, rep->status);
}

static void lock_unlock(struct request *req)
{
	struct op *op = op_begin(req);
	int err = lock_owner_asks(req, op->inode, &op->call.req.lock);

	if (err || !op->call.req.lock.owner) {
		op_finish(req, err);
		return;
	}
	if (local_locks_are_kept(req->thread->fs)) {
		ask_table(req, RPC_LOCK, unlocked);
		return;
	}
	op->call.req.op = RPC_LOCK;
	op_rpc(req, unlocked);
}

/* The request ends before the lock is had, and the server is to know the file by then. */
static void wait_for_lock(struct request *req, int status)
{
	if (status || req->replied) {
		op_finish(req, status);
		return;
	}
	op_end(req);
	lock_wait_begin(req);
}

static void lock_when_it_is_made(struct request *req)
{
	struct op_about about = {.ino = {req->node}};

	op_begin(req);
	if (local_locks_are_kept(req->thread->fs) || make_first(req, &about, wait_for_lock))
		wait_for_lock(req, 0);
}

void op_setlk(struct request *req)
{
	if (req->args.lock.type == LOCK_FREE) {
		lock_unlock(req);
	} else if (req->args.lock.wait) {
		lock_when_it_is_made(req);
	} else {
		op_begin(req);
		if (lock_leaving_wait(req, try_lock))
			try_lock(req, 0);
	}
}
