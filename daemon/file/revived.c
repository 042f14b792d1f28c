/* revived.c - see revived.h. */
#include "daemon/file/revived.h"

#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/op_inode.h"
#include "daemon/op/fs_parts.h"

static struct op *op_of_state(struct request *req)
{
	return op_of(req);
}

/* The inode with a reference, if it is a file whose size is not known, or `any` with no attributes
 * at all; else NULL. */
static struct inode *take_unknown(struct fs *fs, uint64_t node, bool any)
{
	struct inode *inode = node ? inode_find(fs, node) : NULL;
	bool unknown;

	if (!inode)
		return NULL;
	pthread_mutex_lock(&inode->lock);
	unknown = inode_is_regular(inode) ? !inode->sized : any && !inode->attr.ino;
	pthread_mutex_unlock(&inode->lock);
	if (unknown)
		return inode;
	inode_put(inode);
	return NULL;
}

static struct inode *find_unknown(struct request *req)
{
	struct fs *fs = req->thread->fs;
	struct inode *inode;

	switch (req->op) {
	case OP_READ:
	case OP_WRITE:
	case OP_LSEEK:
	case OP_FALLOCATE:
		return take_unknown(fs, req->node, false);
	case OP_SETATTR:
		return take_unknown(fs, req->node, true);
	case OP_COPY:
		inode = take_unknown(fs, req->node, false);
		return inode ? inode : take_unknown(fs, req->args.node2, false);
	default:
		return NULL;
	}
}

static void revived_answered(struct request *req, const struct rpc_reply *rep)
{
	struct revived_state *st = request_state(req, struct revived_state);
	void (*then)(struct request * req, int status) = steal_ptr(&st->then);
	struct inode *asked = steal_ptr(&st->asked);
	uint64_t epoch = st->epoch;

	st->epoch = 0;
	if (!rep->status && inode_learn(asked, &rep->attr.attr, epoch, NULL) &&
		!rep->attr.attr.nlink)
		inode_return_orphan(asked, 0, req->thread);
	inode_put(asked);
	if (rep->status) {
		then(req, rep->status);
		return;
	}
	list_del(&op_of_state(req)->interrupted);
	inode_put(steal_ptr(&op_of_state(req)->inode));
	if (revived_enter(req, then))
		then(req, 0);
}

static void revived_ask(struct request *req)
{
	struct revived_state *st = request_state(req, struct revived_state);
	struct op *op = op_of_state(req);

	st->epoch = inode_epoch(req->thread->fs);
	op->call.req.op = RPC_GETATTR;
	op->call.req.ino = (struct rpc_ino_request){.ino = st->asked->ino};
	op_rpc(req, revived_answered);
}

bool revived_enter(struct request *req, void (*then)(struct request *req, int status))
{
	struct inode *unknown = find_unknown(req);
	struct revived_state *st = request_state(req, struct revived_state);

	if (!unknown)
		return true;
	op_begin(req);
	st->asked = unknown;
	st->then = then;
	revived_ask(req);
	return false;
}
