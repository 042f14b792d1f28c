/* READLINK. */
#include <string.h>

#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/file/inode.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/access_time.h"
#include "daemon/file/name_queue.h"
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

/* The target of a link that the server does not know yet, without NUL; 0: it may know it. */
static size_t target_here(struct request *req, char target[SYMLINK_BYTES_SHORT])
{
	struct inode *inode = op_of(req)->inode;
	const struct name_change *one;
	size_t len = 0;

	pthread_mutex_lock(&inode->lock);
	one = inode->queued;
	if (one && one->kind == NAME_SYMLINK) {
		len = one->text_len;
		memcpy(target, one->text, len);
		access_time_mark_locked(req);
	}
	pthread_mutex_unlock(&inode->lock);
	return len;
}

void op_readlink(struct request *req)
{
	struct op *op = op_begin(req);
	char target[SYMLINK_BYTES_SHORT];
	size_t len = target_here(req, target);

	if (len) {
		op_end(req);
		reply_bytes(req, target, len);
		return;
	}
	op->call.req.op = RPC_READLINK;
	op->call.req.ino = (struct rpc_ino_request){.ino = op->inode->ino};
	op_rpc(req, readlink_answered);
}
