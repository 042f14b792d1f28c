/* FLUSH, FSYNC, FSYNCDIR: all that was written is remote already; what is left is to commit it. */
#include "daemon/op.h"
#include "daemon/ops.h"

static void sync_file(struct request *req)
{
	struct op *op = op_begin(req);
	int status;

	if (commit_wait(req, op->inode, &status, op_finish))
		op_finish(req, status);
}

void op_flush(struct request *req)
{
	sync_file(req);
}

/* Times alone are no data. */
static bool only_times_dirty(struct inode *inode)
{
	bool only;

	pthread_mutex_lock(&inode->lock);
	only = !inode->commit.size_dirty && !inode->map.uncommitted && !inode->commit.error;
	pthread_mutex_unlock(&inode->lock);
	return only;
}

void op_fsync(struct request *req)
{
	if (req->args.datasync && only_times_dirty(inode_of_node(req->thread->fs, req->node)))
		reply_error(req, 0);
	else
		sync_file(req);
}

/* Directories change at the server only. */
void op_fsyncdir(struct request *req)
{
	reply_error(req, 0);
}
