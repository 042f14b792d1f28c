/* READ: data buffer -> gate -> extents known -> plan -> one-sided READs into the buffer -> reply
 * from where they arrived, which may be the channel's pipe.
 *
 * Where the regions are mapped here (shm): gate -> extents known -> reply from the regions -> out
 * of the gate. The gate keeps the pages from being used anew until the reply is sent.
 */
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/file/transfer.h"
#include "daemon/kcache/stale_pages.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/file/gate_pass.h"
#include "daemon/file/fetch_map.h"
#include "daemon/file/op_inode.h"
#include "daemon/lease/lease.h"

struct read_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint32_t len; /* of these, how many the file has */
};

/* A short answer tells the kernel where the file ends, but the kernel may not take that. Returns
 * the inode that kernel_pages_end_answered() is due for; NULL: none. */
static struct inode *answers_end(struct request *req, uint32_t len)
{
	struct inode *inode = op_of(req)->inode;

	if (!req->args.cached || len == req->args.size || !inode->fs->sharing)
		return NULL;
	return kernel_pages_answers_end(inode, req->args.offset + len) ? inode : NULL;
}

static void read_moved(struct request *req, int status)
{
	uint32_t len = op_state(req, struct read_state)->len;
	struct inode *ends = status ? NULL : answers_end(req, len);
	struct io_thread *thread = req->thread;

	op_end(req);
	if (status)
		reply_error(req, status);
	else
		op_reply_read(req, len);
	if (ends)
		kernel_pages_end_answered(ends, thread);
}

/* No transfer has shown that the session lives, so it is made sure before "nothing" is answered. */
static void read_nothing(struct request *req)
{
	if (op_make_sure(req, read_moved))
		read_moved(req, 0);
}

static uint32_t bytes_there(struct request *req)
{
	struct inode *inode = op_of(req)->inode;
	uint64_t offset = req->args.offset, size;

	pthread_mutex_lock(&inode->lock);
	access_time_mark_locked(req);
	/* Leaves out writes that were acknowledged since: nothing is known yet of their bytes. */
	size = gate_size(&inode->gate, file_op_of(req)->pass.pass.acks, inode->attr.size);
	pthread_mutex_unlock(&inode->lock);
	return offset < size ? (uint32_t)min_u64(req->args.size, size - offset) : 0;
}

static void read_enter(struct request *req, int status);

static bool read_mapped(struct request *req, uint32_t len)
{
	struct inode *inode = op_of(req)->inode, *ends;
	struct io_thread *thread = req->thread;
	struct pieces pieces;
	bool mapped;

	if (!io_maps(req->thread))
		return false;
	pthread_mutex_lock(&inode->lock);
	mapped = transfer_mapped_locked(req, inode, req->args.offset, len, &pieces);
	pthread_mutex_unlock(&inode->lock);
	if (!mapped)
		return false;
	ends = answers_end(req, len);
	reply_pieces(req, &pieces);
	op_finish(req, 0);
	if (ends)
		kernel_pages_end_answered(ends, thread);
	return true;
}

static void read_transfer(struct request *req, uint32_t len)
{
	struct inode *inode = op_of(req)->inode;
	uint32_t nworks, zeroed;

	pthread_mutex_lock(&inode->lock);
	nworks = transfer_plan_read_locked(req, inode, req->args.offset, len, &zeroed);
	pthread_mutex_unlock(&inode->lock);
	if (!nworks)
		read_nothing(req);
	else if (zeroed)
		op_io(req, IO_READ, nworks, read_moved);
	else
		op_io_reply(req, nworks, len, read_moved);
}

static void read_go(struct request *req, int status)
{
	struct read_state *st = op_state(req, struct read_state);

	st->len = status ? 0 : bytes_there(req);
	if (status) {
		read_moved(req, status);
		return;
	}
	if (!st->len) {
		read_nothing(req);
		return;
	}
	if (!op_know_map(req, div_round_up(req->args.offset + st->len, PAGE_BYTES), read_go))
		return;
	if (read_mapped(req, st->len))
		return;
	if (req->buf) {
		read_transfer(req, st->len);
		return;
	}
	/* The connection was lost since. Requests that have buffers may wait for us to leave the
	 * gate. */
	gate_pass_leave(req);
	op_take_buffer(req, read_enter);
}

/* Comes before the gate. Each write of these bytes then either waits until the kernel has dropped
 * what this READ brings, or this READ waits for it. */
static void note_cached(struct request *req)
{
	struct inode *inode = op_of(req)->inode;
	uint64_t offset = req->args.offset;

	pthread_mutex_lock(&inode->lock);
	stale_pages_read_locked(inode, offset, offset + req->args.size);
	pthread_mutex_unlock(&inode->lock);
}

static void read_enter(struct request *req, int status)
{
	uint64_t first = req->args.offset >> PAGE_SHIFT;
	uint64_t end = div_round_up(req->args.offset + req->args.size, PAGE_BYTES);

	if (!status && req->args.cached)
		note_cached(req);
	if (status)
		op_finish(req, status);
	else if (gate_pass_enter(req, GATE_READ, first, end, read_go))
		read_go(req, 0);
}

void op_read(struct request *req)
{
	op_begin(req);
	if (io_maps(req->thread))
		read_enter(req, 0);
	else
		op_take_buffer(req, read_enter);
}
