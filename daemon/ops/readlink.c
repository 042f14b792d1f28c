/* READLINK. */
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/file/inode.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/access_time.h"
#include "daemon/file/op_inode.h"

static void readlink_answered(struct request *req, const struct rpc_reply *rep)
{
	if (!rep->status)
		access_time_mark(req);
	op_end(req);
	if (rep->status)
		reply_error(req, rep->status);
	else
		reply_bytes(req, rep->readlink.target.s, rep->readlink.target.len);
}

void op_readlink(struct request *req)
{
	struct op *op = op_begin(req);

	op->call.req.op = RPC_READLINK;
	op->call.req.ino = (struct rpc_ino_request){.ino = op->inode->ino};
	op_rpc(req, readlink_answered);
}
