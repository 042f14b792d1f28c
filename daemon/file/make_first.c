#include "daemon/file/make_first.h"

#include <errno.h>

#include "daemon/file/commit.h"
#include "daemon/file/inode.h"
#include "daemon/file/name_queue.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"

static struct op_about about_two(uint64_t a, uint64_t b)
{
	return (struct op_about){.ino = {a, b}};
}

/* RMDIR, RENAME and LINK may be about a directory that the request names by its parent. */
static struct op_about about_whom(const struct rpc_request *rpc)
{
	switch (rpc->op) {
	case RPC_LOOKUP:
	case RPC_UNLINK:
		return about_two(rpc->name.parent, 0);
	case RPC_GETATTR:
	case RPC_READLINK:
		return about_two(rpc->ino.ino, 0);
	case RPC_READDIR:
		return about_two(rpc->readdir.ino, 0);
	case RPC_EXTENTS:
		return about_two(rpc->extents.ino, 0);
	case RPC_GETXATTR:
		return about_two(rpc->getxattr.ino, 0);
	case RPC_LISTXATTR:
		return about_two(rpc->listxattr.ino, 0);
	case RPC_SETATTR:
		return about_two(rpc->setattr.ino, 0);
	case RPC_SETXATTR:
		return about_two(rpc->setxattr.ino, 0);
	case RPC_REMOVEXATTR:
		return about_two(rpc->removexattr.ino, 0);
	case RPC_FALLOCATE:
		return about_two(rpc->fallocate.ino, 0);
	case RPC_COPY:
		return about_two(rpc->copy.src, rpc->copy.dst);
	case RPC_CREATE:
	case RPC_TMPFILE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
		return about_two(rpc->create.parent, 0);
	case RPC_STATFS:
	case RPC_UNPROTECT:
	case RPC_STAGE:
	case RPC_GRANT:
	case RPC_QUOTA:
		return about_two(0, 0);
	default:
		return (struct op_about){.all = true};
	}
}

/* Pages, quota and the first parts of a value are about no name. */
static bool comes_behind(const struct rpc_request *rpc)
{
	return rpc_op_info(rpc->op)->mutates && rpc->op != RPC_GRANT && rpc->op != RPC_QUOTA &&
	       rpc->op != RPC_STAGE;
}

struct op_about make_first_about(const struct rpc_request *rpc)
{
	struct op_about about = about_whom(rpc);

	about.changes = comes_behind(rpc);
	if (rpc->op == RPC_LOOKUP)
		about.name = rpc->name.name;
	return about;
}

static bool next(struct request *req);

static void one_is_made(struct request *req, int status)
{
	struct op *op = op_of(req);

	op->wait = OP_RUNS;
	if (status == -ECANCELED)
		op->made(req, status);
	else if (next(req))
		op->made(req, 0);
}

/* The server has refused its MAKE, and nothing has changed since: fsync and close ask again. */
static bool is_refused(struct inode *inode)
{
	bool refused;

	pthread_mutex_lock(&inode->lock);
	refused = inode->commit.refused && !inode->commit.running;
	pthread_mutex_unlock(&inode->lock);
	return refused;
}

/* Sends all that it is about, many in one message, before it waits for the first one. */
static void send_all(struct request *req)
{
	struct op *op = op_of(req);
	struct fs *fs = req->thread->fs;
	struct make_batch *makes = fs_thread_of(req->thread)->makes;
	uint64_t number = 0, ino;

	make_batch_hold(makes);
	while ((ino = unmade_find(fs->unmade, &op->about, op->made_last, &number))) {
		struct inode *inode = inode_find(fs, ino);

		if (!inode)
			continue;
		if (!is_refused(inode))
			commit_start(inode, req->thread);
		inode_put(inode);
	}
	make_batch_let_go(makes);
}

static bool send_and_wait(struct request *req)
{
	send_all(req);
	return next(req);
}

/* True: all are made. */
static bool next(struct request *req)
{
	struct op *op = op_of(req);
	struct fs *fs = req->thread->fs;
	uint64_t ino;

	while ((ino = unmade_find(fs->unmade, &op->about, op->made_last, &op->made_number))) {
		struct inode *inode = inode_find(fs, ino);
		int status;
		bool clean = !inode || is_refused(inode) ||
			     commit_wait(req, inode, &status, one_is_made);

		if (inode)
			inode_put(inode);
		if (!clean)
			return false;
	}
	return true;
}

/* Those that it comes behind are removed at the server. */
static void all_are_removed(struct request *req, int status)
{
	struct op *op = op_of(req);

	op->wait = OP_RUNS;
	if (status || send_and_wait(req))
		op->made(req, status);
}

bool make_first(struct request *req, const struct op_about *about,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct fs *fs = req->thread->fs;

	op->made_last = 0;
	if (!unmade_any(fs->unmade) && !name_queue_any(fs->name_queue))
		return true;
	op->about = *about;
	op->made_number = 0;
	op->made_last = unmade_last(fs->unmade);
	op->made = then;
	if (!name_queue_wait(req, name_queue_before(fs->name_queue, about), all_are_removed))
		return false;
	return send_and_wait(req);
}

static int refusal_of(struct inode *inode)
{
	int error;

	pthread_mutex_lock(&inode->lock);
	error = inode->unmade && inode->commit.refused ? inode->commit.error : 0;
	pthread_mutex_unlock(&inode->lock);
	return error;
}

int make_first_refusal(struct request *req)
{
	struct op *op = op_of(req);
	struct fs *fs = req->thread->fs;
	uint64_t number = 0, ino;
	int error = 0;

	while (!error && (ino = unmade_find(fs->unmade, &op->about, op->made_last, &number))) {
		struct inode *inode = inode_find(fs, ino);

		if (!inode)
			continue;
		error = refusal_of(inode);
		inode_put(inode);
	}
	return error;
}

/* 0: it was made, or removed, meanwhile. */
static uint64_t parent_of_unmade(struct fs *fs, uint64_t ino)
{
	struct inode *inode = inode_find(fs, ino);
	uint64_t parent;

	if (!inode)
		return 0;
	pthread_mutex_lock(&inode->lock);
	parent = inode->unmade ? inode->unmade->make.parent : 0;
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
	return parent;
}

void make_first_lost(struct fs *fs)
{
	static const struct op_about all = {.all = true};
	uint64_t number = 0, last = unmade_last(fs->unmade), ino;

	while ((ino = unmade_find(fs->unmade, &all, last, &number))) {
		uint64_t parent = parent_of_unmade(fs, ino);
		struct inode *dir = parent ? inode_find(fs, parent) : NULL;

		if (!dir)
			continue;
		pthread_mutex_lock(&dir->lock);
		dir->names_error = -EIO;
		pthread_mutex_unlock(&dir->lock);
		inode_put(dir);
	}
}
