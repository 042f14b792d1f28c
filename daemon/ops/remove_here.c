#include "daemon/ops/remove_here.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/inode_return.h"
#include "daemon/lease/local_answer.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/make_here.h"

enum { REFUSED_LOG_MS = 1000, REFUSED_LOG_BURST = 20 };

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
	       !inode->nlinking && !inode->unmade && !inode->removed && is_last_locked(req, inode);
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
static bool let_go(const struct request *req, struct inode *inode, struct removed *one)
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
		removed_add_locked(inode->fs->removed, one);
	}
	pthread_mutex_unlock(&inode->lock);
	return goes;
}

/* Each directory in it counts as a link. */
static void count_link_less(struct inode *dir)
{
	pthread_mutex_lock(&dir->lock);
	dir->attr.nlink--;
	pthread_mutex_unlock(&dir->lock);
}

static bool remove_name_of(struct request *req, struct inode *inode)
{
	struct fs *fs = req->thread->fs;
	struct inode *dir = op_of(req)->inode;
	int64_t now = session_time(fs->session);
	struct removed *one = removed_new(inode, dir, req->args.name, now);
	struct attr attr;

	if (!one)
		return false;
	if (!make_here_touch(dir, now, &attr) || !let_go(req, inode, one)) {
		removed_drop(one);
		return false;
	}
	if (req->op == OP_RMDIR)
		count_link_less(dir);
	inode_names_remove(dir, req->args.name);
	local_answer_name_is(req, dir, req->args.name, 0);
	inode_return_settle(inode, req->thread);
	removed_added(fs->removed, req->thread);
	return true;
}

bool remove_here(struct request *req)
{
	struct fs *fs = req->thread->fs;
	struct inode *dir = op_of(req)->inode, *inode;
	bool removed;
	uint64_t ino;

	if (!make_here_is_on(fs) || !make_here_is_time(req) || !removed_has_room(fs->removed))
		return false;
	ino = local_answer_name_of(req, dir, req->args.name);
	inode = ino ? inode_find(fs, ino) : NULL;
	if (!inode)
		return false;
	removed = may_go(req, inode) && remove_name_of(req, inode);
	inode_put(inode);
	return removed;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Nothing that is known of the directory is believed any more. */
static void doubt_directory(struct inode *dir, const struct removed *one, int status)
{
	pthread_mutex_lock(&dir->lock);
	dir->attr_valid = false;
	dir->names_error = status;
	dir_names_forget(&dir->names, &dir->fs->inodes->names);
	pthread_mutex_unlock(&dir->lock);
	local_answer_forget_name(dir, one->name);
}

/* It is there again. The session's end is no refusal of the server's, and is logged as such. */
static void refused(struct inode *inode, const struct removed *one, int status)
{
	static struct log_ratelimit limit = {.burst = REFUSED_LOG_BURST};
	struct fs *fs = inode->fs;

	pthread_mutex_lock(&inode->lock);
	inode->orphan = inode->returned = false;
	inode->attr_valid = false;
	inode->commit.ended = NULL;
	dir_names_forget(&inode->names, &fs->inodes->names);
	pthread_mutex_unlock(&inode->lock);
	if (log_ratelimit_ok(&limit, REFUSED_LOG_MS))
		log_error("server %s: it did not remove inode %" PRIu64
			  ", which a program has removed: %s",
			session_server(fs->session), inode->ino, errno_text(status));
	doubt_directory(one->dir, one, status);
}

const struct removed_hooks remove_here_hooks = {
	.gives_up_locked = inode_return_gives_up_locked,
	.settle = inode_return_settle_removed,
	.refused = refused,
};
