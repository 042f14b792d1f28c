#include "daemon/file/fill_holes.h"

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/pages/landing.h"
#include "daemon/file/last_resort.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/file/inode.h"
#include "daemon/file/extent_map.h"
#include "daemon/pages/quota_allowance.h"

static void count_taken(struct fs_thread *ft, uint32_t npages)
{
	__atomic_store_n(&ft->taken, ft->taken + npages, __ATOMIC_RELAXED);
}

static int fill_locked(
	struct inode *inode, struct fs_thread *ft, uint64_t first, uint64_t end, uint64_t *filled)
{
	struct grants *grants = inode->fs->grants;
	struct extent_cursor at;
	struct mapped_extent e;
	struct extent run;
	int r;

	for (*filled = first; *filled < end; *filled += run.npages) {
		uint64_t hole_end = end;
		uint32_t allowed;

		if (extent_map_seek(&inode->map, *filled, &at, &e)) {
			run.npages = (uint32_t)(e.fpage + e.npages - *filled);
			if (e.fpage <= *filled)
				continue;
			hole_end = min_u64(end, e.fpage);
		}
		allowed = quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr,
			(uint32_t)min_u64(hole_end - *filled, UINT32_MAX));
		if (!allowed)
			return -EDQUOT;
		if (!window_take(&inode->window, grants, allowed, &run))
			return -EAGAIN;
		count_taken(ft, run.npages);
		run.fpage = *filled;
		r = extent_map_insert(&inode->map, &run, EXTENT_FILLING);
		if (r) {
			grants_add(grants, &run);
			return r;
		}
		quota_allowance_use_locked(&inode->share, run.npages);
	}
	return 0;
}

int fill_holes(struct request *req, uint64_t first, uint64_t end, uint64_t *filled)
{
	struct inode *inode = op_of(req)->inode;
	uint32_t had, left;
	int r;

	pthread_mutex_lock(&inode->lock);
	had = inode->window.rest.npages;
	r = fill_locked(inode, fs_thread_of(req->thread), first, end, filled);
	left = inode->window.rest.npages;
	inode->filled_ms = io_thread_now(req->thread);
	pthread_mutex_unlock(&inode->lock);
	if (left > had || r == -EAGAIN)
		grant_refill_check(req->thread);
	return r;
}

static bool is_hole_locked(const struct inode *inode, uint64_t first, uint64_t end)
{
	struct extent_cursor at;
	struct mapped_extent e;

	return !extent_map_seek(&inode->map, first, &at, &e) || e.fpage >= end;
}

static bool take_landed_locked(struct request *req, struct inode *inode, uint64_t first)
{
	struct extent run;

	landing_peek(req, &run);
	run.fpage = first;
	if (quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, run.npages) <
			run.npages ||
		extent_map_insert(&inode->map, &run, EXTENT_FILLING) != 0)
		return false;
	quota_allowance_use_locked(&inode->share, run.npages);
	count_taken(fs_thread_of(req->thread), run.npages);
	inode->filled_ms = io_thread_now(req->thread);
	landing_take(req);
	return true;
}

bool fill_holes_landed(struct request *req, uint64_t first, uint64_t end)
{
	struct inode *inode = op_of(req)->inode;
	bool could, taken;

	if (req->args.size < LANDING_BYTES_MIN || !io_maps(req->thread))
		return false;
	pthread_mutex_lock(&inode->lock);
	could = req->args.offset % PAGE_BYTES == 0 && is_hole_locked(inode, first, end);
	taken = could && landing_holds(req) && take_landed_locked(req, inode, first);
	pthread_mutex_unlock(&inode->lock);
	if (taken)
		grant_refill_check(req->thread);
	else
		landing_expect(req->thread, could);
	return taken;
}

static unsigned fill_holes_what_to_release(int status)
{
	switch (status) {
	case -ENOSPC:
		return RELEASE_WINDOWS;
	case -EDQUOT:
		return RELEASE_SHARES;
	default:
		return 0;
	}
}

static void fill_holes_waited(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (!status)
		op->released = 0;
	if (!last_resort_wait(req, fill_holes_what_to_release(status), op->filled))
		op->filled(req, status);
}

bool fill_holes_wait(struct request *req, int lacks, void (*then)(struct request *req, int status))
{
	struct inode *inode = op_of(req)->inode;
	uint32_t uid, gid;

	op_of(req)->filled = then;
	if (lacks != -EDQUOT)
		return grant_refill_wait(req, fill_holes_waited);
	pthread_mutex_lock(&inode->lock);
	uid = inode->attr.uid;
	gid = inode->attr.gid;
	pthread_mutex_unlock(&inode->lock);
	return quota_allowance_wait(req, uid, gid, fill_holes_waited);
}
