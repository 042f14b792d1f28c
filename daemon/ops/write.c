/* WRITE: gate -> extents known -> pages for the holes -> plan -> one-sided WRITEs from where the
 * kernel's payload arrived -> size and times -> [COMMIT: O_SYNC, O_DIRECT] -> [names that were
 * changed before: O_SYNC, O_DSYNC] -> reply.
 *
 * With ack=local a buffered write is acknowledged before the transfer, when it has its pages. Size,
 * times and reply come first, and the rest goes on in the payload's buffer. From then on the write
 * counts as done:
 *
 * - Reads of the same bytes wait (gate.h).
 * - COMMIT tells nothing of it yet.
 * - FLUSH and FSYNC wait, and tell of its failure (op_wait_acknowledged, commit.h).
 * - It can't be taken back.
 *
 * Half of a thread's buffers are kept from such writes. While the server is known to be away,
 * nothing is acknowledged early.
 *
 * A write may leave a gap behind the file's end, with pages in it that may be other than zero. It
 * then passes the gate exclusively, and the server makes the gap the file's before the transfer
 * (op_grow).
 *
 * New pages come from the session's grants, so a WRITE needs no RPC. They are the file's for good
 * when they have been committed (commit.h).
 */
#include <errno.h>
#include <fcntl.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/rpc/change_time.h"
#include "daemon/file/fill_holes.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/file/transfer.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/kcache/written_pages.h"
#include "daemon/pages/landing.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/name_queue.h"
#include "daemon/lease/lease.h"
#include "daemon/file/op_inode.h"
#include "daemon/ops/change_attr.h"
#include "daemon/file/fetch_map.h"
#include "daemon/lease/append_order.h"
#include "daemon/file/gate_pass.h"
#include "daemon/lease/wait_aside.h"

enum { ASK_EXTENTS = 8 };

struct write_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint32_t len; /* bytes to write: less than asked for when pages run out */
	int why_less;
	uint8_t kind; /* enum open_kind, of its handle, which may be gone by now */
	bool landed;  /* the payload is in the file's pages already (landing.h) */
	bool alone;   /* it passed the gate exclusively, because of a doubtful gap */
	bool grew;    /* the file, when it was acknowledged */
	struct written_pages pages;
	uint8_t nasked;      /* of `asked` */
	uint64_t drop_round; /* the answer waits for this one; 0: for none */
	/* While a snapshot is taken: up to where pages were asked for, and those asked for now. */
	uint64_t asked_to;
	struct extent asked[ASK_EXTENTS];
	uint8_t tail[ASK_EXTENTS * RPC_EXTENT_BYTES];
};

static uint64_t first_page(const struct request *req)
{
	return req->args.offset >> PAGE_SHIFT;
}

static uint64_t end_page(const struct request *req)
{
	return div_round_up(req->args.offset + req->args.size, PAGE_BYTES);
}

/* ---- after the transfer ---------------------------------------------------------------------- */

/* The caller gave it up, and nothing has failed. */
static bool is_given_up(int status)
{
	return status == -ECANCELED || status == -EINTR;
}

/* The inode that kernel_pages_end_answered() is due for; NULL: none. */
static struct inode *writes_end(struct request *req)
{
	struct inode *inode = op_of(req)->inode;

	if (!req->args.cached || !inode->fs->sharing)
		return NULL;
	return kernel_pages_writes_end(inode, req->args.offset + req->args.size) ? inode : NULL;
}

/* After any answer but an error the kernel takes pages of its cache as written. */
static void write_answer(struct request *req, int status)
{
	const struct write_state *st = op_state(req, struct write_state);
	struct inode *ends = status ? NULL : writes_end(req);
	struct io_thread *thread = req->thread;
	uint32_t len = st->len;

	if (!status && req->args.cached && len < req->args.size)
		status = st->why_less;
	if (status && req->args.cached)
		commit_pages_failed(op_of(req)->inode, status);
	/* This answer tells the caller, so the next fsync need not. */
	if (status && !is_given_up(status) && !req->replied && !req->args.cached)
		commit_told_by_answer(op_of(req)->inode, handle_of(req));
	/* The kernel's place for what is appended may be another one. */
	if (!status && !req->replied && !req->args.cached && !(req->args.flags & O_APPEND))
		kernel_pages_end_is_written(op_of(req)->inode, req->args.offset + len);
	shared_op_of(req)->append.status = status;
	op_end(req);
	fs_thread_of(req->thread)->nacked -= op_of(req)->acked;
	if (status)
		reply_error(req, status);
	else
		reply_write(req, len);
	if (ends)
		kernel_pages_end_answered(ends, thread);
}

/* Nothing was written. */
static void write_fail(struct request *req, int status)
{
	shared_op_of(req)->append.status = status;
	if (req->args.cached)
		commit_pages_failed(op_of(req)->inode, status);
	op_finish(req, status);
}

static void write_reply(struct request *req, int status)
{
	uint64_t round = op_state(req, struct write_state)->drop_round;

	if (status || !round || req->replied || stale_pages_wait(req, round, write_answer))
		write_answer(req, status);
}

/* From now on the kernel's cached pages may be older than the file's, however the write ended.
 * After a buffered write the kernel has changed its pages itself, or drops them on an error, but
 * not if it did not wait for the end. */
static void make_cache_old_locked(struct request *req, struct inode *inode, int status)
{
	struct write_state *st = op_state(req, struct write_state);
	uint64_t from = req->args.offset, to = from + req->args.size;

	if (req->args.cached)
		return;
	if (st->kind == OPENED_DIRECT)
		st->drop_round = stale_pages_unseen_locked(inode, req->thread->port, from, to);
	else if (req->args.flags & O_DIRECT || status || (req->replied && !st->op.acked))
		st->drop_round = stale_pages_note_locked(inode, req->thread->port, from, to);
}

/* Sets the size and times that everybody sees. */
static void write_show_locked(struct request *req, struct inode *inode)
{
	struct write_state *st = op_state(req, struct write_state);
	uint64_t end = req->args.offset + st->len;

	inode->written_to = end >> PAGE_SHIFT;
	st->grew = end > inode->attr.size;
	if (st->grew)
		inode->attr.size = end;
	/* With a writeback cache the kernel owns the times and tells them by SETATTR. Ours might be
	 * newer than its own. */
	if (!inode->fs->features.writeback) {
		int64_t now = session_time(inode->fs->session);

		inode->attr.mtime = change_time(inode->attr.mtime, now);
		inode->attr.ctime = change_time(inode->attr.ctime, now);
	}
}

static void account_failure_locked(struct request *req, struct inode *inode, int status)
{
	extent_map_doubt(&inode->map, end_page(req));
	if (!is_given_up(status) && !req->args.cached)
		commit_failed_locked(inode, status);
}

/* Notes what the server is to be told. After an early answer programs have seen the new size and
 * times, even if no byte arrived. */
static void account_locked(struct request *req, struct inode *inode, int status)
{
	const struct write_state *st = op_state(req, struct write_state);
	struct commit *c = &inode->commit;

	if (status)
		account_failure_locked(req, inode, status);
	else if (!st->op.acked)
		write_show_locked(req, inode);
	if (status && !st->op.acked)
		return;
	c->size_dirty |= st->grew;
	c->times_dirty |= !inode->fs->features.writeback;
}

/* Filled pages are the file's, even if their bytes did not arrive. A COMMIT that covers this change
 * leaves out the sizes of writes inside the gate. So the change and the end of the pass come in one
 * moment. */
static void write_account(struct request *req, int status)
{
	struct inode *inode = op_of(req)->inode;
	bool orphan;

	pthread_mutex_lock(&inode->lock);
	extent_map_filled(&inode->map, first_page(req), end_page(req));
	make_cache_old_locked(req, inode, status);
	account_locked(req, inode, status);
	commit_dirty_locked(inode, req->thread);
	orphan = gate_pass_leave_locked(req);
	pthread_mutex_unlock(&inode->lock);
	if (orphan)
		inode_return_settle(inode, req->thread);
}

static void log_lost_write(const struct request *req, int status)
{
	static struct log_ratelimit limit;
	char text[PATH_INODE_BYTES];

	if (log_ratelimit_ok(&limit, 1000))
		log_error("%s: %u bytes at %llu could not be written: %s",
			path_name_inode(op_of((struct request *)req)->inode, text), req->args.size,
			(unsigned long long)req->args.offset, errno_text(status));
}

/* O_SYNC waits for everything; O_DSYNC and O_DIRECT wait for the size and extents that the bytes
 * are found by. After pages of its cache the kernel sends an FSYNC where it wants one. */
static bool must_commit(const struct request *req, struct inode *inode)
{
	uint32_t flags = req->args.cached ? 0 : req->args.flags;

	return (flags & O_SYNC) == O_SYNC ||
	       ((flags & (O_DSYNC | O_DIRECT)) && commit_lacks_data(inode));
}

/* As after fsync(2), names that were changed before are durable with the bytes: O_DSYNC is a bit of
 * O_SYNC, too. A COMMIT comes behind the names, but existing bytes need none. */
static void write_committed(struct request *req, int status)
{
	bool waits = !status && !req->args.cached && req->args.flags & O_DSYNC;

	if (!waits || name_queue_wait_all(req, write_reply))
		write_reply(req, status);
}

/* The server knows the file's new length only when the acknowledged writes in front of this one are
 * remote. */
static void write_commit(struct request *req, int status)
{
	if (status || commit_wait(req, op_of(req)->inode, &status, write_committed))
		write_committed(req, status);
}

static void write_moved(struct request *req, int status)
{
	if (status && !is_given_up(status))
		log_lost_write(req, status);
	write_account(req, status);
	if (status || !must_commit(req, op_of(req)->inode))
		write_committed(req, status);
	else if (op_wait_acknowledged(req, write_commit))
		write_commit(req, 0);
}

/* ---- before it ------------------------------------------------------------------------------- */

static int write_fill(struct request *req, uint64_t *filled)
{
	struct write_state *st = op_state(req, struct write_state);

	st->landed = fill_holes_landed(req, first_page(req), end_page(req));
	if (st->landed) {
		*filled = end_page(req);
		return 0;
	}
	return fill_holes(req, first_page(req), end_page(req), filled);
}

/* There is no early answer if the write has to be committed first, or if other clients may read it
 * without asking. Nor for pages of the kernel's cache: the kernel takes any answer for the last
 * word. */
static bool may_acknowledge(struct request *req)
{
	const struct fs *fs = req->thread->fs;

	return fs->options.ack == ACK_LOCAL && lease_is_alone(req) && !req->replied &&
	       !req->args.cached && !(req->args.flags & (O_SYNC | O_DSYNC | O_DIRECT)) &&
	       !op_state(req, struct write_state)->alone && remote_connected(req->thread) &&
	       fs_thread_of(req->thread)->nacked < fs->options.buffers / 2;
}

static void acknowledge_locked(struct request *req, struct inode *inode)
{
	struct write_state *st = op_state(req, struct write_state);
	struct op *op = &st->op;
	uint64_t before = inode->attr.size;

	write_show_locked(req, inode);
	append_order_done_locked(req);
	gate_acknowledge(&inode->gate, &file_op(op)->pass.pass, st->grew ? before : UINT64_MAX);
	commit_mark_locked(inode);
	list_del(&op->interrupted);
	op->acked = true;
	fs_thread_of(req->thread)->nacked++;
}

/* There is no early answer if the answer would wait until the kernel has dropped pages. */
static bool has_to_drop_locked(struct request *req, struct inode *inode)
{
	uint64_t from = req->args.offset, to = from + req->args.size;

	return op_state(req, struct write_state)->kind == OPENED_DIRECT &&
	       stale_pages_unseen_locked(inode, req->thread->port, from, to);
}

static void write_transfer(struct request *req)
{
	struct write_state *st = op_state(req, struct write_state);
	struct inode *inode = st->op.inode;
	bool may = may_acknowledge(req);
	uint32_t nworks;

	if (st->landed) {
		write_moved(req, 0);
		return;
	}
	if (landing_holds(req))
		landing_fetch(req->thread);
	pthread_mutex_lock(&inode->lock);
	nworks = transfer_plan_write_locked(req, inode, req->args.offset, st->len);
	if (may && !has_to_drop_locked(req, inode))
		acknowledge_locked(req, inode);
	pthread_mutex_unlock(&inode->lock);
	if (st->op.acked) {
		request_acknowledge(req, st->len);
		CRASH_POINT("write.acknowledged");
	}
	op_io(req, IO_WRITE, nworks, write_moved);
}

/* ---- pages that a snapshot wants ------------------------------------------------------------- */

static void write_unprotect(struct request *req);

static void write_unprotected(struct request *req, const struct rpc_reply *rep)
{
	struct write_state *st = op_state(req, struct write_state);

	if (rep->status) {
		write_moved(req, rep->status);
		return;
	}
	snapshot_freeze_unprotected(req->thread->fs, st->asked, st->nasked);
	write_unprotect(req);
}

static void ask_unprotect(struct request *req)
{
	struct write_state *st = op_state(req, struct write_state);
	struct wire_out w;

	wire_out_init(&w, st->tail, sizeof(st->tail));
	for (unsigned i = 0; i < st->nasked; i++)
		rpc_put_extent(&w, &st->asked[i]);
	st->op.call.req.op = RPC_UNPROTECT;
	st->op.call.req.unprotect.tail =
		(struct rpc_tail){.data = st->tail, .len = (uint32_t)wire_out_len(&w)};
	op_rpc(req, write_unprotected);
}

/* Goes on when all pages of the write may be changed. */
static void write_unprotect(struct request *req)
{
	struct write_state *st = op_state(req, struct write_state);
	uint64_t end = div_round_up(req->args.offset + st->len, PAGE_BYTES);
	struct inode *inode = st->op.inode;

	pthread_mutex_lock(&inode->lock);
	st->nasked = (uint8_t)snapshot_freeze_protected_locked(
		inode, &st->asked_to, end, st->asked, ASK_EXTENTS);
	pthread_mutex_unlock(&inode->lock);
	if (st->nasked)
		ask_unprotect(req);
	else
		write_transfer(req);
}

static void write_grown(struct request *req, int status)
{
	if (status)
		write_moved(req, status);
	else if (session_snapshot(req->thread->fs->session))
		write_unprotect(req);
	else
		write_transfer(req);
}

/* The kernel may have sent a direct write asynchronously. Then it takes an answer of less than all
 * for EIO. */
static bool must_be_whole(const struct request *req)
{
	return !req->args.cached && req->args.flags & O_DIRECT;
}

/* The pages that were filled for a part of it are the file's now, and zero. */
static void leave_pages(struct request *req)
{
	struct inode *inode = op_of(req)->inode;

	pthread_mutex_lock(&inode->lock);
	extent_map_filled(&inode->map, first_page(req), end_page(req));
	commit_dirty_locked(inode, req->thread);
	pthread_mutex_unlock(&inode->lock);
}

static void write_nothing(struct request *req, int status)
{
	leave_pages(req);
	write_fail(req, status);
}

/* Writes as much as there are pages for. */
static void write_post(struct request *req, uint64_t filled, int status)
{
	struct write_state *st = op_state(req, struct write_state);
	uint64_t offset = req->args.offset;
	uint64_t end = min_u64(offset + req->args.size, filled << PAGE_SHIFT);

	if (end <= offset) {
		write_fail(req, status);
		return;
	}
	st->len = (uint32_t)(end - offset);
	if (st->len < req->args.size && must_be_whole(req)) {
		write_nothing(req, status);
		return;
	}
	st->why_less = status;
	st->asked_to = first_page(req);
	if (st->alone && inode_has_doubtful_gap(st->op.inode, offset))
		op_grow(req, offset, write_grown);
	else
		write_grown(req, 0);
}

static void write_granted(struct request *req, int status);
static void write_go(struct request *req, int status);
static void write_begin(struct request *req, int status);

/* Whether the write stays within existing pages and the file's size. Others may write there, too,
 * and the file keeps its length. */
static bool overwrites(struct request *req)
{
	struct inode *inode = op_of(req)->inode;
	bool there;

	pthread_mutex_lock(&inode->lock);
	there = req->args.offset + req->args.size <= inode->attr.size &&
		extent_map_has_all(&inode->map, first_page(req), end_page(req));
	pthread_mutex_unlock(&inode->lock);
	return there;
}

/* ---- where it goes --------------------------------------------------------------------------- */

/* The kernel may also write back pages behind the end, which are cut off here: kernel_pages.h. A
 * mount that is alone may have its write(2) come from the cache, too, where that can't be mapped
 * otherwise. */
static bool is_cut_off(const struct request *req)
{
	const struct fs *fs = req->thread->fs;

	return req->args.cached &&
	       (fs->sharing || (!fs_kernel_knows_ends(fs) && fs->features.direct_io_allow_mmap));
}

struct span {
	uint64_t offset;
	uint32_t size;
};

static struct span place_now(const struct request *req, struct inode *inode)
{
	struct span place = {.offset = req->args.offset, .size = req->args.size};
	uint64_t end;

	if (!append_order_appends(req) && !is_cut_off(req))
		return place;
	pthread_mutex_lock(&inode->lock);
	end = inode->attr.size;
	if (is_cut_off(req))
		end = kernel_pages_written_to_locked(
			inode, min_u64(end, place.offset + place.size));
	pthread_mutex_unlock(&inode->lock);
	if (append_order_appends(req))
		place.offset = end;
	else
		place.size = (uint32_t)min_u64(place.size, end - min_u64(end, place.offset));
	return place;
}

static void go_by_end(struct request *req, struct inode *inode)
{
	struct span now = place_now(req, inode);

	/* Otherwise all of the payload that has landed would become the file's. */
	if (now.size < req->args.size && landing_holds(req))
		landing_fetch(req->thread);
	req->args.offset = now.offset;
	req->args.size = now.size;
}

/* The kernel sends an OPEN that cuts the file even while a WRITE is on its way. */
static bool has_lost_its_place(const struct request *req, struct inode *inode)
{
	struct span now = place_now(req, inode);

	return now.offset != req->args.offset || now.size != req->args.size;
}

static void write_unstow(struct request *req, int status)
{
	if (!status)
		request_unstow(req);
	write_begin(req, status);
}

static void write_taken(struct request *req, int status)
{
	if (!status && request_lacks_buffer(req))
		op_take_buffer(req, write_unstow);
	else
		write_begin(req, status);
}

/* It is about to begin anew. */
static void leave_file(struct request *req)
{
	struct op *op = op_of(req);

	op_state(req, struct write_state)->alone = false;
	written_pages_left(&op_state(req, struct write_state)->pages);
	if (file_op(op)->pass.inside)
		gate_pass_leave(req);
	if (op->writing)
		snapshot_freeze_leave(req);
}

/* Gives up what it has of the file, to get EXCLUSIVE and begin anew. It also leaves the freeze, so
 * that no snapshot waits for it: the snapshot may hold up others that have to give their leases
 * back. */
static void write_take_file(struct request *req)
{
	struct op *op = op_of(req);

	leave_file(req);
	lease_leave(req);
	if (lease_take(req, op->inode, LEASE_EXCLUSIVE, write_taken))
		write_begin(req, 0);
	else
		wait_aside(req);
}

/* Writes on their way before this one may close the gap. */
static void write_alone(struct request *req)
{
	op_state(req, struct write_state)->alone = true;
	written_pages_left(&op_state(req, struct write_state)->pages);
	gate_pass_leave(req);
	if (gate_pass_enter(req, GATE_EXCLUSIVE, 0, UINT64_MAX, write_go))
		write_go(req, 0);
}

/* While this one waited for more pages, a request behind it may have moved the end. */
static void write_anew(struct request *req)
{
	leave_pages(req);
	leave_file(req);
	write_begin(req, 0);
}

static void write_go(struct request *req, int status)
{
	struct write_state *st = op_state(req, struct write_state);
	uint64_t filled;
	int r;

	if (status) {
		write_fail(req, status);
		return;
	}
	if (has_lost_its_place(req, st->op.inode)) {
		write_anew(req);
		return;
	}
	if (lease_is_alone(req) && written_pages_drop(req, &st->pages)) {
		write_take_file(req);
		return;
	}
	if (!op_know_map(req, end_page(req), write_go))
		return;
	if (!lease_is_alone(req) && !overwrites(req)) {
		write_take_file(req);
		return;
	}
	if (!st->alone && inode_has_doubtful_gap(st->op.inode, req->args.offset)) {
		write_alone(req);
		return;
	}
	do {
		r = write_fill(req, &filled);
	} while (fill_lacks(r) && fill_holes_wait(req, r, write_granted));
	if (!fill_lacks(r))
		write_post(req, filled, r);
}

static void write_granted(struct request *req, int status)
{
	uint64_t filled;

	if (!status) {
		write_go(req, 0);
		return;
	}
	if (status != -ENOSPC && status != -EDQUOT) {
		write_moved(req, status);
		return;
	}
	write_fill(req, &filled);
	write_post(req, filled, status);
}

static void write_enter(struct request *req, int status)
{
	if (status)
		write_fail(req, status);
	else if (!snapshot_freeze_enter(req, write_enter))
		return;
	else if (gate_pass_enter(req, GATE_WRITE, first_page(req), end_page(req), write_go))
		write_go(req, 0);
}

/* The kernel took capabilities away itself, when the pages in its cache were changed. The file
 * keeps those that it has got since. */
static bool takes_caps(const struct request *req, const struct inode *inode)
{
	return !req->args.cached && inode_has_caps(inode);
}

static bool takes_privileges(const struct request *req, struct inode *inode)
{
	return takes_caps(req, inode) ||
	       (req->args.kill_priv && op_takes_privileges(req, inode, NULL));
}

/* It may have a lesser lease than it needs. */
static void write_begin(struct request *req, int status)
{
	struct op *op = op_of(req);
	bool takes = !status && takes_privileges(req, op->inode);

	if (status) {
		write_fail(req, status);
		return;
	}
	if (!lease_is_alone(req) && (takes || append_order_appends(req))) {
		write_take_file(req);
		return;
	}
	go_by_end(req, op->inode);
	if (!req->args.size)
		write_reply(req, 0);
	else if (req->args.offset > (uint64_t)INT64_MAX - req->args.size)
		write_fail(req, -EFBIG);
	else if (takes)
		op_drop_privileges(req, req->args.kill_priv, write_enter);
	else
		write_enter(req, 0);
}

void op_write(struct request *req)
{
	op_begin(req);
	op_state(req, struct write_state)->kind = (uint8_t)handle_of(req)->kind;
	write_begin(req, 0);
}
