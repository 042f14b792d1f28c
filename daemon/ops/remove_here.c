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
static bool is_last_locked(const struct inode *inode, bool is_dir)
{
	if (is_dir)
		return S_ISDIR(inode->type) && dir_names_are_none(&inode->names);
	return !S_ISDIR(inode->type) && inode->attr.nlink == 1;
}

/* Whether its attributes are the newest that there are, and it goes with this name. */
static bool may_go_locked(const struct inode *inode, bool is_dir)
{
	return inode->attr_valid && !inode->orphan && !inode->returned && !inode->nchanging &&
	       !inode->nlinking && !inode->unmade && !inode->queued &&
	       is_last_locked(inode, is_dir);
}

static bool may_go(struct inode *inode, bool is_dir)
{
	bool may;

	pthread_mutex_lock(&inode->lock);
	may = may_go_locked(inode, is_dir);
	pthread_mutex_unlock(&inode->lock);
	return may;
}

static void go_locked(struct inode *inode, int64_t time)
{
	inode->orphan = true;
	inode->commit.ended = inode_return_settle;
	inode->attr.nlink = 0;
	inode->attr.ctime = change_time(inode->attr.ctime, time);
	inode_changed_here_locked(inode);
}

/* False: it has changed meanwhile, and `one` was not used. */
static bool let_go(struct inode *inode, bool is_dir, struct name_change *one)
{
	bool goes;

	pthread_mutex_lock(&inode->lock);
	goes = may_go_locked(inode, is_dir);
	if (goes) {
		go_locked(inode, one->time);
		name_queue_add_locked(inode->fs->name_queue, one);
	}
	pthread_mutex_unlock(&inode->lock);
	return goes;
}

bool remove_here_may_go(struct inode *inode)
{
	return may_go(inode, false);
}

bool remove_here_let_go(struct inode *inode, struct name_change *one)
{
	bool goes;

	pthread_mutex_lock(&inode->lock);
	goes = may_go_locked(inode, false);
	if (goes) {
		go_locked(inode, one->time);
		inode->queued = one;
	}
	pthread_mutex_unlock(&inode->lock);
	return goes;
}

void remove_here_take_back(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode->orphan = false;
	inode->commit.ended = NULL;
	inode->attr.nlink = 1;
	inode->queued = NULL;
	pthread_mutex_unlock(&inode->lock);
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
	if (!make_here_touch(dir, now, &attr) || !let_go(inode, req->op == OP_RMDIR, one)) {
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
	removed = may_go(inode, req->op == OP_RMDIR) && remove_name_of(req, inode);
	inode_put(inode);
	return removed;
}
