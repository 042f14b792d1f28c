#include "daemon/transfer.h"

#include <assert.h>
#include <string.h>

#include "daemon/fs_internal.h"
#include "daemon/planner.h"

static void begin_plan(struct plan *plan, struct request *req, uint32_t max_sge)
{
	const struct io_limits *limits = io_limits(req->thread);
	unsigned merge = req->thread->fs->options.merge_pages;

	plan_init(plan, req->buf,
		&(struct plan_limits){
			.max_sge = max_sge,
			.max_work_bytes = limits->max_work_bytes & ~(uint32_t)(PAGE_BYTES - 1),
			.merge_pages = merge ? merge : 1,
		});
}

/* Adds what is mapped of [offset, end) and zeroes the rest in the buffer. */
static uint32_t plan_range(
	struct plan *plan, const struct inode *inode, uint64_t offset, uint64_t end)
{
	struct extent_cursor at;
	struct mapped_extent e;
	uint64_t pos = offset;
	uint32_t zeroed = 0;
	bool found = extent_map_seek(&inode->map, offset >> PAGE_SHIFT, &at, &e);

	for (; found && e.fpage << PAGE_SHIFT < end;
		found = extent_map_next(&inode->map, &at, &e)) {
		uint64_t from = max_u64(pos, e.fpage << PAGE_SHIFT);
		uint64_t to = min_u64(end, (e.fpage + e.npages) << PAGE_SHIFT);
		uint64_t within = from - (e.fpage << PAGE_SHIFT);

		memset(plan->buf->data + (pos - offset), 0, from - pos);
		zeroed += from - pos;
		plan_add(plan, e.region, ((uint64_t)e.page << PAGE_SHIFT) + within,
			(uint32_t)(from - offset), (uint32_t)(to - from));
		pos = to;
	}
	memset(plan->buf->data + (pos - offset), 0, end - pos);
	return zeroed + (uint32_t)(end - pos);
}

uint32_t transfer_plan_read_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len)
{
	struct plan plan;

	begin_plan(&plan, req, io_limits(req->thread)->max_sge_read);
	plan_range(&plan, inode, offset, offset + len);
	return plan.nworks;
}

uint32_t transfer_plan_write_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len)
{
	struct plan plan;
	uint32_t zeroed;

	begin_plan(&plan, req, io_limits(req->thread)->max_sge_write);
	zeroed = plan_range(&plan, inode, offset, offset + len);
	assert(!zeroed);
	(void)zeroed;
	return plan.nworks;
}
