/* pages.c - what the server itself does to the bytes and holes of files; see ns.h. */
#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/namespace/ns.h"

/* At most, in one step: a tenth of a millisecond of this thread's time. */
enum { GROWTH_PAGES = 256, GROWTH_EXTENTS = 32 };

static uint8_t *byte_of(const struct ns_call *c, const struct extent *e, uint64_t offset)
{
	uint64_t within = offset - (e->fpage << PAGE_SHIFT);

	return (uint8_t *)c->v->bases[e->region] + ((uint64_t)e->page << PAGE_SHIFT) + within;
}

/* The pages of an extent that bytes [begin, end) of the file lie in. */
static struct page_run pages_of(const struct extent *e, uint64_t begin, uint64_t end)
{
	uint64_t first = begin >> PAGE_SHIFT;

	return (struct page_run){
		.region = e->region,
		.page = (uint32_t)(e->page + (first - e->fpage)),
		.npages = (uint32_t)(div_round_up(end, PAGE_BYTES) - first),
	};
}

int ns_bytes_at(struct ns_call *c, const struct stored_inode *i, uint64_t offset,
	const uint8_t **at, uint64_t *len)
{
	struct extent e;
	int err = extents_at(c->v, i, offset >> PAGE_SHIFT, &e);

	*at = NULL;
	if (err) {
		*len = UINT64_MAX;
		return err == -ENOENT ? 0 : err;
	}
	if (e.fpage > offset >> PAGE_SHIFT) {
		*len = (e.fpage << PAGE_SHIFT) - offset;
		return 0;
	}
	*at = byte_of(c, &e, offset);
	*len = ((e.fpage + e.npages) << PAGE_SHIFT) - offset;
	return 0;
}

/* from NULL: zeros. */
static int put_bytes(struct ns_call *c, const struct stored_inode *i, uint64_t offset, uint64_t end,
	const uint8_t *from)
{
	uint64_t at = offset;
	struct extent e;
	int err = 0;

	while (at < end) {
		uint64_t first, last;

		err = extents_at(c->v, i, at >> PAGE_SHIFT, &e);
		if (err)
			break;
		first = max_u64(at, e.fpage << PAGE_SHIFT);
		last = min_u64(end, (e.fpage + e.npages) << PAGE_SHIFT);
		if (first >= last)
			break;
		ns_give_up_pages(c, pages_of(&e, first, last));
		CRASH_POINT("zero.before");
		if (from)
			memcpy(byte_of(c, &e, first), from + (first - offset), last - first);
		else
			memset(byte_of(c, &e, first), 0, last - first);
		CRASH_POINT("zero.after");
		at = last;
	}
	return err == -ENOENT ? 0 : err;
}

int ns_write(struct ns_call *c, const struct stored_inode *i, uint64_t offset, const uint8_t *from,
	uint64_t len)
{
	return put_bytes(c, i, offset, offset + len, from);
}

int ns_zero(struct ns_call *c, const struct stored_inode *i, uint64_t from, uint64_t to)
{
	return put_bytes(c, i, from, to, NULL);
}

int ns_zero_tail(struct ns_call *c, const struct stored_inode *i, uint64_t from)
{
	return ns_zero(c, i, from, div_round_up(from, PAGE_BYTES) << PAGE_SHIFT);
}

/* A client that died before its COMMIT may have written to any page that is mapped there. */
int ns_zero_growth(struct ns_call *c, const struct stored_inode *i, uint64_t size, uint64_t *to)
{
	uint64_t at = i->attr.size, end = div_round_up(size, PAGE_BYTES), npages = GROWTH_PAGES;
	struct extent e;
	int err = 0;

	for (unsigned n = 0; !err && n < GROWTH_EXTENTS && npages && at < size; n++) {
		uint64_t first, last;

		err = extents_at(c->v, i, at >> PAGE_SHIFT, &e);
		if (!err && e.fpage >= end)
			err = -ENOENT;
		if (err)
			break;
		first = max_u64(e.fpage, at >> PAGE_SHIFT);
		last = min_u64(min_u64(e.fpage + e.npages, end), first + npages);
		err = ns_zero(c, i, max_u64(at, first << PAGE_SHIFT), last << PAGE_SHIFT);
		npages -= last - first;
		at = last << PAGE_SHIFT;
	}
	if (err && err != -ENOENT)
		return err;
	*to = err ? size : min_u64(at, size);
	return 0;
}

int ns_fill_hole(struct ns_call *c, struct stored_inode *i, uint64_t fpage, uint64_t *end)
{
	uint64_t left = UINT64_MAX;
	struct page_run run;
	struct extent e;
	int err = quota_left(c->v, &i->counted, i->attr.npages, &left);

	if (err)
		return err;
	if (!left)
		return ns_no_quota(c);
	if (fpage >= i->cut)
		return ns_wait_for_reaper(c);
	if (!c->v->space.now.free)
		return ns_no_pages(c);
	err = space_take(&c->v->space, min_u64(min_u64(*end, i->cut) - fpage, left), &run);
	if (err)
		return err;
	e = (struct extent){
		.fpage = fpage, .npages = run.npages, .page = run.page, .region = run.region};
	*end = fpage + run.npages;
	return extents_add(c->v, i, &e);
}
