/* GETATTR and STATX, answered from what is known here. A sharing mount without a lease asks the
 * server, and the server first asks the file's writer how far it is. */
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/local_answer.h"
#include "daemon/file/op_inode.h"
#include "daemon/lease/lease.h"
#include "daemon/file/inode.h"
#include "daemon/file/last_resort.h"
#include "daemon/ops/finish.h"

struct getattr_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	struct look_up look;
};

static void getattr_reply(struct request *req, const struct attr *attr)
{
	struct ttl ttl = op_ttl(req);

	kernel_owner_tell(op_of(req)->inode, attr);
	if (!req->replied)
		kernel_pages_end_is_answered(op_of(req)->inode, attr->size);
	op_end(req);
	if (req->op == OP_STATX)
		reply_statx(req, attr, ttl);
	else
		reply_attr(req, attr, ttl);
}

static void getattr_answered(struct request *req, const struct rpc_reply *rep);

/* The server lets this wait for other clients, and they may wait for the lease that it uses: so it
 * leaves the lease first. If the lease goes meanwhile, the kernel is told that the file has no end,
 * and takes no size from this answer (kernel_pages.h). */
static void getattr_ask(struct request *req)
{
	struct getattr_state *st = op_state(req, struct getattr_state);
	uint8_t look;

	lease_leave(req);
	look = local_answer_at_begin(req, st->op.inode, &st->look);
	st->op.call.req.op = RPC_GETATTR;
	st->op.call.req.ino = (struct rpc_ino_request){.ino = st->op.inode->ino, .look = look};
	op_rpc(req, getattr_answered);
}

/* On a sharing mount an answer is too old if a lease was given back after it was asked for. */
static bool is_outdated(struct request *req, bool learned)
{
	return !learned && req->thread->fs->sharing;
}

static void getattr_answered(struct request *req, const struct rpc_reply *rep)
{
	struct getattr_state *st = op_state(req, struct getattr_state);
	struct attr seen;

	if (op_is_removed_directory(req, rep->status)) {
		inode_attr(st->op.inode, &seen);
		seen.nlink = 0;
		getattr_reply(req, &seen);
		return;
	}
	if (rep->status) {
		op_finish(req, rep->status);
		return;
	}
	if (local_answer_at_end(req, st->op.inode, &st->look, &rep->attr)) {
		inode_attr(st->op.inode, &seen);
		getattr_reply(req, &seen);
		return;
	}
	if (is_outdated(req, inode_learn(st->op.inode, &rep->attr.attr, st->look.epoch, &seen)))
		getattr_ask(req);
	else
		getattr_reply(req, &seen);
}

/* A mount that does not share asks the server only after changes whose order is in doubt. */
void op_getattr(struct request *req)
{
	struct op *op = op_begin(req);
	struct attr attr;

	bool known = req->thread->fs->sharing ? local_answer_at_here(req, op->inode, &attr)
					      : inode_attr(op->inode, &attr);

	if (known) {
		getattr_reply(req, &attr);
		return;
	}
	getattr_ask(req);
}
