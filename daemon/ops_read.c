/* READ: data buffer -> gate -> extents known -> plan -> one-sided READs into the buffer -> reply
 * from where they arrived. */
#include "daemon/op.h"
#include "daemon/ops.h"
#include "daemon/transfer.h"

struct read_state {
	struct op op;
	uint32_t len; /* what there is of the file */
};

static void read_moved(struct request *req, int status)
{
	uint32_t len = request_state(req, struct read_state)->len;

	op_end(req);
	if (status)
		reply_error(req, status);
	else
		reply_buffer(req, len);
}

static uint32_t bytes_there(struct request *req)
{
	struct inode *inode = op_of(req)->inode;
	uint64_t offset = req->args.offset, size;

	pthread_mutex_lock(&inode->lock);
	access_mark_locked(req);
	if (req->args.cached)
		drop_read_locked(inode, offset, offset + req->args.size);
	size = inode->attr.size;
	pthread_mutex_unlock(&inode->lock);
	return offset < size ? (uint32_t)min_u64(req->args.size, size - offset) : 0;
}

static void read_go(struct request *req, int status)
{
	struct read_state *st = request_state(req, struct read_state);
	struct inode *inode = st->op.inode;
	uint64_t offset = req->args.offset;
	uint32_t nworks;

	st->len = status ? 0 : bytes_there(req);
	if (!st->len) {
		read_moved(req, status);
		return;
	}
	if (!op_know_map(req, div_round_up(offset + st->len, PAGE_BYTES), read_go))
		return;
	pthread_mutex_lock(&inode->lock);
	nworks = transfer_plan_read_locked(req, inode, offset, st->len);
	pthread_mutex_unlock(&inode->lock);
	if (nworks)
		op_io(req, IO_READ, nworks, read_moved);
	else
		read_moved(req, 0);
}

static void read_enter(struct request *req, int status)
{
	if (status)
		op_finish(req, status);
	else if (op_enter(req, GATE_READ, 0, 0, read_go))
		read_go(req, 0);
}

void op_read(struct request *req)
{
	op_begin(req);
	op_take_buffer(req, read_enter);
}
