#include "daemon/ops/link_here.h"

#include "common/rpc/change_time.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/unmade.h"
#include "daemon/lease/local_answer.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/make_here.h"

static bool may_link_locked(const struct inode *inode)
{
	return inode->attr_valid && !inode->orphan && !inode->returned && !inode->nchanging &&
	       !inode->nlinking && !inode->unmade && !inode->queued && inode->attr.nlink &&
	       inode->attr.nlink < MAKE_HERE_LINKS_MAX;
}

static bool may_link(struct inode *inode)
{
	bool may;

	pthread_mutex_lock(&inode->lock);
	may = may_link_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return may;
}

/* False: it has changed meanwhile. */
static bool queue_link(struct inode *inode, struct name_change *one, struct attr *attr)
{
	bool links;

	pthread_mutex_lock(&inode->lock);
	links = may_link_locked(inode);
	if (links) {
		inode->attr.nlink++;
		inode->attr.ctime = change_time(inode->attr.ctime, one->time);
		inode_changed_here_locked(inode);
		name_queue_add_locked(inode->fs->name_queue, one);
		*attr = inode->attr;
	}
	pthread_mutex_unlock(&inode->lock);
	return links;
}

/* The directory's times are given to it first. */
static bool link_with(struct request *req, struct inode *inode, uint64_t number)
{
	struct fs *fs = req->thread->fs;
	struct inode *dir = op_of(req)->inode;
	struct name_change *one =
		name_change_new(inode, dir, req->args.name, session_time(fs->session));
	struct attr attr;

	if (!one)
		return false;
	one->kind = NAME_LINK;
	one->lent = number;
	if (!make_here_touch(dir, one->time, &attr) || !queue_link(inode, one, &attr)) {
		name_change_drop(one);
		return false;
	}
	inode_names_add(dir, req->args.name);
	local_answer_name_is(req, dir, req->args.name, inode->ino);
	inode_see(inode, &attr, &op_of(req)->seen);
	name_queue_added(fs->name_queue, req->thread);
	return true;
}

bool link_here(struct request *req, struct inode *inode)
{
	struct fs *fs = req->thread->fs;
	uint64_t number;

	if (!make_here_may_name(req) || !may_link(inode))
		return false;
	number = unmade_take_room(fs->unmade);
	if (!number)
		return false;
	if (link_with(req, inode, number))
		return true;
	unmade_lose_room(fs->unmade);
	return false;
}
