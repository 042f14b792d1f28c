/* SETATTR: what the kernel asks for, and what that takes away. */
#include "daemon/fs_internal.h"
#include "daemon/op.h"
#include "daemon/ops.h"

static void setattr_done(struct request *req, int status)
{
	struct inode *inode = op_of(req)->inode;
	struct ttl ttl = op_ttl(req);
	struct attr attr;

	inode_attr(inode, &attr);
	op_end(req);
	if (status)
		reply_error(req, status);
	else
		reply_attr(req, &attr, ttl);
}

/* Who changes an owner, or cuts a file without being privileged, leaves no set-user-id behind; on
 * directories these bits are no privileges. */
static void drop_privileges(const struct request *req, struct inode *inode, struct rpc_setattr *set)
{
	uint32_t mode, left;

	if ((set->valid & SET_MODE) || S_ISDIR(inode->type))
		return;
	if (!req->args.kill_priv && !(set->valid & (SET_UID | SET_GID)))
		return;
	left = op_mode_without_privileges(req, inode, &mode);
	if (left != mode) {
		set->valid |= SET_MODE;
		set->mode = left;
	}
}

/* A writeback cache tells the times of writes by a SETATTR of their own, at each close. They go
 * with the COMMIT that follows, which sets both to one value. */
static bool take_times(struct request *req, struct inode *inode, const struct rpc_setattr *set)
{
	bool take;

	if (!inode->fs->features.writeback || set->valid != (SET_MTIME | SET_CTIME) ||
		set->mtime != set->ctime || !inode_is_regular(inode))
		return false;
	pthread_mutex_lock(&inode->lock);
	take = inode->sized && inode->attr_valid && !inode->returned;
	if (take) {
		inode->attr.mtime = inode->attr.ctime = set->mtime;
		inode->commit.times_dirty = true;
		commit_dirty_locked(inode, req->thread);
	}
	pthread_mutex_unlock(&inode->lock);
	return take;
}

void op_setattr(struct request *req)
{
	struct op *op = op_begin(req);
	struct rpc_setattr set = {
		.valid = req->args.set.valid,
		.mode = req->args.set.mode,
		.uid = req->args.set.uid,
		.gid = req->args.set.gid,
		.size = req->args.set.size,
		.atime = req->args.set.atime,
		.mtime = req->args.set.mtime,
		.ctime = req->args.set.ctime,
	};

	drop_privileges(req, op->inode, &set);
	if (set.valid && !take_times(req, op->inode, &set))
		op_set_attr(req, &set, setattr_done);
	else
		setattr_done(req, 0);
}
