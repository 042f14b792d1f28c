#include "daemon/file/transfer.h"

#include <assert.h>
#include <string.h>

#include "common/base/map.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/transfer_plan.h"
#include "daemon/remote/remote.h"

/* ---- what a range consists of ---------------------------------------------------------------- */

/* Steps through the extents of a range and the holes between them, in order. */
struct walk {
	const struct extent_map *map;
	struct extent_cursor at;
	struct mapped_extent e;
	bool found; /* e is the extent at pos, or the next one */
	uint64_t pos, end;
};

struct part {
	bool hole;
	uint32_t len;
	uint32_t region;
	uint64_t offset; /* in the region */
};

static void walk_init(struct walk *w, const struct inode *inode, uint64_t offset, uint32_t len)
{
	*w = (struct walk){.map = &inode->map, .pos = offset, .end = offset + len};
	w->found = extent_map_seek(w->map, offset >> PAGE_SHIFT, &w->at, &w->e);
}

static bool walk_next(struct walk *w, struct part *part)
{
	uint64_t first = w->found ? w->e.fpage << PAGE_SHIFT : UINT64_MAX;
	uint64_t pos = w->pos;

	if (pos == w->end)
		return false;
	if (pos < first) {
		w->pos = min_u64(first, w->end);
		*part = (struct part){.hole = true, .len = (uint32_t)(w->pos - pos)};
		return true;
	}
	w->pos = min_u64((w->e.fpage + w->e.npages) << PAGE_SHIFT, w->end);
	*part = (struct part){
		.len = (uint32_t)(w->pos - pos),
		.region = w->e.region,
		.offset = ((uint64_t)w->e.page << PAGE_SHIFT) + (pos - first),
	};
	w->found = extent_map_next(w->map, &w->at, &w->e);
	return true;
}

/* ---- by the data buffer ---------------------------------------------------------------------- */

static void begin_plan(struct plan *plan, struct request *req, uint32_t max_sge)
{
	const struct io_limits *limits = io_limits(req->thread);
	unsigned merge = req->thread->fs->options.merge_pages;

	transfer_plan_init(plan, req->buf,
		&(struct plan_limits){
			.max_sge = max_sge,
			.max_work_bytes = limits->max_work_bytes & ~(uint32_t)(PAGE_BYTES - 1),
			.merge_pages = merge ? merge : 1,
		});
}

/* Adds the mapped parts of the range and zeroes the holes in the buffer. */
static uint32_t plan_range(
	struct plan *plan, const struct inode *inode, uint64_t offset, uint32_t len)
{
	uint32_t at = 0, zeroed = 0;
	struct part part;
	struct walk w;

	for (walk_init(&w, inode, offset, len); walk_next(&w, &part); at += part.len) {
		if (part.hole) {
			memset(plan->buf->data + at, 0, part.len);
			zeroed += part.len;
		} else {
			transfer_plan_add(plan, part.region, part.offset, at, part.len);
		}
	}
	return zeroed;
}

uint32_t transfer_plan_read_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len, uint32_t *zeroed)
{
	struct plan plan;

	begin_plan(&plan, req, io_limits(req->thread)->max_sge_read);
	*zeroed = plan_range(&plan, inode, offset, len);
	return plan.nworks;
}

uint32_t transfer_plan_write_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len)
{
	struct plan plan;
	uint32_t zeroed;

	begin_plan(&plan, req, io_limits(req->thread)->max_sge_write);
	zeroed = plan_range(&plan, inode, offset, len);
	assert(!zeroed);
	(void)zeroed;
	return plan.nworks;
}

/* ---- from where it is mapped ----------------------------------------------------------------- */

static void add_zeros(struct request *req, struct pieces *pieces, uint32_t len)
{
	static const uint8_t zeros[ZEROS_BYTES];
	uint32_t piece;

	if (req->thread->shared->revivable)
		map_populate(zeros, sizeof(zeros), false);
	for (; len; len -= piece) {
		piece = (uint32_t)min_u64(len, sizeof(zeros));
		pieces_add(pieces, zeros, piece);
	}
}

bool transfer_mapped_locked(struct request *req, const struct inode *inode, uint64_t offset,
	uint32_t len, struct pieces *pieces)
{
	const void *mapped;
	struct part part;
	struct walk w;

	pieces_init(pieces);
	for (walk_init(&w, inode, offset, len); walk_next(&w, &part);) {
		if (part.hole) {
			add_zeros(req, pieces, part.len);
			continue;
		}
		mapped = io_mapped(req->thread, IO_READ, part.region, part.offset, part.len);
		if (!mapped)
			return false;
		io_count_mapped(req->thread, IO_READ, part.len);
		pieces_add(pieces, mapped, part.len);
	}
	return true;
}
