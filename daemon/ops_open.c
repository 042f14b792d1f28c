/* OPEN, RELEASE and those of directories. No RPC, unless the file is to be cut.
 *
 * A file opened for writing only goes past the kernel's cache: large copies then arrive in requests
 * of 1 MiB. The others use the cache and keep it, since nobody else changes the file; what is
 * written past it is dropped from it (ops_write.c).
 */
#include <errno.h>
#include <fcntl.h>

#include "daemon/fs_internal.h"
#include "daemon/op.h"
#include "daemon/open.h"
#include "daemon/ops.h"

static enum open_kind kind_of(uint32_t flags)
{
	return (flags & O_ACCMODE) == O_WRONLY || (flags & O_DIRECT) ? OPENED_DIRECT
								     : OPENED_CACHED;
}

static unsigned reply_flags(const struct fs *fs, enum open_kind kind)
{
	if (kind == OPENED_CACHED)
		return OPEN_KEEP_CACHE;
	return OPEN_DIRECT | (fs->features.parallel_direct_writes ? OPEN_PARALLEL_WRITES : 0);
}

static bool opens_both(uint32_t flags)
{
	return (flags & O_ACCMODE) == O_RDWR;
}

/* -ESTALE makes the kernel look the name up again: the file had lost its last one. */
static int open_count(struct inode *inode, bool cached, uint32_t flags)
{
	int r = 0;

	pthread_mutex_lock(&inode->lock);
	if (inode->returned) {
		r = -ESTALE;
	} else {
		inode->nopen++;
		inode->nopen_cached += cached;
		inode->nopen_both += opens_both(flags);
		inode->cached |= cached;
	}
	pthread_mutex_unlock(&inode->lock);
	return r;
}

static void close_count(struct inode *inode, bool cached, uint32_t flags, struct io_thread *thread)
{
	bool commit, orphan;

	pthread_mutex_lock(&inode->lock);
	inode->nopen--;
	inode->nopen_cached -= cached;
	inode->nopen_both -= opens_both(flags);
	if (!inode->nopen)
		window_return(&inode->window, &inode->fs->grants);
	orphan = inode->orphan;
	commit = !orphan && !commit_is_clean_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	if (commit)
		commit_start(inode, thread);
	if (orphan)
		returns_settle(inode, thread);
}

/* ---- OPEN ------------------------------------------------------------------------------------ */

static void open_reply(struct request *req, struct inode *inode, enum open_kind kind)
{
	unsigned flags = reply_flags(req->thread->fs, kind);
	struct ttl ttl = op_ttl(req);
	struct attr attr;

	if (req->op == OP_OPEN) {
		op_end(req);
		reply_open(req, kind, flags);
		return;
	}
	inode_attr(inode, &attr);
	inode_remember(inode);
	op_end(req);
	reply_create(req, inode_node(inode), &attr, ttl, kind, flags);
}

static void open_done(struct request *req, int status)
{
	struct inode *inode = op_of(req)->inode;
	enum open_kind kind = kind_of(req->args.flags);
	/* Whoever was told that it failed does not close it. */
	bool wanted = !req->replied;

	if (!status && wanted)
		status = open_count(inode, kind == OPENED_CACHED, req->args.flags);
	if (status || !wanted)
		op_finish(req, status);
	else
		open_reply(req, inode, kind);
}

/* The kernel does not learn from the answer that the mode has changed. */
static void open_truncated(struct request *req, int status)
{
	if (!status && (op_of(req)->set.valid & SET_MODE))
		op_invalidate(req, -1, 0, open_done);
	else
		open_done(req, status);
}

void open_inode(struct request *req, bool truncate)
{
	struct inode *inode = op_of(req)->inode;
	struct rpc_setattr set = {.valid = SET_SIZE};
	uint32_t mode, left;

	if (!truncate || !inode_is_regular(inode)) {
		open_done(req, 0);
		return;
	}
	mode = inode_mode(inode);
	left = op_mode_without_privileges(mode);
	if (req->args.kill_priv && left != mode) {
		set.valid |= SET_MODE;
		set.mode = left;
	}
	op_set_attr(req, &set, open_truncated);
}

void op_open(struct request *req)
{
	op_begin(req);
	open_inode(req, req->args.flags & O_TRUNC);
}

void op_release(struct request *req)
{
	struct op *op = op_begin(req);

	close_count(op->inode, req->args.fh == OPENED_CACHED, req->args.flags, req->thread);
	op_finish(req, 0);
}

/* ---- directories ----------------------------------------------------------------------------- */

void op_opendir(struct request *req)
{
	struct op *op = op_begin(req);
	int r = open_count(op->inode, false, O_RDONLY);

	op_end(req);
	if (r)
		reply_error(req, r);
	else
		reply_open(req, 0, 0);
}

void op_releasedir(struct request *req)
{
	struct op *op = op_begin(req);

	close_count(op->inode, false, O_RDONLY, req->thread);
	op_finish(req, 0);
}
