/* COPY_FILE_RANGE: [privileges] -> both gates -> COMMIT of what was written to either -> COPY, step
 * by step -> reply.
 *
 * The server copies; no byte comes here. If the range is longer than an answer can tell, or a
 * signal or an error ends it half way, the caller learns how far it went. Where the server has no
 * page for it, the kernel is told that this does not work. The kernel then copies by reading and
 * writing, and that uses the pages granted to this session.
 */
#include <errno.h>

#include "common/base/log.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"
#include "daemon/ops/change_attr.h"
#include "daemon/file/gate.h"
#include "daemon/file/commit.h"
#include "daemon/file/gate_pass.h"
#include "daemon/lease/lease.h"

/* Of one request; the kernel asks for the rest. */
enum { COPY_BYTES_MAX = 1 << 30 };

struct copy_state {
	union { /* of the target */
		struct op op;
		struct shared_op shared;
	};
	struct inode *source;
	struct op_pass pass; /* the source's, unless it is the target */
	uint64_t len, done;
};

static struct copy_state *copy_state_of(struct request *req)
{
	return op_state(req, struct copy_state);
}

/* For an abandoned request: the kernel drops by itself only the pages of an answer that it gets. */
static void drop_copied(struct request *req)
{
	struct inode *target = op_of(req)->inode;
	uint64_t from = req->args.offset2;

	pthread_mutex_lock(&target->lock);
	stale_pages_unseen_locked(target, req->thread->port, from, from + copy_state_of(req)->done);
	pthread_mutex_unlock(&target->lock);
}

static void copy_finish(struct request *req, int status)
{
	struct copy_state *st = copy_state_of(req);
	uint32_t done = (uint32_t)st->done;

	if (req->replied && done)
		drop_copied(req);

	if (st->pass.inside)
		gate_pass_leave_with(req, &st->pass);
	inode_put(steal_ptr(&st->source));
	op_end(req);
	if (status && !done)
		reply_error(req, status == -ENOSPC ? -EOPNOTSUPP : status);
	else
		reply_write(req, done);
}

/* ---- the server's steps ---------------------------------------------------------------------- */

static void copy_step(struct request *req);

/* A step that copied no bytes must have given the target pages or length. Otherwise the steps would
 * never end. */
static bool makes_sense(struct copy_state *st, const struct rpc_progress_reply *rep)
{
	struct attr attr;

	inode_attr(st->op.inode, &attr);
	return rep->done <= st->len - st->done &&
	       (rep->done || rep->attr.npages > attr.npages || rep->attr.size > attr.size);
}

static void copy_answered(struct request *req, const struct rpc_reply *rep)
{
	struct copy_state *st = copy_state_of(req);
	struct inode *target = st->op.inode;
	int status = rep->status;
	char text[PATH_INODE_BYTES];

	if (!status && !makes_sense(st, &rep->progress)) {
		log_error(
			"%s: the server's progress makes no sense", path_name_inode(target, text));
		status = -EIO;
	}
	inode_change_pages_end(target, rep->status ? NULL : &rep->progress.attr,
		(req->args.offset2 + st->done) >> PAGE_SHIFT);
	if (!status)
		st->done += rep->progress.done;
	if (!status && st->done < st->len && req->interrupted)
		status = -EINTR;
	if (status || st->done == st->len)
		copy_finish(req, status);
	else
		copy_step(req);
}

static void copy_step(struct request *req)
{
	struct copy_state *st = copy_state_of(req);

	inode_change_begin(st->op.inode);
	st->op.call.req.op = RPC_COPY;
	st->op.call.req.copy = (struct rpc_copy){
		.src = st->source->ino,
		.src_offset = req->args.offset + st->done,
		.dst = st->op.inode->ino,
		.dst_offset = req->args.offset2 + st->done,
		.len = st->len - st->done,
	};
	op_rpc(req, copy_answered);
}

/* ---- before them ----------------------------------------------------------------------------- */

/* Leaves out writes that were acknowledged since: the server does not know of them. */
static uint64_t size_to_copy(struct copy_state *st)
{
	struct inode *source = st->source;
	uint64_t size;

	pthread_mutex_lock(&source->lock);
	size = gate_size(&source->gate, st->pass.pass.acks, source->attr.size);
	pthread_mutex_unlock(&source->lock);
	return size;
}

static void copy_begin(struct request *req, int status)
{
	struct copy_state *st = copy_state_of(req);
	uint64_t offset = req->args.offset, size;

	size = size_to_copy(st);
	if (!status && offset < size)
		st->len = min_u64(min_u64(req->args.len, COPY_BYTES_MAX), size - offset);
	if (status)
		copy_finish(req, status);
	else if (st->len)
		copy_step(req);
	else if (op_make_sure(req, copy_finish))
		copy_finish(req, 0);
}

static void copy_commit_target(struct request *req, int status)
{
	if (status || commit_wait(req, op_of(req)->inode, &status, copy_begin))
		copy_begin(req, status);
}

static void copy_commit_source(struct request *req, int status)
{
	if (status || commit_wait(req, copy_state_of(req)->source, &status, copy_commit_target))
		copy_commit_target(req, status);
}

/* The gate of the inode with the lower number comes first. */
static void copy_enter_second(struct request *req, int status)
{
	struct copy_state *st = copy_state_of(req);
	struct inode *target = st->op.inode;
	bool inside = true;

	if (!status && st->source->ino < target->ino)
		inside = gate_pass_enter(req, GATE_EXCLUSIVE, 0, UINT64_MAX, copy_commit_source);
	else if (!status && st->source != target)
		inside = gate_pass_enter_with(
			req, &st->pass, st->source, GATE_READ, copy_commit_source);
	if (inside)
		copy_commit_source(req, status);
}

static void copy_enter(struct request *req, int status)
{
	struct copy_state *st = copy_state_of(req);
	bool inside = true;

	if (!status && st->source->ino < st->op.inode->ino)
		inside = gate_pass_enter_with(
			req, &st->pass, st->source, GATE_READ, copy_enter_second);
	else if (!status)
		inside = gate_pass_enter(req, GATE_EXCLUSIVE, 0, UINT64_MAX, copy_enter_second);
	if (inside)
		copy_enter_second(req, status);
}

void op_copy(struct request *req)
{
	struct op *op = op_begin(req);
	struct copy_state *st = copy_state_of(req);

	st->source = op->inode;
	op->inode = inode_of_node(req->thread->fs, req->args.node2);
	if (inode_is_regular(st->source) && inode_is_regular(op->inode))
		op_drop_privileges(req, op_caller_takes_privileges(req, op->inode), copy_enter);
	else
		copy_finish(req, -EINVAL);
}
