#include "daemon/ops/make_here.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/rpc/change_time.h"
#include "common/rpc/rights.h"
#include "daemon/file/commit.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/unmade.h"
#include "daemon/lease/local_answer.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/finish.h"

bool make_here_is_on(const struct fs *fs)
{
	return fs_knows_names(fs) && session_squash(fs->session).kind == SQUASH_NONE &&
	       !session_quotas(fs->session);
}

static bool is_asked_for(const struct request *req)
{
	uint32_t flags = req->args.flags;

	return (flags & O_ACCMODE) != O_RDONLY && !(flags & (O_SYNC | O_DSYNC));
}

bool make_here_is_time(struct request *req)
{
	struct fs *fs = req->thread->fs;

	return op_ttl(req).entry_ms && !session_is_read_only(fs->session) &&
	       !session_lost(fs->session) && !session_freezing(fs->session) &&
	       !atomic_load(&fs->committing_all);
}

/* Whether its attributes are the newest that there are. */
static bool is_known_locked(const struct inode *dir)
{
	return dir->attr_valid && !dir->nchanging && !dir->orphan && S_ISDIR(dir->type);
}

static bool inherits(const struct attr *dir)
{
	return dir->flags & ATTR_DEFAULT_ACL;
}

static bool is_known(struct inode *dir)
{
	bool known;

	pthread_mutex_lock(&dir->lock);
	known = is_known_locked(dir) && !inherits(&dir->attr);
	pthread_mutex_unlock(&dir->lock);
	return known;
}

bool make_here_touch(struct inode *dir, int64_t now, struct attr *attr)
{
	bool ok;

	pthread_mutex_lock(&dir->lock);
	ok = is_known_locked(dir);
	if (ok) {
		dir->attr.mtime = change_time(dir->attr.mtime, now);
		dir->attr.ctime = change_time(dir->attr.ctime, now);
		inode_changed_here_locked(dir);
	}
	*attr = dir->attr;
	pthread_mutex_unlock(&dir->lock);
	return ok;
}

void make_here_count_link(struct inode *dir, int change)
{
	pthread_mutex_lock(&dir->lock);
	dir->attr.nlink += (uint32_t)change;
	pthread_mutex_unlock(&dir->lock);
}

/* A link has all rights, whatever the umask. */
static struct rpc_make what(struct request *req, uint32_t type, int64_t now)
{
	return (struct rpc_make){
		.parent = op_of(req)->inode->ino,
		.time = now,
		.mode = type | (type == S_IFLNK ? 0777 : req->args.mode & 07777),
		.umask = type == S_IFLNK ? 0 : req->args.umask,
		.uid = req->uid,
		.gid = req->gid,
		.name = op_name(req->args.name),
	};
}

/* As the server does it: namespace/make.c, names.c. */
static struct attr attr_of(uint64_t ino, const struct rpc_make *make, const struct attr *dir)
{
	bool is_dir = S_ISDIR(make->mode);

	return (struct attr){
		.ino = ino,
		.generation = dir->generation,
		.mode = mode_of_new_inode(make->mode, make->umask) |
			(is_dir ? dir->mode & S_ISGID : 0),
		.nlink = is_dir ? 2 : 1,
		.size = is_dir ? PAGE_BYTES : 0,
		.uid = make->uid,
		.gid = group_of_new_inode(dir->mode, dir->gid, make->gid),
		.atime = make->time,
		.mtime = make->time,
		.ctime = make->time,
		.btime = make->time,
	};
}

/* No honest server lends a number that is an inode's. */
static bool is_new(struct inode *inode)
{
	bool new;

	pthread_mutex_lock(&inode->lock);
	new = !inode->type;
	pthread_mutex_unlock(&inode->lock);
	return new;
}

static void make_dirty(struct request *req, struct inode *inode, struct unmade *file)
{
	pthread_mutex_lock(&inode->lock);
	inode->unmade = file;
	unmade_add(inode->fs->unmade, file);
	commit_dirty_locked(inode, req->thread);
	pthread_mutex_unlock(&inode->lock);
}

/* The number is used up, whatever becomes of it. */
static struct inode *make_with(struct request *req, uint64_t ino)
{
	struct fs *fs = req->thread->fs;
	struct op *op = op_of(req);
	struct rpc_make make = what(req, S_IFREG, session_time(fs->session));
	struct unmade *file = unmade_new(ino, &make);
	struct inode *inode = file ? inode_get(fs, ino) : NULL;
	struct attr dir, attr;

	if (!inode || !is_new(inode) || !make_here_touch(op->inode, make.time, &dir) ||
		inherits(&dir)) {
		if (inode)
			inode_put(inode);
		unmade_drop(file);
		unmade_lose_number(fs->unmade);
		return NULL;
	}
	attr = attr_of(ino, &make, &dir);
	inode_learn_new(inode, &attr, inode_epoch(fs));
	/* First: a list that is asked for from now on waits until the server has the file. One from
	 * before tells nothing, since the name is counted behind it. */
	make_dirty(req, inode, file);
	inode_names_add(op->inode, req->args.name);
	local_answer_name_is(req, op->inode, req->args.name, ino);
	inode_see(inode, &attr, &op->seen);
	return inode;
}

static bool lacks_name(struct request *req)
{
	struct inode *dir = op_of(req)->inode;

	return inode_names_lack(dir, req->args.name) ||
	       local_answer_lacks_name(req, dir, req->args.name);
}

struct inode *make_here(struct request *req)
{
	struct fs *fs = req->thread->fs;
	uint64_t ino;

	if (!make_here_is_on(fs) || !is_asked_for(req) || !make_here_is_time(req) ||
		!lacks_name(req) || !is_known(op_of(req)->inode))
		return NULL;
	ino = unmade_take_number(fs->unmade);
	return ino ? make_with(req, ino) : NULL;
}

/* ---- directories, symbolic links ------------------------------------------------------------- */

static struct name_change *new_change(
	struct request *req, struct inode *made, const struct rpc_make *make)
{
	const struct name_place at = {op_of(req)->inode, made, req->args.name};
	struct name_change *one;

	if (S_ISLNK(make->mode))
		return name_change_new_symlink(&at, req->args.name2, make->time);
	one = name_change_new(made, at.dir, at.name, make->time);
	if (one)
		one->kind = NAME_MKDIR;
	return one;
}

/* Its times are given to the parent first. NULL: that is not possible. */
static struct name_change *change_of(
	struct request *req, struct inode *made, const struct rpc_make *make, struct attr *dir)
{
	struct inode *parent = op_of(req)->inode;
	struct name_change *one =
		is_new(made) && make_here_touch(parent, make->time, dir) && !inherits(dir)
			? new_change(req, made, make)
			: NULL;

	if (!one)
		return NULL;
	one->mode = make->mode & 07777;
	one->umask = make->umask;
	one->uid = make->uid;
	one->gid = make->gid;
	return one;
}

static void queue(struct inode *made, struct name_change *one)
{
	pthread_mutex_lock(&made->lock);
	name_queue_add_locked(made->fs->name_queue, one);
	pthread_mutex_unlock(&made->lock);
}

static struct inode *make_named_with(struct request *req, uint32_t type, uint64_t ino)
{
	struct fs *fs = req->thread->fs;
	struct op *op = op_of(req);
	struct rpc_make make = what(req, type, session_time(fs->session));
	struct inode *made = inode_get(fs, ino);
	struct attr dir, attr;
	struct name_change *one = made ? change_of(req, made, &make, &dir) : NULL;

	if (!one) {
		if (made)
			inode_put(made);
		unmade_lose_number(fs->unmade);
		return NULL;
	}
	attr = attr_of(ino, &make, &dir);
	if (S_ISLNK(type))
		attr.size = one->text_len;
	inode_learn_new(made, &attr, inode_epoch(fs));
	/* First, as in make_with(). */
	queue(made, one);
	make_here_count_link(op->inode, S_ISDIR(type));
	inode_names_add(op->inode, req->args.name);
	local_answer_name_is(req, op->inode, req->args.name, ino);
	inode_see(made, &attr, &op->seen);
	name_queue_added(fs->name_queue, req->thread);
	return made;
}

static bool has_room_for_link(struct inode *dir)
{
	bool has;

	pthread_mutex_lock(&dir->lock);
	has = dir->attr.nlink < MAKE_HERE_LINKS_MAX;
	pthread_mutex_unlock(&dir->lock);
	return has;
}

bool make_here_may_name(struct request *req)
{
	struct fs *fs = req->thread->fs;

	return make_here_is_on(fs) && make_here_is_time(req) &&
	       name_queue_has_room(fs->name_queue) && lacks_name(req) &&
	       is_known(op_of(req)->inode);
}

static struct inode *make_named(struct request *req, uint32_t type)
{
	uint64_t ino = make_here_may_name(req) ? unmade_take_number(req->thread->fs->unmade) : 0;

	return ino ? make_named_with(req, type, ino) : NULL;
}

struct inode *make_directory_here(struct request *req)
{
	return has_room_for_link(op_of(req)->inode) ? make_named(req, S_IFDIR) : NULL;
}

struct inode *make_symlink_here(struct request *req)
{
	size_t len = strlen(req->args.name2);

	return len && len <= SYMLINK_BYTES_SHORT ? make_named(req, S_IFLNK) : NULL;
}
