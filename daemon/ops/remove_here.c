#include "daemon/ops/remove_here.h"

#include "common/rpc/change_time.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/inode_return.h"
#include "daemon/lease/local_answer.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/make_here.h"

/* Whether this is the last name that goes with it. */
static bool is_last_locked(const struct request *req, const struct inode *inode)
{
	if (req->op == OP_RMDIR)
		return S_ISDIR(inode->type) && dir_names_are_none(&inode->names);
	return !S_ISDIR(inode->type) && inode->attr.nlink == 1;
}

/* Whether its attributes are the newest that there are, and it goes with this name. */
static bool may_go_locked(const struct request *req, const struct inode *inode)
{
	return inode->attr_valid && !inode->orphan && !inode->returned && !inode->nchanging &&
	       !inode->nlinking && !inode->unmade && !inode->queued && is_last_locked(req, inode);
}

static bool may_go(const struct request *req, struct inode *inode)
{
	bool may;

	pthread_mutex_lock(&inode->lock);
	may = may_go_locked(req, inode);
	pthread_mutex_unlock(&inode->lock);
	return may;
}

/* False: it has changed meanwhile, and `one` was not used. */
static bool let_go(const struct request *req, struct inode *inode, struct name_change *one)
{
	bool goes;

	pthread_mutex_lock(&inode->lock);
	goes = may_go_locked(req, inode);
	if (goes) {
		inode->orphan = true;
		inode->commit.ended = inode_return_settle;
		inode->attr.nlink = 0;
		inode->attr.ctime = change_time(inode->attr.ctime, one->time);
		inode->changed = true;
		name_queue_add_locked(inode->fs->name_queue, one);
	}
	pthread_mutex_unlock(&inode->lock);
	return goes;
}

static bool remove_name_of(struct request *req, struct inode *inode)
{
	struct fs *fs = req->thread->fs;
	struct inode *dir = op_of(req)->inode;
	int64_t now = session_time(fs->session);
	struct name_change *one = name_change_new(inode, dir, req->args.name, now);
	struct attr attr;

	if (!one)
		return false;
	if (!make_here_touch(dir, now, &attr) || !let_go(req, inode, one)) {
		name_change_drop(one);
		return false;
	}
	if (req->op == OP_RMDIR)
		make_here_count_link(dir, -1);
	inode_names_remove(dir, req->args.name);
	local_answer_name_is(req, dir, req->args.name, 0);
	inode_return_settle(inode, req->thread);
	name_queue_added(fs->name_queue, req->thread);
	return true;
}

bool remove_here(struct request *req)
{
	struct fs *fs = req->thread->fs;
	struct inode *dir = op_of(req)->inode, *inode;
	bool removed;
	uint64_t ino;

	if (!make_here_is_on(fs) || !make_here_is_time(req) || !name_queue_has_room(fs->name_queue))
		return false;
	ino = local_answer_name_of(req, dir, req->args.name);
	inode = ino ? inode_find(fs, ino) : NULL;
	if (!inode)
		return false;
	removed = may_go(req, inode) && remove_name_of(req, inode);
	inode_put(inode);
	return removed;
}
