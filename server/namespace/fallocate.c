/* fallocate.c - FALLOCATE: pages for holes, holes for pages, zeros.
 *
 * A step does a bounded number of extents and of bytes; the client asks again for the rest. The
 * file's size grows with the last step. So a client that gives up in between has changed nothing
 * that can be seen, but for zeros that it asked for.
 *
 * Bytes are zeroed in place, also whole pages. That needs no other pages, which may be lacking, and
 * keeps the file in one piece.
 */
#include <errno.h>
#include <linux/falloc.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/namespace/ns.h"

enum {
	STEP_EXTENTS = 32,
	STEP_ZERO_PAGES = 256, /* a tenth of a millisecond of this thread's time */
};

static int ns_fallocate_check(const struct stored_inode *i, const struct rpc_fallocate *req)
{
	switch (req->mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (inode_is_dir(i))
		return -EISDIR;
	if (!S_ISREG(i->attr.mode))
		return -ENODEV;
	return 0;
}

/* The range, in bytes and in pages that it touches. */
struct range {
	uint64_t from, to, first, end;
};

static struct range range_of(const struct rpc_fallocate *req)
{
	uint64_t to = req->offset + req->len;

	return (struct range){
		.from = req->offset,
		.to = to,
		.first = req->offset >> PAGE_SHIFT,
		.end = div_round_up(to, PAGE_BYTES),
	};
}

/* ---- pages for holes ------------------------------------------------------------------------- */

/* From this byte on mapped pages are zeroed: where zeros are wanted, and where the file grows over
 * pages that were allocated before. A client may have written to these and died before its
 * COMMIT. */
static uint64_t zero_from(const struct stored_inode *i, const struct rpc_fallocate *req)
{
	if (req->mode & FALLOC_FL_ZERO_RANGE)
		return req->offset;
	return req->mode & FALLOC_FL_KEEP_SIZE ? UINT64_MAX : max_u64(i->attr.size, req->offset);
}

/* Zeroes mapped pages from `at` to *end, as many as there is time for; *end: how far that went. */
static int zero_some(struct ns_call *c, const struct stored_inode *i, const struct range *r,
	uint64_t at, uint64_t *end, uint64_t *npages)
{
	uint64_t from = max_u64(zero_from(i, &c->req->fallocate), at << PAGE_SHIFT);

	if (from >= *end << PAGE_SHIFT)
		return 0;
	*end = min_u64(*end, at + *npages);
	*npages -= *end - at;
	return ns_zero(c, i, from, min_u64(r->to, *end << PAGE_SHIFT));
}

/* Does one extent, or one hole, of the pages from `at` on; *end: how far that went. */
static int allocate_one(struct ns_call *c, struct stored_inode *i, const struct range *r,
	uint64_t at, uint64_t *end, uint64_t *npages)
{
	struct extent e;
	int err = extents_at(c->v, i, at, &e);

	*end = r->end;
	if (err && err != -ENOENT)
		return err;
	if (!err && e.fpage <= at) {
		*end = min_u64(r->end, e.fpage + e.npages);
		return zero_some(c, i, r, at, end, npages);
	}
	if (!err)
		*end = min_u64(r->end, e.fpage);
	return ns_fill_hole(c, i, at, end);
}

/* Pages that a range of the file may have in the end. A request for more is refused before it takes
 * any, or it would fail with all free pages in the file. */
static uint64_t obtainable(const struct ns_call *c, const struct stored_inode *i)
{
	const struct space_counts *now = &c->v->space.now;
	uint64_t others = now->granted + now->dirty + c->v->now.reap_pages;

	return i->attr.npages + now->free + (ns_dirty_comes(c) ? others : 0);
}

static int allocate(
	struct ns_call *c, struct stored_inode *i, const struct range *r, uint64_t *reached)
{
	uint64_t at = r->first, end, zero_pages = STEP_ZERO_PAGES;
	int err;

	if (r->end - r->first > obtainable(c, i))
		return -ENOSPC;
	err = ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_REAPED * STEP_EXTENTS, true);
	for (unsigned n = 0; !err && at < r->end && n < STEP_EXTENTS && zero_pages; n++) {
		err = allocate_one(c, i, r, at, &end, &zero_pages);
		if (!err)
			at = end;
	}
	/* If pages have run out after some were taken, the next step reports that. */
	if (err && at == r->first)
		return err;
	*reached = min_u64(r->to, at << PAGE_SHIFT);
	return 0;
}

/* ---- holes for pages ------------------------------------------------------------------------- */

/* A hole within one extent makes two of it, and so records that stay. */
static int splits(struct ns_call *c, const struct stored_inode *i, const struct range *r, bool *out)
{
	struct extent e;
	int err = extents_at(c->v, i, r->first, &e);

	*out = !err && e.fpage < r->first && r->first < r->end && e.fpage + e.npages > r->end;
	return err == -ENOENT ? 0 : err;
}

/* Frees the whole pages of the range, and zeroes the rest of it. */
static int punch(
	struct ns_call *c, struct stored_inode *i, const struct range *r, uint64_t *reached)
{
	struct range whole = {
		.first = div_round_up(r->from, PAGE_BYTES), .end = r->to >> PAGE_SHIFT};
	unsigned budget = STEP_EXTENTS;
	uint64_t at;
	bool grows;
	int err = splits(c, i, &whole, &grows);

	if (!err)
		err = ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_REAPED * STEP_EXTENTS, grows);
	if (!err)
		err = ns_zero(c, i, r->from, min_u64(r->to, whole.first << PAGE_SHIFT));
	*reached = r->to;
	if (err || whole.first > whole.end)
		return err;
	err = extents_punch(c->v, i, whole.first, whole.end, &budget, &at);
	if (!err && at == whole.end)
		return ns_zero(c, i, at << PAGE_SHIFT, r->to);
	*reached = at << PAGE_SHIFT;
	return err;
}

/* ---- the request ----------------------------------------------------------------------------- */

static int ns_fallocate_grow(struct ns_call *c, struct stored_inode *i, uint64_t size)
{
	int err;

	if (c->req->fallocate.mode & FALLOC_FL_KEEP_SIZE || size <= i->attr.size)
		return 0;
	err = ns_zero_tail(c, i, i->attr.size);
	i->attr.size = size;
	return err;
}

int ns_fallocate(struct ns_call *c)
{
	const struct rpc_fallocate *req = &c->req->fallocate;
	struct range r = range_of(req);
	struct stored_inode inode;
	uint64_t reached = 0;
	int err = inode_load(c->v, req->ino, &inode);

	if (!err)
		err = ns_fallocate_check(&inode, req);
	if (!err)
		err = ns_check_lease(c, &inode, LEASE_EXCLUSIVE);
	if (!err)
		err = ns_may_change_bytes(c);
	if (!err)
		err = req->mode & FALLOC_FL_PUNCH_HOLE ? punch(c, &inode, &r, &reached)
						       : allocate(c, &inode, &r, &reached);
	CRASH_POINT("fallocate.step");
	if (!err && reached == r.to)
		err = ns_fallocate_grow(c, &inode, r.to);
	if (err)
		return err;
	ns_modified(c, &inode.attr);
	c->rep->progress.attr = inode.attr;
	c->rep->progress.done = reached - req->offset;
	return inode_save(c->v, &inode);
}
