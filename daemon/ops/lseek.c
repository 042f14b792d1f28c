/* LSEEK: SEEK_DATA and SEEK_HOLE, to the page, by the extent map. */
#include <errno.h>
#include <unistd.h>

#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/inode.h"
#include "daemon/file/extent_map.h"
#include "daemon/file/fetch_map.h"
#include "daemon/file/gate.h"
#include "daemon/file/gate_pass.h"
#include "daemon/lease/lease.h"

struct lseek_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint64_t offset;
	int found; /* 0 or -ENXIO; -EAGAIN: not yet */
};

/* Both find what they look for at or behind *offset: 0; -ENXIO: there is none; -EAGAIN: more of
 * the map has to be known. */
static int find_data_locked(const struct inode *inode, uint64_t *offset)
{
	struct extent_cursor at;
	struct mapped_extent e;

	if (*offset >= inode->attr.size)
		return -ENXIO;
	if (!extent_map_seek(&inode->map, *offset >> PAGE_SHIFT, &at, &e))
		return inode->map.known_end == UINT64_MAX ? -ENXIO : -EAGAIN;
	*offset = max_u64(*offset, e.fpage << PAGE_SHIFT);
	return *offset < inode->attr.size ? 0 : -ENXIO;
}

static int find_hole_locked(const struct inode *inode, uint64_t *offset)
{
	uint64_t page = *offset >> PAGE_SHIFT;
	struct extent_cursor at;
	struct mapped_extent e;
	bool found;

	if (*offset >= inode->attr.size)
		return -ENXIO;
	found = extent_map_seek(&inode->map, page, &at, &e);
	for (; found && e.fpage <= page; found = extent_map_next(&inode->map, &at, &e))
		page = e.fpage + e.npages;
	if (page >= inode->map.known_end)
		return -EAGAIN;
	*offset = min_u64(max_u64(*offset, page << PAGE_SHIFT), inode->attr.size);
	return 0;
}

static void lseek_reply(struct request *req, int status)
{
	const struct lseek_state *st = op_state(req, struct lseek_state);
	uint64_t offset = st->offset;
	int error = status ? status : st->found;

	op_end(req);
	if (error)
		reply_error(req, error);
	else
		reply_lseek(req, offset);
}

static void lseek_go(struct request *req, int status)
{
	struct lseek_state *st = op_state(req, struct lseek_state);
	struct inode *inode = st->op.inode;
	uint64_t known;

	if (status) {
		lseek_reply(req, status);
		return;
	}
	st->offset = req->args.offset;
	pthread_mutex_lock(&inode->lock);
	known = inode->map.known_end;
	st->found = req->args.whence == SEEK_DATA ? find_data_locked(inode, &st->offset)
						  : find_hole_locked(inode, &st->offset);
	pthread_mutex_unlock(&inode->lock);
	if (st->found == -EAGAIN) {
		if (op_know_map(req, known + 1, lseek_go))
			lseek_go(req, 0);
		return;
	}
	if (op_make_sure(req, lseek_reply))
		lseek_reply(req, 0);
}

/* With a writeback cache the kernel may have data that we have not seen, so what looks like a hole
 * may be none. The kernel is told to take each file for all data. */
void op_lseek(struct request *req)
{
	op_begin(req);
	if (req->thread->fs->features.writeback)
		op_finish(req, -ENOSYS);
	else if (req->args.whence != SEEK_DATA && req->args.whence != SEEK_HOLE)
		op_finish(req, -EINVAL);
	else if (gate_pass_enter(req, GATE_READ, 0, 0, lseek_go))
		lseek_go(req, 0);
}
