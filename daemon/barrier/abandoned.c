#include "daemon/barrier/abandoned.h"

#include <fcntl.h>

#include "daemon/kcache/expire.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"

static bool there_is_one(const struct fs *fs)
{
	return atomic_load_explicit(&fs->abandoned->n, memory_order_relaxed) > 0;
}

void abandoned_init(struct abandoned *l, struct fs *fs)
{
	atomic_init(&l->n, 0);
	barrier_init(&l->hold, fs, OP_AT_ABANDONED, there_is_one);
}

/* ---- what goes on ---------------------------------------------------------------------------- */

void abandoned_make(struct request *req, int error)
{
	struct op *op = op_of(req);

	/* The ticks come again for an operation that has not begun yet. */
	if (req->replied || !op->inode)
		return;
	op->leftover = inode_ref(op->inode);
	op_is_inside(req, &op->abandoned_hold, abandoned_end);
	__atomic_add_fetch(&op->leftover->nleftovers, 1, __ATOMIC_SEQ_CST);
	atomic_fetch_add(&req->thread->fs->abandoned->n, 1);
	request_abandon(req, error);
	op_watch(req);
}

void abandoned_end(struct request *req)
{
	struct op *op = op_of(req);
	struct abandoned *l = req->thread->fs->abandoned;

	op_has_left(req, &op->abandoned_hold);
	expire_changed(req);
	__atomic_sub_fetch(&op->leftover->nleftovers, 1, __ATOMIC_SEQ_CST);
	inode_put(steal_ptr(&op->leftover));
	if (atomic_fetch_sub(&l->n, 1) == 1)
		barrier_wake(&l->hold);
}

/* ---- what waits ------------------------------------------------------------------------------ */

static bool may_change(const struct request *req)
{
	struct inode *inode = op_inode_of(req);
	bool may = __atomic_load_n(&inode->nleftovers, __ATOMIC_SEQ_CST) > 0;

	inode_put(inode);
	return may;
}

/* Attributes are known here, with the server or without it, and an unmount asks for nothing else.
 * So only GETATTR of a file whose attributes are about to change has to wait. */
static bool must_wait(struct request *req)
{
	switch (req->op) {
	case OP_FORGET:
	case OP_RELEASE:
	case OP_RELEASEDIR:
	case OP_OPENDIR:
	case OP_STATFS:
	/* These are about what was written, not about what is yet to be. */
	case OP_FLUSH:
	case OP_FSYNC:
	case OP_FSYNCDIR:
		return false;
	case OP_OPEN:
		return req->args.flags & O_TRUNC;
	/* The kernel's writing back, which the kernel waits for where no signal reaches. The
	 * inode's gate orders it, and its pages were changed before, or read since. */
	case OP_WRITE:
		return !req->args.cached;
	case OP_GETATTR:
	case OP_STATX:
		return may_change(req);
	/* The page of a READ for the cache is locked meanwhile. */
	case OP_READ:
		return !req->args.cached || may_change(req);
	default:
		return true;
	}
}

bool abandoned_enter(struct request *req, void (*then)(struct request *req, int status))
{
	struct fs *fs = req->thread->fs;

	if (!there_is_one(fs) || !must_wait(req))
		return true;
	barrier_hold(&fs->abandoned->hold, req, then);
	return false;
}
