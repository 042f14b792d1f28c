/* check_pages.c - every page is in exactly one state, and the free ones are zero. */
#include "server/check/check_internal.h"
#include "server/space/space_run.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/util.h"

enum { IN_FILE = PAGE_DIRTY + 1 };

static const char *const state_names[] = {
	[PAGE_FREE] = "free",
	[PAGE_GRANTED] = "granted",
	[PAGE_DIRTY] = "dirty",
	[IN_FILE] = "in a file",
};

static uint8_t *check_pages_state_of(struct check *c, unsigned region, uint64_t page)
{
	return &c->states[region * c->v->space.region_pages + page];
}

/* Reports one line for neighbours that had the same state before. */
static void check_pages_mark(struct check *c, struct page_run run, uint8_t state, const char *as)
{
	const struct space *sp = &c->v->space;
	uint32_t n;

	if (run.region >= sp->nregions || !run.npages ||
		!range_within(run.page, run.npages, space_region_pages(sp, run.region))) {
		check_problem(c,
			"pages %" PRIu32 "+%" PRIu32 " of region %u are %s and do not exist",
			run.page, run.npages, run.region, as);
		return;
	}
	for (uint32_t i = 0; i < run.npages; i += n) {
		uint8_t *at = check_pages_state_of(c, run.region, run.page + i), before = *at;

		for (n = 0; i + n < run.npages && at[n] == before; n++)
			at[n] = state;
		if (before)
			check_problem(c, "pages %" PRIu32 "+%" PRIu32 " of region %u are %s and %s",
				run.page + i, n, run.region, state_names[before], as);
	}
}

void check_mark_file(struct check *c, struct page_run run, uint64_t ino)
{
	char as[64];

	snprintf(as, sizeof(as), "in inode %" PRIu64, ino);
	check_pages_mark(c, run, IN_FILE, as);
}

/* ---- stored runs ----------------------------------------------------------------------------- */

static int check_run(struct check *c, struct store_key key, const struct store_val *val)
{
	enum page_state state;
	struct page_run run;
	uint64_t session;
	int err = space_run_parse(&c->v->space, key, val, &run, &state, &session);

	if (err)
		return err;
	check_pages_mark(c, run, (uint8_t)state, state_names[state]);
	if (state == PAGE_GRANTED && !check_list_has(&c->sessions, session))
		check_problem(c,
			"pages %" PRIu32 "+%" PRIu32 " of region %u are granted to session %" PRIu64
			", which is not there",
			run.page, run.npages, run.region, session);
	return 0;
}

/* Compares the stored runs with the counts in the server's memory. */
static void check_counts(struct check *c)
{
	const struct space_counts *now = &c->v->space.now;
	uint64_t n[IN_FILE + 1] = {0};

	for (uint64_t i = 0; i < c->v->space.npages; i++)
		n[c->states[i]]++;
	if (now->free != n[PAGE_FREE] || now->granted != n[PAGE_GRANTED] ||
		now->dirty != n[PAGE_DIRTY])
		check_problem(c,
			"counted are %" PRIu64 " free pages, %" PRIu64 " granted, %" PRIu64
			" dirty, and stored %" PRIu64 ", %" PRIu64 ", %" PRIu64,
			now->free, now->granted, now->dirty, n[PAGE_FREE], n[PAGE_GRANTED],
			n[PAGE_DIRTY]);
}

int check_runs(struct check *c)
{
	int err;

	check_progress(c, "pages");
	err = check_each_of_volume(c, STORE_SPACE, check_run);
	if (!err && !c->m->inspected)
		check_counts(c);
	return err;
}

/* ---- after all pages were marked ------------------------------------------------------------- */

static bool is_zero(const uint8_t *page)
{
	return page[0] == 0 && memcmp(page, page + 1, PAGE_BYTES - 1) == 0;
}

static void check_zeros(struct check *c, unsigned region)
{
	const uint8_t *base = c->v->bases[region];
	uint64_t n = 0, first = 0;

	for (uint64_t page = 0; base && page < space_region_pages(&c->v->space, region); page++) {
		if (*check_pages_state_of(c, region, page) != PAGE_FREE ||
			is_zero(base + page * PAGE_BYTES))
			continue;
		if (!n++)
			first = page;
	}
	if (n)
		check_problem(c,
			"%" PRIu64 " free pages of region %u are not zero; the first is page "
			"%" PRIu64,
			n, region, first);
}

static void check_lost(struct check *c, unsigned region)
{
	uint64_t n = 0, first = 0;

	for (uint64_t page = 0; page < space_region_pages(&c->v->space, region); page++)
		if (!*check_pages_state_of(c, region, page) && !n++)
			first = page;
	if (n)
		check_problem(c,
			"%" PRIu64
			" pages of region %u are in no state; the first is page %" PRIu64,
			n, region, first);
}

void check_pages(struct check *c)
{
	for (unsigned i = 0; i < c->v->space.nregions; i++)
		check_lost(c, i);
	check_progress(c, "free pages are zero");
	for (unsigned i = 0; i < c->v->space.nregions; i++)
		check_zeros(c, i);
}
