/* op_inode.c - see op_inode.h. */
#include "daemon/file/op_inode.h"

#include <assert.h>

#include "daemon/file/handle.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/gate_pass.h"

struct inode *op_inode_of(const struct request *req)
{
	const struct handle *handle = req->args.has_fh ? handle_of(req) : NULL;
	struct inode *inode =
		handle ? inode_ref(handle->inode) : inode_of_node(req->thread->fs, req->node);

	assert(inode && inode->ino == req->node);
	return inode;
}

struct op *op_begin_with(struct request *req, struct inode *inode)
{
	struct op *op = op_of(req);

	op_watch_begin(req);
	op->inode = inode;
	return op;
}

struct op *op_begin(struct request *req)
{
	return op_begin_with(req, op_inode_of(req));
}

void op_end(struct request *req)
{
	struct op *op = op_of(req);

	list_del(&op->interrupted);
	if (file_op(op)->pass.inside)
		gate_pass_leave(req);
	while (op->holds)
		op->holds->leave(req);
	inode_put(steal_ptr(&op->inode));
}

void op_finish(struct request *req, int status)
{
	op_end(req);
	reply_error(req, status);
}

bool op_may_tell(const struct request *req)
{
	return session_ttl_ms(req->thread->fs->session) > 0 && remote_connected(req->thread);
}

static void sure_answered(struct request *req, const struct rpc_reply *rep)
{
	op_of(req)->learned(req, rep->status);
}

bool op_make_sure(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	if (!req->thread->fs->sharing || op_may_tell(req))
		return true;
	op->learned = then;
	op->call.req.op = RPC_EXTENTS;
	op->call.req.extents =
		(struct rpc_extents){.ino = op->inode->ino, .fpage = UINT64_MAX >> PAGE_SHIFT};
	op_rpc(req, sure_answered);
	return false;
}
