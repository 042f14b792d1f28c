/* FALLOCATE: [privileges] -> gate -> COMMIT of what was written -> FALLOCATE, step by step ->
 * reply.
 *
 * The server does the work, and the client forgets what it knew of the pages. Where the server has
 * no free page left, holes get pages granted to this session, which are free just as well.
 *
 * Zeros are asked for in two passes: first pages for the holes, which may fail and shows nothing,
 * then zeros for what is there. For the kernel drops its cache of the range only on a success. Two
 * passes are also made where the file is to grow from behind its end over pages that may be other
 * than zero. Between them op_grow() makes the file reach to the start of the range. If a signal
 * ends the second pass, or a hole's, between two steps, stale_pages.h drops the kernel's pages.
 */
#include <errno.h>
#include <linux/falloc.h>

#include "common/base/log.h"
#include "daemon/file/fill_holes.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/ops/statfs.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"
#include "daemon/ops/change_attr.h"
#include "daemon/file/fetch_map.h"
#include "daemon/file/gate.h"
#include "daemon/file/commit.h"
#include "daemon/file/gate_pass.h"
#include "daemon/lease/lease.h"

/* Pages that are filled from grants at a time. */
enum { FILL_PAGES = 4096 };

struct fallocate_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint32_t mode;   /* of the pass */
	uint64_t at, to; /* bytes left of it */
	bool filled;     /* by grants */
	bool changed;    /* some of the bytes */
	bool gap;        /* to be made the file's between the passes */
};

static struct fallocate_state *fallocate_state_of(struct request *req)
{
	return op_state(req, struct fallocate_state);
}

static void fallocate_finish(struct request *req, int status)
{
	struct inode *inode = op_of(req)->inode;
	uint64_t from = req->args.offset;

	if ((status || req->replied) && fallocate_state_of(req)->changed) {
		pthread_mutex_lock(&inode->lock);
		stale_pages_unseen_locked(inode, req->thread->port, from, from + req->args.len);
		pthread_mutex_unlock(&inode->lock);
	}
	op_finish(req, status);
}

static void begin_pass(struct request *req, uint32_t mode)
{
	struct fallocate_state *st = fallocate_state_of(req);

	st->mode = mode;
	st->at = req->args.offset;
	st->to = req->args.offset + req->args.len;
}

/* ---- where the server has no free page ------------------------------------------------------- */

static void fallocate_step(struct request *req, int status);
static void fill(struct request *req, int status);

static uint64_t fill_end(const struct fallocate_state *st)
{
	return min_u64((st->at >> PAGE_SHIFT) + FILL_PAGES, div_round_up(st->to, PAGE_BYTES));
}

static void fill_committed(struct request *req, int status)
{
	struct fallocate_state *st = fallocate_state_of(req);

	st->at = fill_end(st) << PAGE_SHIFT;
	if (!status && req->interrupted)
		status = -EINTR;
	if (status || st->at < st->to) {
		fill(req, status);
		return;
	}
	st->filled = true;
	begin_pass(req, st->mode);
	fallocate_step(req, 0);
}

/* The filled pages are the file's own, and zero. */
static void fill_done(struct request *req, int status)
{
	struct fallocate_state *st = fallocate_state_of(req);
	struct inode *inode = st->op.inode;

	pthread_mutex_lock(&inode->lock);
	extent_map_filled(&inode->map, st->at >> PAGE_SHIFT, fill_end(st));
	commit_dirty_locked(inode, req->thread);
	pthread_mutex_unlock(&inode->lock);
	if (status)
		fallocate_finish(req, status);
	else if (commit_wait(req, inode, &status, fill_committed))
		fill_committed(req, status);
}

static void fill_granted(struct request *req, int status)
{
	if (status)
		fill_done(req, status);
	else
		fill(req, 0);
}

static void fill(struct request *req, int status)
{
	struct fallocate_state *st = fallocate_state_of(req);
	uint64_t filled;

	if (status) {
		fallocate_finish(req, status);
		return;
	}
	if (!op_know_map(req, fill_end(st), fill))
		return;
	do {
		status = fill_holes(req, st->at >> PAGE_SHIFT, fill_end(st), &filled);
	} while (fill_lacks(status) && fill_holes_wait(req, status, fill_granted));
	if (!fill_lacks(status))
		fill_done(req, status);
}

/* ---- the server's steps ---------------------------------------------------------------------- */

/* Whether the pages granted to this session may suffice, with those that the file may already have
 * in the range. */
static bool may_fill(struct request *req, int status)
{
	const struct fallocate_state *st = fallocate_state_of(req);
	uint64_t npages = div_round_up(st->to, PAGE_BYTES) - (st->at >> PAGE_SHIFT);
	struct attr attr;

	if (status != -ENOSPC || st->filled || st->mode & FALLOC_FL_PUNCH_HOLE)
		return false;
	inode_attr(st->op.inode, &attr);
	return npages <= attr.npages + statfs_unused_pages(req->thread->fs);
}

static bool is_first_of_two(const struct request *req, const struct fallocate_state *st)
{
	return st->mode != req->args.mode;
}

static void second_pass(struct request *req)
{
	begin_pass(req, req->args.mode);
	if (fallocate_state_of(req)->gap && !req->interrupted)
		op_grow(req, req->args.offset, fallocate_step);
	else
		fallocate_step(req, req->interrupted ? -EINTR : 0);
}

static void fallocate_next(struct request *req, uint64_t done)
{
	struct fallocate_state *st = fallocate_state_of(req);

	st->changed = st->changed || st->mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
	st->at += done;
	if (st->at == st->to && !is_first_of_two(req, st)) {
		fallocate_finish(req, 0);
		return;
	}
	if (st->at == st->to)
		second_pass(req);
	else
		fallocate_step(req, req->interrupted ? -EINTR : 0);
}

static void fallocate_answered(struct request *req, const struct rpc_reply *rep)
{
	struct fallocate_state *st = fallocate_state_of(req);
	uint64_t done = rep->progress.done;
	char text[PATH_INODE_BYTES];

	inode_change_pages_end(
		st->op.inode, rep->status ? NULL : &rep->progress.attr, st->at >> PAGE_SHIFT);
	if (may_fill(req, rep->status)) {
		fill(req, 0);
	} else if (rep->status) {
		fallocate_finish(req, rep->status);
	} else if (!done || done > st->to - st->at) {
		log_error("%s: the server's progress makes no sense",
			path_name_inode(st->op.inode, text));
		fallocate_finish(req, -EIO);
	} else {
		fallocate_next(req, done);
	}
}

static void fallocate_step(struct request *req, int status)
{
	struct fallocate_state *st = fallocate_state_of(req);

	if (status) {
		fallocate_finish(req, status);
		return;
	}
	inode_change_begin(st->op.inode);
	st->op.call.req.op = RPC_FALLOCATE;
	st->op.call.req.fallocate = (struct rpc_fallocate){
		.ino = st->op.inode->ino,
		.mode = st->mode,
		.offset = st->at,
		.len = st->to - st->at,
	};
	op_rpc(req, fallocate_answered);
}

/* ---- before them ----------------------------------------------------------------------------- */

static void fallocate_begin(struct request *req, int status)
{
	struct fallocate_state *st = fallocate_state_of(req);
	uint64_t offset = req->args.offset;

	if (status || req->args.mode & FALLOC_FL_KEEP_SIZE) {
		fallocate_step(req, status);
		return;
	}
	if (!op_know_map(req, div_round_up(offset, PAGE_BYTES), fallocate_begin))
		return;
	st->gap = inode_has_doubtful_gap(st->op.inode, offset);
	if (st->gap)
		st->mode = FALLOC_FL_KEEP_SIZE;
	fallocate_step(req, 0);
}

static void fallocate_commit(struct request *req, int status)
{
	if (status || commit_wait(req, op_of(req)->inode, &status, fallocate_begin))
		fallocate_begin(req, status);
}

static void fallocate_enter(struct request *req, int status)
{
	if (status)
		op_finish(req, status);
	else if (gate_pass_enter(req, GATE_EXCLUSIVE, 0, UINT64_MAX, fallocate_commit))
		fallocate_commit(req, 0);
}

static bool is_supported(uint32_t mode)
{
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
	return !(mode & ~(uint32_t)(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE));
}

void op_fallocate(struct request *req)
{
	uint32_t mode = req->args.mode;
	struct op *op = op_begin(req);

	begin_pass(req, mode & FALLOC_FL_ZERO_RANGE ? FALLOC_FL_KEEP_SIZE : mode);
	if (!is_supported(mode))
		op_finish(req, -EOPNOTSUPP);
	else
		op_drop_privileges(
			req, op_caller_takes_privileges(req, op->inode), fallocate_enter);
}
