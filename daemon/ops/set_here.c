#include "daemon/ops/set_here.h"

#include <sys/stat.h>

#include "common/rpc/set_attr.h"
#include "daemon/file/inode.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/make_here.h"
#include "daemon/ops/set_along.h"

static bool is_asked_for(const struct rpc_setattr *set)
{
	return !(set->valid & ~(uint32_t)(SET_MODE | SET_OWNERS | SET_ATIMES | SET_MTIMES));
}

/* Whether its attributes are the newest that there are, and nothing goes with these. */
static bool may_set_locked(const struct inode *dir, uint32_t valid)
{
	if (!dir->attr_valid || dir->nchanging || dir->orphan || dir->returned)
		return false;
	if (valid & SET_MODE && dir->attr.flags & ATTR_ACL)
		return false;
	return !(valid & SET_ATIMES) || (!dir->access.held && !dir->commit.running);
}

/* The server is told what was made of it, so it has no clock to ask. */
static void fill(struct name_change *one, const struct attr *attr, uint32_t valid)
{
	one->valid = valid & (SET_MODE | SET_OWNERS);
	one->valid |= valid & SET_ATIMES ? SET_ATIME : 0;
	one->valid |= valid & SET_MTIMES ? SET_MTIME : 0;
	one->mode = attr->mode & 07777;
	one->uid = attr->uid;
	one->gid = attr->gid;
	one->atime = attr->atime;
	one->mtime = attr->mtime;
	one->time = attr->ctime;
}

/* A link that the server does not know yet. */
static bool is_new_link_locked(const struct inode *inode)
{
	return inode->queued && inode->queued->kind == NAME_SYMLINK;
}

static void set_locked(struct inode *dir, const struct rpc_setattr *set, struct name_change *one)
{
	set_attr(&dir->attr, set, one->time);
	inode_changed_here_locked(dir);
	if (set->valid & SET_ATIMES) {
		dir->access.dirty = false;
		dir->access.until_ms = 0;
	}
	fill(one, &dir->attr, set->valid);
	name_queue_add_locked(dir->fs->name_queue, one);
}

static bool set_it(struct inode *dir, const struct rpc_setattr *set)
{
	bool is_link = S_ISLNK(dir->type);
	struct name_change *one = NULL;

	pthread_mutex_lock(&dir->lock);
	if (may_set_locked(dir, set->valid) && (!is_link || is_new_link_locked(dir)))
		one = name_change_new_set(
			dir, is_link ? dir->queued->dir : NULL, session_time(dir->fs->session));
	if (one)
		set_locked(dir, set, one);
	pthread_mutex_unlock(&dir->lock);
	return one;
}

/* A symbolic link's mode means nothing. */
static bool is_settable(const struct inode *inode, const struct rpc_setattr *set)
{
	return S_ISDIR(inode->type) || (S_ISLNK(inode->type) && !(set->valid & SET_MODE));
}

bool set_here(struct request *req, const struct rpc_setattr *set)
{
	struct inode *dir = op_of(req)->inode;
	struct fs *fs = req->thread->fs;

	if (!is_settable(dir, set) || !is_asked_for(set) || !make_here_is_on(fs) ||
		!make_here_is_time(req) || !name_queue_has_room(fs->name_queue) ||
		!kernel_owner_is_right(dir) || unmade_any_in(fs->unmade, dir->ino) ||
		!set_it(dir, set))
		return false;
	name_queue_added(fs->name_queue, req->thread);
	return true;
}

bool set_here_list(struct request *req)
{
	struct inode *dir = op_of(req)->inode;
	struct rpc_setattr set = {.valid = SET_MODE};
	struct attr attr;

	return S_ISDIR(dir->type) && inode_attr(dir, &attr) &&
	       set_along_mode_of_list(req, &attr, &set.mode) && set_here(req, &set);
}
