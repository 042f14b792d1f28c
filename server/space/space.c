/* space.c - see space.h. */
#include "server/space/space.h"

#include <assert.h>
#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/base/bits.h"
#include "server/space/runmap.h"

enum { SESSION_END_RUNS = 2048, SESSION_END_GRANTS = 128 };

struct space_change {
	struct runmap *map; /* NULL: in_file, and page counts over all regions */
	uint64_t page;
	uint32_t npages;
	bool added;
};

/* At most, of one change of a state. */
enum { CHANGES_MAX = 2 };

/* A stored run: npages, state, and for grants the session. The key is export, region, page. */
struct run {
	uint32_t region, page, npages;
	enum page_state state;
	uint64_t session;
};

enum { RUN_BYTES_MAX = 13 };

static struct store_key run_key(const struct space *sp, uint32_t region, uint32_t page)
{
	return STORE_KEY((uint64_t)sp->export_id << 48 | (uint64_t)region << 32 | page);
}

static uint64_t run_end(const struct run *r)
{
	return (uint64_t)r->page + r->npages;
}

static bool same_kind(const struct run *a, const struct run *b)
{
	return a->state == b->state && a->session == b->session && a->region == b->region;
}

uint32_t space_region_pages(const struct space *sp, uint32_t region)
{
	return (uint32_t)min_u64(sp->region_pages, sp->npages - region * sp->region_pages);
}

/* ---- the stored runs ------------------------------------------------------------------------- */

int space_decode_run(struct space *sp, struct store_key key, const struct store_val *val,
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

static int decode_run(
	struct space *sp, struct store_key key, const struct store_val *val, struct run *r)
{
	struct page_run run;
	int err = space_decode_run(sp, key, val, &run, &r->state, &r->session);

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

static int put_run(struct space *sp, const struct run *r)
{
	uint8_t buf[RUN_BYTES_MAX];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u32(&w, r->npages);
	wire_put_u8(&w, (uint8_t)r->state);
	if (r->state == PAGE_GRANTED)
		wire_put_u64(&w, r->session);
	return store_put(
		sp->store, STORE_SPACE, run_key(sp, r->region, r->page), buf, wire_out_len(&w));
}

static int del_run(struct space *sp, const struct run *r)
{
	return store_del(sp->store, STORE_SPACE, run_key(sp, r->region, r->page));
}

/* The run that holds a page or is the last before it, within the page's region. */
static int run_at(struct space *sp, uint32_t region, uint32_t page, struct run *r)
{
	struct store_key want = run_key(sp, region, page), key;
	struct store_val val;
	int err = store_seek_back(sp->store, STORE_SPACE, want, &key, &val);

	if (err)
		return err;
	if (key.hi >> 32 != want.hi >> 32)
		return -ENOENT;
	return decode_run(sp, key, &val, r);
}

/* Adds a run, joined with its neighbours of the same kind. */
static int add_run(struct space *sp, const struct run *add)
{
	struct run r = *add, near;
	struct store_val val;
	struct store_key after = run_key(sp, r.region, 0);
	int err = r.page ? run_at(sp, r.region, r.page - 1, &near) : -ENOENT;

	if (err && err != -ENOENT)
		return err;
	if (!err && same_kind(&near, &r) && run_end(&near) == r.page) {
		r.page = near.page;
		r.npages += near.npages;
	}
	after.hi += run_end(&r);
	err = run_end(&r) < space_region_pages(sp, r.region)
		      ? store_get(sp->store, STORE_SPACE, after, &val)
		      : -ENOENT;
	if (!err)
		err = decode_run(sp, after, &val, &near);
	if (err && err != -ENOENT)
		return err;
	if (!err && same_kind(&near, &r)) {
		err = del_run(sp, &near);
		if (err)
			return err;
		r.npages += near.npages;
	}
	return put_run(sp, &r);
}

/* Takes pages out of the runs that hold them; `cut` says which and of which kind they are. */
static int cut_runs(struct space *sp, const struct run *cut)
{
	uint64_t end = run_end(cut);

	for (uint64_t at = cut->page; at < end;) {
		struct run r, rest;
		int err = run_at(sp, cut->region, (uint32_t)at, &r);

		if (!err && (!same_kind(&r, cut) || run_end(&r) <= at))
			err = -ENOENT;
		if (err == -ENOENT)
			return store_damaged(
				sp->store, STORE_SPACE, run_key(sp, cut->region, (uint32_t)at));
		if (err)
			return err;
		rest = r;
		rest.page = (uint32_t)end;
		rest.npages = run_end(&r) > end ? (uint32_t)(run_end(&r) - end) : 0;
		if (r.page < at) {
			uint64_t next = run_end(&r);

			r.npages = (uint32_t)(at - r.page);
			err = put_run(sp, &r);
			at = next;
		} else {
			err = del_run(sp, &r);
			at = run_end(&r);
		}
		if (!err && rest.npages)
			err = put_run(sp, &rest);
		if (err)
			return err;
	}
	return 0;
}

/* ---- the maps in memory ---------------------------------------------------------------------- */

static int reserve_change(struct space *sp)
{
	size_t room = sp->changes_room ? sp->changes_room * 2 : 1024;
	struct space_change *changes;

	if (sp->nchanges + CHANGES_MAX <= sp->changes_room)
		return 0;
	changes = realloc(sp->changes, room * sizeof(*changes));
	if (!changes)
		return store_fail(sp->store, -ENOMEM);
	sp->changes = changes;
	sp->changes_room = room;
	return 0;
}

static void apply(struct space *sp, const struct space_change *c, bool add)
{
	if (!c->map)
		bits_assign(sp->in_file, c->page, c->npages, add);
	else if (add)
		runmap_add(c->map, (uint32_t)c->page, c->npages);
	else
		runmap_remove(c->map, (uint32_t)c->page, c->npages);
}

/* Room for the note was reserved before. */
static void change(struct space *sp, struct space_change c)
{
	assert(sp->nchanges < sp->changes_room);
	sp->changes[sp->nchanges++] = c;
	apply(sp, &c, c.added);
}

static void change_map(struct space *sp, struct runmap *map, struct page_run run, bool add)
{
	change(sp, (struct space_change){map, run.page, run.npages, add});
}

static void change_in_file(struct space *sp, struct page_run run, bool add)
{
	uint64_t first = run.region * sp->region_pages + run.page;

	change(sp, (struct space_change){NULL, first, run.npages, add});
}

void space_begin(struct space *sp)
{
	sp->saved = sp->now;
	sp->nchanges = 0;
}

void space_commit(struct space *sp)
{
	sp->nchanges = 0;
}

void space_abort(struct space *sp)
{
	while (sp->nchanges) {
		const struct space_change *c = &sp->changes[--sp->nchanges];

		apply(sp, c, !c->added);
	}
	sp->now = sp->saved;
}

static uint64_t *count_of(struct space *sp, enum page_state state)
{
	switch (state) {
	case PAGE_FREE:
		return &sp->now.free;
	case PAGE_GRANTED:
		return &sp->now.granted;
	case PAGE_DIRTY:
		return &sp->now.dirty;
	}
	abort();
}

/* ---- opening --------------------------------------------------------------------------------- */

static int load_run(struct space *sp, const struct run *r)
{
	*count_of(sp, r->state) += r->npages;
	bits_assign(sp->in_file, r->region * sp->region_pages + r->page, r->npages, false);
	if (r->state == PAGE_FREE)
		runmap_add(sp->free[r->region], r->page, r->npages);
	else if (r->state == PAGE_DIRTY)
		runmap_add(sp->dirty[r->region], r->page, r->npages);
	return 0;
}

static int load_runs(struct space *sp)
{
	struct store_key key, start = run_key(sp, 0, 0);
	struct run r, last = {0};
	struct store_val val;
	int err = store_seek(sp->store, STORE_SPACE, start, &key, &val);

	while (!err && key.hi >> 48 == sp->export_id) {
		err = decode_run(sp, key, &val, &r);
		if (!err && r.region == last.region && r.page < run_end(&last))
			err = store_damaged(sp->store, STORE_SPACE, key);
		if (!err)
			err = load_run(sp, &r);
		last = r;
		if (!err)
			err = store_next(sp->store, STORE_SPACE, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}

static int add_region(struct space *sp, uint32_t region, enum page_state state)
{
	struct run r = {region, 0, space_region_pages(sp, region), state, 0};
	int err = put_run(sp, &r);

	return err ? err : load_run(sp, &r);
}

int space_add_region(struct space *sp, uint32_t region)
{
	return add_region(sp, region, PAGE_FREE);
}

int space_add_used_region(struct space *sp, uint32_t region)
{
	return add_region(sp, region, PAGE_DIRTY);
}

static int make_runs(struct space *sp)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < sp->nregions; i++)
		err = space_add_region(sp, i);
	return err;
}

int space_open(struct space *sp, bool fresh)
{
	int err = -ENOMEM;

	sp->free = calloc(sp->nregions, sizeof(struct runmap *));
	sp->dirty = calloc(sp->nregions, sizeof(struct runmap *));
	sp->in_file = bits_new(sp->npages);
	if (!sp->free || !sp->dirty || !sp->in_file)
		goto err_close;
	bits_assign(sp->in_file, 0, sp->npages, true);
	for (uint32_t i = 0; i < sp->nregions; i++) {
		sp->free[i] = runmap_new(space_region_pages(sp, i));
		sp->dirty[i] = runmap_new(space_region_pages(sp, i));
		if (!sp->free[i] || !sp->dirty[i])
			goto err_close;
	}
	err = fresh ? make_runs(sp) : load_runs(sp);
	if (err)
		goto err_close;
	sp->reuse = fresh;
	return 0;

err_close:
	space_close(sp);
	return err;
}

void space_close(struct space *sp)
{
	for (uint32_t i = 0; i < sp->nregions; i++) {
		if (sp->free)
			runmap_delete(sp->free[i]);
		if (sp->dirty)
			runmap_delete(sp->dirty[i]);
	}
	free(sp->free);
	free(sp->dirty);
	free(steal_ptr(&sp->in_file));
	free(sp->changes);
	sp->free = sp->dirty = NULL;
	sp->changes = NULL;
}

/* ---- changes of state ------------------------------------------------------------------------ */

static struct run as_run(struct page_run run, enum page_state state, uint64_t session)
{
	return (struct run){run.region, run.page, run.npages, state, session};
}

static int leave(struct space *sp, struct run r)
{
	int err = cut_runs(sp, &r);

	if (!err)
		*count_of(sp, r.state) -= r.npages;
	return err;
}

static int enter(struct space *sp, struct run r)
{
	int err = add_run(sp, &r);

	if (!err)
		*count_of(sp, r.state) += r.npages;
	return err;
}

static int make_dirty(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = enter(sp, as_run(run, PAGE_DIRTY, 0));
	if (!err)
		change_map(sp, sp->dirty[run.region], run, true);
	return err;
}

static int grant_run(struct space *sp, uint64_t session, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = leave(sp, as_run(run, PAGE_FREE, 0));
	if (!err)
		err = enter(sp, as_run(run, PAGE_GRANTED, session));
	if (!err)
		change_map(sp, sp->free[run.region], run, false);
	return err;
}

/* The first run that is long enough, else the longest there is. False: nothing is free. */
static bool find_free(struct space *sp, uint64_t npages, struct page_run *run)
{
	run->npages = 0;
	for (uint32_t i = 0; i < sp->nregions; i++) {
		uint32_t longest = runmap_longest(sp->free[i]);

		if (longest <= run->npages)
			continue;
		run->region = (uint16_t)i;
		run->npages = (uint32_t)min_u64(longest, npages);
		if (run->npages == npages)
			break;
	}
	if (!run->npages)
		return false;
	run->page = runmap_find(sp->free[run->region], run->npages);
	return true;
}

int space_grant(struct space *sp, uint64_t session, uint64_t npages, struct extent *out,
	unsigned max, unsigned *n)
{
	struct page_run run;
	unsigned count = 0;

	while (npages && count < max && find_free(sp, npages, &run)) {
		int err = grant_run(sp, session, run);

		if (err)
			return err;
		out[count++] = (struct extent){
			.region = run.region, .page = run.page, .npages = run.npages};
		npages -= run.npages;
	}
	*n = count;
	return 0;
}

int space_take(struct space *sp, uint64_t npages, struct page_run *run)
{
	int err;

	if (!find_free(sp, npages, run))
		return -ENOSPC;
	err = reserve_change(sp);
	if (!err)
		err = leave(sp, as_run(*run, PAGE_FREE, 0));
	if (err)
		return err;
	change_map(sp, sp->free[run->region], *run, false);
	change_in_file(sp, *run, true);
	return 0;
}

int space_check_granted(struct space *sp, uint64_t session, struct page_run run)
{
	struct run want = as_run(run, PAGE_GRANTED, session), r;
	uint64_t end = run_end(&want);

	if (run.region >= sp->nregions || !run.npages ||
		!range_within(run.page, run.npages, space_region_pages(sp, run.region)))
		return -EINVAL;
	for (uint64_t at = run.page; at < end; at = run_end(&r)) {
		int err = run_at(sp, run.region, (uint32_t)at, &r);

		if (err == -ENOENT || (!err && (!same_kind(&r, &want) || run_end(&r) <= at)))
			return -EINVAL;
		if (err)
			return err;
	}
	return 0;
}

int space_use(struct space *sp, uint64_t session, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = leave(sp, as_run(run, PAGE_GRANTED, session));
	if (!err)
		change_in_file(sp, run, true);
	return err;
}

int space_release(struct space *sp, struct page_run run)
{
	int err = make_dirty(sp, run);

	if (!err)
		change_in_file(sp, run, false);
	return err;
}

int space_return(struct space *sp, uint64_t session, struct page_run run)
{
	int err = leave(sp, as_run(run, PAGE_GRANTED, session));

	return err ? err : make_dirty(sp, run);
}

int space_scrubbed(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = leave(sp, as_run(run, PAGE_DIRTY, 0));
	if (!err)
		err = enter(sp, as_run(run, PAGE_FREE, 0));
	if (!err)
		change_map(sp, sp->free[run.region], run, true);
	return err;
}

bool space_next_dirty(struct space *sp, uint32_t npages, struct page_run *run)
{
	if (!sp->reuse || reserve_change(sp))
		return false;
	for (uint32_t i = 0; i < sp->nregions; i++) {
		uint32_t longest = runmap_longest(sp->dirty[i]);

		if (!longest)
			continue;
		run->region = (uint16_t)i;
		run->npages = (uint32_t)min_u64(longest, npages);
		run->page = runmap_find(sp->dirty[i], run->npages);
		change_map(sp, sp->dirty[i], *run, false);
		return true;
	}
	return false;
}

int space_still_dirty(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		change_map(sp, sp->dirty[run.region], run, true);
	return err;
}

bool space_has_dirty(const struct space *sp)
{
	for (uint32_t i = 0; sp->reuse && i < sp->nregions; i++) {
		if (runmap_longest(sp->dirty[i]))
			return true;
	}
	return false;
}

uint64_t space_in_file(const struct space *sp)
{
	return sp->npages - sp->now.free - sp->now.granted - sp->now.dirty;
}

/* ---- walks ----------------------------------------------------------------------------------- */

/* From the page key (region << 32 | page) *at on; advances it. -ENOENT: no more. */
static int next_run(struct space *sp, uint64_t *at, struct run *r)
{
	struct store_key key, start = run_key(sp, 0, 0);
	struct store_val val;
	int err;

	start.hi += *at;
	err = store_seek(sp->store, STORE_SPACE, start, &key, &val);
	if (!err && key.hi >> 48 != sp->export_id)
		err = -ENOENT;
	if (!err)
		err = decode_run(sp, key, &val, r);
	if (!err)
		*at = ((uint64_t)r->region << 32) + run_end(r);
	return err;
}

int space_end_session(struct space *sp, uint64_t session, uint64_t *position, bool *done)
{
	unsigned ngrants = 0;
	struct run r;
	int err = 0;

	*done = false;
	for (unsigned i = 0; i < SESSION_END_RUNS && ngrants < SESSION_END_GRANTS; i++) {
		err = next_run(sp, position, &r);
		if (err)
			break;
		if (r.state != PAGE_GRANTED || r.session != session)
			continue;
		err = space_return(
			sp, session, (struct page_run){(uint16_t)r.region, r.page, r.npages});
		if (err)
			return err;
		ngrants++;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT;
	return 0;
}

/* ---- regions that are to go ------------------------------------------------------------------ */

int space_tail(struct space *sp, uint32_t first, struct space_tail *out)
{
	uint64_t at = (uint64_t)first << 32;
	struct run r;
	int err;

	*out = (struct space_tail){.in_file = sp->npages - first * sp->region_pages};
	while (!(err = next_run(sp, &at, &r))) {
		out->in_file -= r.npages;
		if (r.state == PAGE_GRANTED)
			out->granted += r.npages;
		else if (r.state == PAGE_FREE)
			out->free += r.npages;
	}
	return err == -ENOENT ? 0 : err;
}

/* Free pages become dirty ones, zero as they are. */
static int soil(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = leave(sp, as_run(run, PAGE_FREE, 0));
	if (!err)
		err = enter(sp, as_run(run, PAGE_DIRTY, 0));
	if (err)
		return err;
	change_map(sp, sp->free[run.region], run, false);
	change_map(sp, sp->dirty[run.region], run, true);
	return 0;
}

/* A free run of the regions from first on. */
static bool find_free_from(const struct space *sp, uint32_t first, struct page_run *run)
{
	for (uint32_t i = first; i < sp->nregions; i++) {
		uint32_t longest = runmap_longest(sp->free[i]);

		if (!longest)
			continue;
		*run = (struct page_run){(uint16_t)i, runmap_find(sp->free[i], longest), longest};
		return true;
	}
	return false;
}

int space_close_tail(struct space *sp, uint32_t first, unsigned max, bool *done)
{
	struct page_run run;

	while (!(*done = !find_free_from(sp, first, &run)) && max--) {
		int err = soil(sp, run);

		if (err)
			return err;
	}
	return 0;
}

int space_claim(struct space *sp, uint64_t npages, struct page_run *run)
{
	return find_free(sp, npages, run) ? soil(sp, *run) : -ENOSPC;
}

int space_use_claimed(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = leave(sp, as_run(run, PAGE_DIRTY, 0));
	if (err)
		return err;
	change_map(sp, sp->dirty[run.region], run, false);
	change_in_file(sp, run, true);
	return 0;
}

int space_drop_tail(struct space *sp, uint32_t first)
{
	for (uint32_t i = first; i < sp->nregions; i++) {
		uint32_t npages = space_region_pages(sp, i);
		struct run r;
		int err = run_at(sp, i, 0, &r);

		if (err == -ENOENT || (!err && (r.state != PAGE_DIRTY || r.npages != npages)))
			return store_damaged(sp->store, STORE_SPACE, run_key(sp, i, 0));
		if (!err)
			err = del_run(sp, &r);
		if (err)
			return err;
	}
	return 0;
}
