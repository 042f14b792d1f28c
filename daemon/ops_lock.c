/* GETLK, SETLK, SETLKW: one RPC. Who has to wait for a lock does so in lock.c. */
#include <errno.h>

#include "daemon/lock.h"
#include "daemon/op.h"
#include "daemon/ops.h"

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

void op_getlk(struct request *req)
{
	struct op *op = op_begin(req);

	op->call.req.op = RPC_GETLK;
	op->call.req.lock = lock_asked(req);
	op_rpc(req, getlk_answered);
}

/* Who was told that it failed does not have it. */
static void setlk_answered(struct request *req, const struct rpc_reply *rep)
{
	if (!rep->status && req->replied && req->args.lock.type != LOCK_FREE)
		lock_give_up(req);
	op_finish(req, rep->status);
}

static void setlk(struct request *req)
{
	struct op *op = op_begin(req);

	op->call.req.op = RPC_LOCK;
	op->call.req.lock = lock_asked(req);
	op_rpc(req, setlk_answered);
}

void op_setlk(struct request *req)
{
	struct inode *inode = op_inode_of(req);
	int err = lock_note_owner(req, inode);

	inode_put(inode);
	if (err)
		reply_error(req, err);
	else if (req->args.lock.wait && req->args.lock.type != LOCK_FREE)
		lock_wait_begin(req);
	else
		setlk(req);
}
