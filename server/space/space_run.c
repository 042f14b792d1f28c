/* space_run.c - see space_run.h. */
#include "server/space/space_run.h"

#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"

enum { RUN_BYTES_MAX = 13 };

bool space_run_is_same_kind(const struct space_run *a, const struct space_run *b)
{
	return a->state == b->state && a->session == b->session && a->region == b->region;
}

int space_run_parse(struct space *sp, struct store_key key, const struct store_val *val,
	struct page_run *run, enum page_state *state, uint64_t *session)
{
	struct wire_in in;

	wire_in_init(&in, val->data, val->len);
	run->region = (uint16_t)(key.hi >> 32);
	run->page = (uint32_t)key.hi;
	run->npages = wire_get_u32(&in);
	*state = wire_get_u8(&in);
	*session = *state == PAGE_GRANTED ? wire_get_u64(&in) : 0;
	if (in.truncated || wire_in_left(&in) || *state < PAGE_FREE || *state > PAGE_DIRTY)
		return store_damaged(sp->store, STORE_SPACE, key);
	return 0;
}

int space_run_decode(
	struct space *sp, struct store_key key, const struct store_val *val, struct space_run *r)
{
	struct page_run run;
	int err = space_run_parse(sp, key, val, &run, &r->state, &r->session);

	if (err)
		return err;
	r->region = run.region;
	r->page = run.page;
	r->npages = run.npages;
	if (r->region >= sp->nregions || !r->npages ||
		!range_within(r->page, r->npages, space_region_pages(sp, r->region)))
		return store_damaged(sp->store, STORE_SPACE, key);
	return 0;
}

int space_run_put(struct space *sp, const struct space_run *r)
{
	uint8_t buf[RUN_BYTES_MAX];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u32(&w, r->npages);
	wire_put_u8(&w, (uint8_t)r->state);
	if (r->state == PAGE_GRANTED)
		wire_put_u64(&w, r->session);
	return store_put(sp->store, STORE_SPACE, space_run_key(sp, r->region, r->page), buf,
		wire_out_len(&w));
}

int space_run_del(struct space *sp, const struct space_run *r)
{
	return store_del(sp->store, STORE_SPACE, space_run_key(sp, r->region, r->page));
}

int space_run_at(struct space *sp, uint32_t region, uint32_t page, struct space_run *r)
{
	struct store_key want = space_run_key(sp, region, page), key;
	struct store_val val;
	int err = store_seek_back(sp->store, STORE_SPACE, want, &key, &val);

	if (err)
		return err;
	if (key.hi >> 32 != want.hi >> 32)
		return -ENOENT;
	return space_run_decode(sp, key, &val, r);
}

int space_run_add(struct space *sp, const struct space_run *add)
{
	struct space_run r = *add, near;
	struct store_val val;
	struct store_key after = space_run_key(sp, r.region, 0);
	int err = r.page ? space_run_at(sp, r.region, r.page - 1, &near) : -ENOENT;

	if (err && err != -ENOENT)
		return err;
	if (!err && space_run_is_same_kind(&near, &r) && space_run_end(&near) == r.page) {
		r.page = near.page;
		r.npages += near.npages;
	}
	after.hi += space_run_end(&r);
	err = space_run_end(&r) < space_region_pages(sp, r.region)
		      ? store_get(sp->store, STORE_SPACE, after, &val)
		      : -ENOENT;
	if (!err)
		err = space_run_decode(sp, after, &val, &near);
	if (err && err != -ENOENT)
		return err;
	if (!err && space_run_is_same_kind(&near, &r)) {
		err = space_run_del(sp, &near);
		if (err)
			return err;
		r.npages += near.npages;
	}
	return space_run_put(sp, &r);
}

int space_run_cut(struct space *sp, const struct space_run *cut)
{
	uint64_t end = space_run_end(cut);

	for (uint64_t at = cut->page; at < end;) {
		struct space_run r, rest;
		int err = space_run_at(sp, cut->region, (uint32_t)at, &r);

		if (!err && (!space_run_is_same_kind(&r, cut) || space_run_end(&r) <= at))
			err = -ENOENT;
		if (err == -ENOENT)
			return store_damaged(sp->store, STORE_SPACE,
				space_run_key(sp, cut->region, (uint32_t)at));
		if (err)
			return err;
		rest = r;
		rest.page = (uint32_t)end;
		rest.npages = space_run_end(&r) > end ? (uint32_t)(space_run_end(&r) - end) : 0;
		if (r.page < at) {
			uint64_t next = space_run_end(&r);

			r.npages = (uint32_t)(at - r.page);
			err = space_run_put(sp, &r);
			at = next;
		} else {
			err = space_run_del(sp, &r);
			at = space_run_end(&r);
		}
		if (!err && rest.npages)
			err = space_run_put(sp, &rest);
		if (err)
			return err;
	}
	return 0;
}

int space_run_next(struct space *sp, uint64_t *at, struct space_run *r)
{
	struct store_key key, start = space_run_key(sp, 0, 0);
	struct store_val val;
	int err;

	start.hi += *at;
	err = store_seek(sp->store, STORE_SPACE, start, &key, &val);
	if (!err && key.hi >> 48 != sp->export_id)
		err = -ENOENT;
	if (!err)
		err = space_run_decode(sp, key, &val, r);
	if (!err)
		*at = ((uint64_t)r->region << 32) + space_run_end(r);
	return err;
}
