#include "daemon/ops/move_here.h"

#include <stdio.h>
#include <string.h>

#include "common/rpc/change_time.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/inode_path.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/name_queue.h"
#include "daemon/lease/local_answer.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/make_here.h"
#include "daemon/ops/remove_here.h"

static bool may_move_locked(const struct inode *inode)
{
	return inode->attr_valid && !inode->orphan && !inode->returned && !inode->nchanging &&
	       !inode->nlinking && !inode->unmade && !inode->queued;
}

static bool may_move(struct inode *inode)
{
	bool may;

	pthread_mutex_lock(&inode->lock);
	may = may_move_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return may;
}

/* False: it has changed meanwhile. */
static bool queue_move(struct inode *inode, struct name_change *one)
{
	bool moves;

	pthread_mutex_lock(&inode->lock);
	moves = may_move_locked(inode);
	if (moves) {
		inode->attr.ctime = change_time(inode->attr.ctime, one->time);
		inode_changed_here_locked(inode);
		name_queue_add_locked(inode->fs->name_queue, one);
	}
	pthread_mutex_unlock(&inode->lock);
	return moves;
}

static bool touch_both(const struct name_place *from, const struct name_place *to, int64_t now)
{
	struct attr attr;

	return make_here_touch(from->dir, now, &attr) &&
	       (to->dir == from->dir || make_here_touch(to->dir, now, &attr));
}

/* An inode loses its name first, and gets it back if the other one can't be moved any more. */
static bool change_names(
	struct request *req, const struct name_place *from, const struct name_place *to)
{
	int64_t now = session_time(req->thread->fs->session);
	struct name_change *one = name_change_new_move(from, to, now);

	if (!one)
		return false;
	if (!touch_both(from, to, now) || (to->inode && !remove_here_let_go(to->inode, one))) {
		name_change_drop(one);
		return false;
	}
	if (queue_move(from->inode, one))
		return true;
	if (to->inode) {
		remove_here_take_back(to->inode);
		/* Its last handle may have been closed meanwhile. */
		inode_return_settle(to->inode, req->thread);
	}
	name_change_drop(one);
	return false;
}

/* A name that is replaced is in its directory already. */
static void note_names(
	struct request *req, const struct name_place *from, const struct name_place *to)
{
	inode_names_remove(from->dir, from->name);
	local_answer_name_is(req, from->dir, from->name, 0);
	if (!to->inode)
		inode_names_add(to->dir, to->name);
	local_answer_name_is(req, to->dir, to->name, from->inode->ino);
	path_note(from->inode, to->dir->ino, to->name);
}

static bool move(struct request *req, const struct name_place *from, const struct name_place *to)
{
	struct fs *fs = req->thread->fs;

	if (!change_names(req, from, to))
		return false;
	note_names(req, from, to);
	if (to->inode)
		inode_return_settle(to->inode, req->thread);
	name_queue_added(fs->name_queue, req->thread);
	return true;
}

/* The inode that has the name, with a reference; NULL: that is not known, or there is none. */
static struct inode *inode_at(struct request *req, struct inode *dir, const char *name)
{
	uint64_t ino = local_answer_name_of(req, dir, name);

	return ino ? inode_find(req->thread->fs, ino) : NULL;
}

static bool lacks(struct request *req, struct inode *dir, const char *name)
{
	return inode_names_lack(dir, name) || local_answer_lacks_name(req, dir, name);
}

/* Whether the new name is free, or becomes free with the inode that has it. */
static bool may_take(
	struct request *req, const struct name_place *from, const struct name_place *to)
{
	if (!to->inode)
		return strlen(to->name) <= strlen(from->name) && lacks(req, to->dir, to->name);
	return !(req->args.flags & RENAME_NOREPLACE) && to->inode != from->inode &&
	       remove_here_may_go(to->inode);
}

/* A directory that keeps its parent can't come below itself. */
static bool is_right_kind(const struct name_place *from, const struct name_place *to)
{
	return !S_ISDIR(from->inode->type) || (from->dir == to->dir && !to->inode);
}

static bool is_asked_for(const struct request *req)
{
	return !(req->args.flags & ~(uint32_t)RENAME_NOREPLACE);
}

bool move_here(struct request *req, struct inode *new_dir)
{
	struct fs *fs = req->thread->fs;
	struct name_place from = {.dir = op_of(req)->inode, .name = req->args.name};
	struct name_place to = {.dir = new_dir, .name = req->args.name2};
	bool moved;

	if (!is_asked_for(req) || !make_here_is_on(fs) || !make_here_is_time(req) ||
		!name_queue_has_room(fs->name_queue))
		return false;
	from.inode = inode_at(req, from.dir, from.name);
	to.inode = inode_at(req, to.dir, to.name);
	moved = from.inode && is_right_kind(&from, &to) && may_move(from.inode) &&
		may_take(req, &from, &to) && move(req, &from, &to);
	if (from.inode)
		inode_put(from.inode);
	if (to.inode)
		inode_put(to.inode);
	return moved;
}
