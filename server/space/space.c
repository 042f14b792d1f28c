/* space.c - see space.h. */
#include "server/space/space.h"

#include <assert.h>
#include <errno.h>

#include "common/base/util.h"
#include "server/base/bits.h"
#include "server/space/runmap.h"
#include "server/space/space_run.h"

enum { SESSION_END_RUNS = 2048, SESSION_END_GRANTS = 128 };

struct space_change {
	struct runmap *map; /* NULL: in_file, and page counts over all regions; or: */
	uint64_t session;   /* not 0: a grantee's count */
	uint64_t page;
	uint32_t npages;
	bool added;
};

/* At most, for one change of a state. */
enum { CHANGES_MAX = 3 };

/* ---- grantees -------------------------------------------------------------------------------- */

static struct space_grantee *find_grantee(const struct space *sp, uint64_t session)
{
	for (size_t i = 0; i < sp->ngrantees; i++)
		if (sp->grantees[i].session == session)
			return &sp->grantees[i];
	return NULL;
}

struct space_grantee space_granted_to(const struct space *sp, uint64_t session)
{
	const struct space_grantee *g = find_grantee(sp, session);

	return g ? *g : (struct space_grantee){0};
}

/* For one more. */
static int reserve_grantee(struct space *sp)
{
	size_t room = sp->grantees_room ? sp->grantees_room * 2 : 16;
	struct space_grantee *grantees;

	if (sp->ngrantees < sp->grantees_room)
		return 0;
	grantees = realloc(sp->grantees, room * sizeof(*grantees));
	if (!grantees)
		return store_fail(sp->store, -ENOMEM);
	sp->grantees = grantees;
	sp->grantees_room = room;
	return 0;
}

/* A new one has room, which was reserved; so has one that comes back as a batch is aborted. */
static void count_granted(struct space *sp, const struct space_change *c, bool add)
{
	struct space_grantee *g = find_grantee(sp, c->session);
	uint64_t n = c->npages;

	if (!g) {
		g = &sp->grantees[sp->ngrantees++];
		*g = (struct space_grantee){.session = c->session};
	}
	g->npages += add ? n : -n;
	if (!c->added)
		g->left += add ? -n : n;
}

/* Its session has ended, and has nothing left. */
static void forget_grantee(struct space *sp, uint64_t session)
{
	struct space_grantee *g = find_grantee(sp, session);

	if (g && !g->npages)
		*g = sp->grantees[--sp->ngrantees];
}

/* ---- the maps in memory ---------------------------------------------------------------------- */

static int reserve_change(struct space *sp)
{
	size_t room = sp->changes_room ? sp->changes_room * 2 : 1024;
	struct space_change *changes;

	if (reserve_grantee(sp))
		return -ENOMEM;
	if (sp->nchanges + CHANGES_MAX <= sp->changes_room)
		return 0;
	changes = realloc(sp->changes, room * sizeof(*changes));
	if (!changes)
		return store_fail(sp->store, -ENOMEM);
	sp->changes = changes;
	sp->changes_room = room;
	return 0;
}

static void space_apply(struct space *sp, const struct space_change *c, bool add)
{
	if (c->session)
		count_granted(sp, c, add);
	else if (!c->map)
		bits_assign(sp->in_file, c->page, c->npages, add);
	else if (add)
		runmap_add(c->map, (uint32_t)c->page, c->npages);
	else
		runmap_remove(c->map, (uint32_t)c->page, c->npages);
}

/* The caller has reserved room for the note. */
static void space_make_change(struct space *sp, struct space_change c)
{
	assert(sp->nchanges < sp->changes_room);
	sp->changes[sp->nchanges++] = c;
	space_apply(sp, &c, c.added);
}

static void change_map(struct space *sp, struct runmap *map, struct page_run run, bool add)
{
	space_make_change(sp, (struct space_change){map, 0, run.page, run.npages, add});
}

static void change_in_file(struct space *sp, struct page_run run, bool add)
{
	uint64_t first = run.region * sp->region_pages + run.page;

	space_make_change(sp, (struct space_change){NULL, 0, first, run.npages, add});
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

		space_apply(sp, c, !c->added);
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

static int load_run(struct space *sp, const struct space_run *r)
{
	if (r->state == PAGE_GRANTED && reserve_grantee(sp))
		return -ENOMEM;
	if (r->state == PAGE_GRANTED)
		count_granted(sp,
			&(struct space_change){
				.session = r->session, .npages = r->npages, .added = true},
			true);
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
	struct store_key key, start = space_run_key(sp, 0, 0);
	struct space_run r, last = {0};
	struct store_val val;
	int err = store_seek(sp->store, STORE_SPACE, start, &key, &val);

	while (!err && key.hi >> 48 == sp->export_id) {
		err = space_run_decode(sp, key, &val, &r);
		if (!err && r.region == last.region && r.page < space_run_end(&last))
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
	struct space_run r = {region, 0, space_region_pages(sp, region), state, 0};
	int err = space_run_put(sp, &r);

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
	free(steal_ptr(&sp->grantees));
	sp->ngrantees = sp->grantees_room = 0;
	sp->free = sp->dirty = NULL;
	sp->changes = NULL;
}

/* ---- changes of state ------------------------------------------------------------------------ */

static struct space_run as_run(struct page_run run, enum page_state state, uint64_t session)
{
	return (struct space_run){run.region, run.page, run.npages, state, session};
}

/* The caller has reserved room for the note of granted pages. */
static void change_granted(struct space *sp, const struct space_run *r, bool add)
{
	if (r->state == PAGE_GRANTED)
		space_make_change(sp, (struct space_change){NULL, r->session, 0, r->npages, add});
}

static int space_leave(struct space *sp, struct space_run r)
{
	int err = space_run_cut(sp, &r);

	if (err)
		return err;
	*count_of(sp, r.state) -= r.npages;
	change_granted(sp, &r, false);
	return 0;
}

static int space_enter(struct space *sp, struct space_run r)
{
	int err = space_run_add(sp, &r);

	if (err)
		return err;
	*count_of(sp, r.state) += r.npages;
	change_granted(sp, &r, true);
	return 0;
}

static int make_dirty(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = space_enter(sp, as_run(run, PAGE_DIRTY, 0));
	if (!err)
		change_map(sp, sp->dirty[run.region], run, true);
	return err;
}

static int grant_run(struct space *sp, uint64_t session, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = space_leave(sp, as_run(run, PAGE_FREE, 0));
	if (!err)
		err = space_enter(sp, as_run(run, PAGE_GRANTED, session));
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
		err = space_leave(sp, as_run(*run, PAGE_FREE, 0));
	if (err)
		return err;
	change_map(sp, sp->free[run->region], *run, false);
	change_in_file(sp, *run, true);
	return 0;
}

int space_check_granted(struct space *sp, uint64_t session, struct page_run run)
{
	struct space_run want = as_run(run, PAGE_GRANTED, session), r;
	uint64_t end = space_run_end(&want);

	if (run.region >= sp->nregions || !run.npages ||
		!range_within(run.page, run.npages, space_region_pages(sp, run.region)))
		return -EINVAL;
	for (uint64_t at = run.page; at < end; at = space_run_end(&r)) {
		int err = space_run_at(sp, run.region, (uint32_t)at, &r);

		if (err == -ENOENT ||
			(!err && (!space_run_is_same_kind(&r, &want) || space_run_end(&r) <= at)))
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
		err = space_leave(sp, as_run(run, PAGE_GRANTED, session));
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
	int err = reserve_change(sp);

	if (!err)
		err = space_leave(sp, as_run(run, PAGE_GRANTED, session));
	return err ? err : make_dirty(sp, run);
}

int space_scrubbed(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = space_leave(sp, as_run(run, PAGE_DIRTY, 0));
	if (!err)
		err = space_enter(sp, as_run(run, PAGE_FREE, 0));
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

/* ---- sessions -----------------------------------------------------------------------------------
 */

int space_end_session(struct space *sp, uint64_t session, uint64_t *position, bool *done)
{
	unsigned ngrants = 0;
	struct space_run r;
	int err = 0;

	*done = false;
	for (unsigned i = 0; i < SESSION_END_RUNS && ngrants < SESSION_END_GRANTS; i++) {
		err = space_run_next(sp, position, &r);
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
	if (*done)
		forget_grantee(sp, session);
	return 0;
}

/* ---- regions that are to go ------------------------------------------------------------------ */

int space_tail(struct space *sp, uint32_t first, struct space_tail *out)
{
	uint64_t at = (uint64_t)first << 32;
	struct space_run r;
	int err;

	*out = (struct space_tail){.in_file = sp->npages - first * sp->region_pages};
	while (!(err = space_run_next(sp, &at, &r))) {
		out->in_file -= r.npages;
		if (r.state == PAGE_GRANTED)
			out->granted += r.npages;
		else if (r.state == PAGE_FREE)
			out->free += r.npages;
	}
	return err == -ENOENT ? 0 : err;
}

/* Makes free pages dirty; they stay zero. */
static int soil(struct space *sp, struct page_run run)
{
	int err = reserve_change(sp);

	if (!err)
		err = space_leave(sp, as_run(run, PAGE_FREE, 0));
	if (!err)
		err = space_enter(sp, as_run(run, PAGE_DIRTY, 0));
	if (err)
		return err;
	change_map(sp, sp->free[run.region], run, false);
	change_map(sp, sp->dirty[run.region], run, true);
	return 0;
}

/* Finds a free run in the regions from first on. */
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
		err = space_leave(sp, as_run(run, PAGE_DIRTY, 0));
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
		struct space_run r;
		int err = space_run_at(sp, i, 0, &r);

		if (err == -ENOENT || (!err && (r.state != PAGE_DIRTY || r.npages != npages)))
			return store_damaged(sp->store, STORE_SPACE, space_run_key(sp, i, 0));
		if (!err)
			err = space_run_del(sp, &r);
		if (err)
			return err;
	}
	return 0;
}
