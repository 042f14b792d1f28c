/* extents.c - see extents.h. In the table: key {inode key, fpage}, npages 4, page 4, region 2. */
#include "server/record/extents.h"

#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/record/inode.h"
#include "server/record/reap_record.h"

/* A cut frees up to so many extents of the table at once, and hides more. */
enum { CUT_EXTENTS_MAX = 32 };

enum { TABLE_EXTENT_BYTES = 10 };

static uint64_t end_of(const struct extent *e)
{
	return e->fpage + e->npages;
}

/* b goes on where a ends, in the file and in memory. */
static bool adjoins(const struct extent *a, const struct extent *b)
{
	return end_of(a) == b->fpage && a->region == b->region && a->page + a->npages == b->page;
}

/* ---- the table ------------------------------------------------------------------------------- */

int extents_decode(
	struct volume *v, struct store_key key, const struct store_val *val, struct extent *e)
{
	struct wire_in r;

	wire_in_init(&r, val->data, val->len);
	*e = (struct extent){.fpage = key.lo};
	e->npages = wire_get_u32(&r);
	e->page = wire_get_u32(&r);
	e->region = wire_get_u16(&r);
	if (r.truncated || wire_in_left(&r))
		return store_damaged(v->store, STORE_EXTENT, key);
	return 0;
}

static int extents_put(struct volume *v, const struct stored_inode *i, const struct extent *e)
{
	uint8_t buf[TABLE_EXTENT_BYTES];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u32(&w, e->npages);
	wire_put_u32(&w, e->page);
	wire_put_u16(&w, e->region);
	return store_append(v->store, STORE_EXTENT, STORE_KEY(i->key, e->fpage), buf, sizeof(buf));
}

static int del(struct volume *v, const struct stored_inode *i, uint64_t fpage)
{
	int err = store_del(v->store, STORE_EXTENT, STORE_KEY(i->key, fpage));

	if (err == -ENOENT)
		return store_damaged(v->store, STORE_EXTENT, STORE_KEY(i->key, fpage));
	return err;
}

int extents_stored_at(
	struct volume *v, const struct stored_inode *i, uint64_t fpage, struct extent *out)
{
	struct store_key key;
	struct store_val val;
	int err = store_seek(v->store, STORE_EXTENT, STORE_KEY(i->key, fpage), &key, &val);

	if (!err && key.hi != i->key)
		err = -ENOENT;
	return err ? err : extents_decode(v, key, &val, out);
}

/* The last one that begins at or before the page. */
static int stored_before(
	struct volume *v, const struct stored_inode *i, uint64_t fpage, struct extent *out)
{
	struct store_key key;
	struct store_val val;
	int err;

	if (i->nextents <= INLINE_EXTENTS)
		return -ENOENT;
	err = store_seek_back(v->store, STORE_EXTENT, STORE_KEY(i->key, fpage), &key, &val);
	if (!err && (key.hi != i->key || key.lo >= i->cut))
		err = -ENOENT;
	return err ? err : extents_decode(v, key, &val, out);
}

/* The first one that begins at or after the page and is not hidden. */
static int stored_after(
	struct volume *v, const struct stored_inode *i, uint64_t fpage, struct extent *out)
{
	int err;

	if (i->nextents <= INLINE_EXTENTS)
		return -ENOENT;
	err = extents_stored_at(v, i, fpage, out);
	return !err && out->fpage >= i->cut ? -ENOENT : err;
}

int extents_at(struct volume *v, const struct stored_inode *i, uint64_t fpage, struct extent *out)
{
	int err;

	for (uint32_t n = 0; n < inode_nhead(i); n++) {
		if (end_of(&i->head[n]) > fpage) {
			*out = i->head[n];
			return 0;
		}
	}
	err = stored_before(v, i, fpage, out);
	if (err && err != -ENOENT)
		return err;
	if (!err && end_of(out) > fpage)
		return 0;
	return stored_after(v, i, fpage, out);
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* After an extent has left the head, the first one of the table takes its place. */
static int refill_head(struct volume *v, struct stored_inode *i)
{
	struct extent *last = &i->head[INLINE_EXTENTS - 1];
	int err;

	if (i->nextents < INLINE_EXTENTS)
		return 0;
	err = extents_stored_at(v, i, 0, last);
	if (err == -ENOENT)
		return store_damaged(v->store, STORE_EXTENT, STORE_KEY(i->key));
	return err ? err : del(v, i, last->fpage);
}

static int insert_in_head(
	struct volume *v, struct stored_inode *i, uint32_t pos, const struct extent *e)
{
	uint32_t n = inode_nhead(i);

	if (n == INLINE_EXTENTS) {
		int err = extents_put(v, i, &i->head[--n]);

		if (err)
			return err;
	}
	memmove(&i->head[pos + 1], &i->head[pos], (n - pos) * sizeof(*e));
	i->head[pos] = *e;
	i->nextents++;
	return 0;
}

static int add_to_head(
	struct volume *v, struct stored_inode *i, uint32_t pos, const struct extent *e)
{
	uint32_t n = inode_nhead(i);
	struct extent *prev = pos > 0 ? &i->head[pos - 1] : NULL;
	struct extent *next = pos < n ? &i->head[pos] : NULL;
	bool with_next = next && adjoins(e, next);

	if (prev && adjoins(prev, e)) {
		prev->npages += e->npages;
		if (!with_next)
			return 0;
		prev->npages += next->npages;
		memmove(next, next + 1, (n - pos - 1) * sizeof(*e));
		i->nextents--;
		return refill_head(v, i);
	}
	if (with_next) {
		next->fpage = e->fpage;
		next->page = e->page;
		next->npages += e->npages;
		return 0;
	}
	return insert_in_head(v, i, pos, e);
}

/* All extents of the head lie before it. */
static int add_to_table(struct volume *v, struct stored_inode *i, const struct extent *e)
{
	struct extent prev, next, sum = *e, *last = &i->head[INLINE_EXTENTS - 1];
	int err = stored_before(v, i, e->fpage, &prev);
	bool in_head = err == -ENOENT;

	if (err && !in_head)
		return err;
	if (in_head)
		prev = *last;
	err = stored_after(v, i, e->fpage, &next);
	if (err && err != -ENOENT)
		return err;
	if (!err && adjoins(e, &next)) {
		err = del(v, i, next.fpage);
		if (err)
			return err;
		sum.npages += next.npages;
		i->nextents--;
	}
	if (!adjoins(&prev, e)) {
		i->nextents++;
		return extents_put(v, i, &sum);
	}
	prev.npages += sum.npages;
	if (!in_head)
		return extents_put(v, i, &prev);
	*last = prev;
	return 0;
}

int extents_add(struct volume *v, struct stored_inode *i, const struct extent *e)
{
	uint32_t pos = 0, n = inode_nhead(i);

	i->attr.npages += e->npages;
	while (pos < n && i->head[pos].fpage < e->fpage)
		pos++;
	return pos < INLINE_EXTENTS ? add_to_head(v, i, pos, e) : add_to_table(v, i, e);
}

/* ---- cutting --------------------------------------------------------------------------------- */

static int extents_release(struct volume *v, struct stored_inode *i, const struct extent *e)
{
	i->attr.npages -= e->npages;
	return space_release(&v->space, page_run_of(e));
}

/* Returns the part of e from fpage on, to be freed, and shortens e to the rest. */
static struct extent split_off(struct extent *e, uint64_t fpage)
{
	struct extent tail = *e;
	uint32_t keep = fpage > e->fpage ? (uint32_t)(fpage - e->fpage) : 0;

	tail.fpage += keep;
	tail.page += keep;
	tail.npages -= keep;
	e->npages = keep;
	return tail;
}

static int cut_head(struct volume *v, struct stored_inode *i, uint64_t fpage, uint32_t *nkept)
{
	uint32_t n = inode_nhead(i);

	*nkept = n;
	while (n > 0 && end_of(&i->head[n - 1]) > fpage) {
		struct extent *e = &i->head[--n], tail = split_off(e, fpage);
		int err = extents_release(v, i, &tail);

		if (err)
			return err;
		if (e->npages == 0)
			*nkept = n;
	}
	return 0;
}

/* The extent of the table that begins before fpage and reaches beyond it. */
static int cut_across(struct volume *v, struct stored_inode *i, uint64_t fpage)
{
	struct extent e, tail;
	int err = stored_before(v, i, fpage, &e);

	if (err == -ENOENT || (!err && (e.fpage >= fpage || end_of(&e) <= fpage)))
		return 0;
	if (err)
		return err;
	tail = split_off(&e, fpage);
	err = extents_put(v, i, &e);
	return err ? err : extents_release(v, i, &tail);
}

/* Extents and pages of the table from fpage on. */
static int count_table(
	struct volume *v, struct stored_inode *i, uint64_t fpage, uint32_t *n, uint64_t *npages)
{
	struct store_key key;
	struct store_val val;
	struct extent e;
	int err = store_seek(v->store, STORE_EXTENT, STORE_KEY(i->key, fpage), &key, &val);

	*n = 0;
	*npages = 0;
	while (!err && key.hi == i->key && key.lo < i->cut) {
		err = extents_decode(v, key, &val, &e);
		if (err)
			break;
		++*n;
		*npages += e.npages;
		err = store_next(v->store, STORE_EXTENT, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

static int free_table(struct volume *v, struct stored_inode *i, uint64_t fpage, uint32_t n)
{
	struct extent e;
	int err = 0;

	while (!err && n--) {
		err = extents_stored_at(v, i, fpage, &e);
		if (!err)
			err = del(v, i, e.fpage);
		if (!err)
			err = extents_release(v, i, &e);
	}
	return err;
}

static int hide_table(struct volume *v, struct stored_inode *i, uint64_t fpage, uint64_t npages)
{
	struct reap_record record = {0};
	int err = i->flags & INODE_REAPING ? reap_record_load(v, i->key, &record) : 0;

	if (err)
		return err;
	CRASH_POINT("cut.hidden");
	record.cut = fpage;
	record.npages += npages;
	i->flags |= INODE_REAPING;
	i->cut = fpage;
	i->attr.npages -= npages;
	return reap_record_save(v, i->key, &record);
}

int extents_cut(struct volume *v, struct stored_inode *i, uint64_t fpage)
{
	uint32_t nkept, n = 0;
	uint64_t npages;
	int err;

	if (i->nextents > INLINE_EXTENTS) {
		err = cut_across(v, i, fpage);
		if (!err)
			err = count_table(v, i, fpage, &n, &npages);
		if (!err && n)
			err = n <= CUT_EXTENTS_MAX ? free_table(v, i, fpage, n)
						   : hide_table(v, i, fpage, npages);
		if (err)
			return err;
	}
	err = cut_head(v, i, fpage, &nkept);
	i->nextents -= n + (inode_nhead(i) - nkept);
	return err;
}

/* ---- punching -------------------------------------------------------------------------------- */

/* The parts of an extent when some of its pages go; npages 0: there is no such part. */
struct parts {
	struct extent front, gone, back;
};

/* At least one page of [first, end) must be e's. */
static struct parts take_out(const struct extent *e, uint64_t first, uint64_t end)
{
	struct parts p = {.front = *e};

	p.gone = split_off(&p.front, first);
	p.back = split_off(&p.gone, min_u64(end, end_of(e)));
	return p;
}

static int punch_head(struct volume *v, struct stored_inode *i, uint32_t pos, const struct parts *p)
{
	struct extent *e = &i->head[pos];

	if (p->front.npages && p->back.npages) {
		*e = p->front;
		if (pos + 1 < INLINE_EXTENTS)
			return insert_in_head(v, i, pos + 1, &p->back);
		i->nextents++;
		return extents_put(v, i, &p->back);
	}
	if (p->front.npages || p->back.npages) {
		*e = p->front.npages ? p->front : p->back;
		return 0;
	}
	memmove(e, e + 1, (inode_nhead(i) - pos - 1) * sizeof(*e));
	i->nextents--;
	return refill_head(v, i);
}

static int punch_table(
	struct volume *v, struct stored_inode *i, const struct extent *e, const struct parts *p)
{
	int err = p->front.npages ? extents_put(v, i, &p->front) : del(v, i, e->fpage);

	if (!p->front.npages)
		i->nextents--;
	if (err || !p->back.npages)
		return err;
	i->nextents++;
	return extents_put(v, i, &p->back);
}

static int punch_one(struct volume *v, struct stored_inode *i, const struct extent *e,
	uint64_t first, uint64_t end)
{
	struct parts p = take_out(e, first, end);
	uint32_t pos = 0, n = inode_nhead(i);
	int err;

	while (pos < n && i->head[pos].fpage != e->fpage)
		pos++;
	err = pos < n ? punch_head(v, i, pos, &p) : punch_table(v, i, e, &p);
	return err ? err : extents_release(v, i, &p.gone);
}

int extents_punch(struct volume *v, struct stored_inode *i, uint64_t first, uint64_t end,
	unsigned *budget, uint64_t *reached)
{
	struct extent e;
	int err;

	for (*reached = first; *reached < end && *budget; --*budget) {
		err = extents_at(v, i, *reached, &e);
		if (err == -ENOENT || (!err && e.fpage >= end)) {
			*reached = end;
			return 0;
		}
		if (!err)
			err = punch_one(v, i, &e, first, end);
		if (err)
			return err;
		*reached = min_u64(end, end_of(&e));
	}
	return 0;
}

/* ---- hidden extents ------------------------------------------------------------------------- */

int extents_free_hidden(
	struct volume *v, struct stored_inode *i, unsigned *budget, uint64_t *npages, bool *done)
{
	struct extent e;
	int err;

	*npages = 0;
	for (err = extents_stored_at(v, i, i->cut, &e); !err && *budget;
		err = extents_stored_at(v, i, i->cut, &e)) {
		err = del(v, i, e.fpage);
		if (!err)
			err = space_release(&v->space, page_run_of(&e));
		if (err)
			return err;
		*npages += e.npages;
		--*budget;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT;
	return 0;
}
