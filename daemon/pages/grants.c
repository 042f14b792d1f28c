#include "daemon/pages/grants.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"

void grants_init(struct grants *g)
{
	*g = (struct grants){0};
	pthread_mutex_init(&g->lock, NULL);
}

void grants_fini(struct grants *g)
{
	pthread_mutex_destroy(&g->lock);
	free(g->runs);
}

/* ---- the pool -------------------------------------------------------------------------------- */

static bool same_region(const struct extent *a, const struct extent *b)
{
	return a->target == b->target && a->region == b->region;
}

static bool before(const struct extent *a, const struct extent *b)
{
	if (a->target != b->target)
		return a->target < b->target;
	if (a->region != b->region)
		return a->region < b->region;
	return a->page < b->page;
}

/* b begins where a ends. */
static bool grants_adjoin(const struct extent *a, const struct extent *b)
{
	return same_region(a, b) && (uint64_t)a->page + a->npages == b->page;
}

/* The first run that does not lie before the place. */
static size_t grants_find(const struct grants *g, const struct extent *place)
{
	size_t low = 0, high = g->nruns;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (before(&g->runs[mid], place))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void remove_run(struct grants *g, size_t index)
{
	g->nruns--;
	memmove(&g->runs[index], &g->runs[index + 1], (g->nruns - index) * sizeof(g->runs[0]));
}

static bool insert_run(struct grants *g, size_t index, const struct extent *run)
{
	if (g->nruns == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 16;
		struct extent *grown = realloc(g->runs, cap * sizeof(*grown));

		if (!grown)
			return false;
		g->runs = grown;
		g->cap = cap;
	}
	memmove(&g->runs[index + 1], &g->runs[index], (g->nruns - index) * sizeof(g->runs[0]));
	g->runs[index] = *run;
	g->runs[index].fpage = 0;
	g->nruns++;
	return true;
}

static bool add_locked(struct grants *g, const struct extent *run)
{
	size_t i = grants_find(g, run);
	struct extent *behind =
		i < g->nruns && grants_adjoin(run, &g->runs[i]) ? &g->runs[i] : NULL;
	struct extent *ahead = i && grants_adjoin(&g->runs[i - 1], run) ? &g->runs[i - 1] : NULL;

	if (ahead && behind) {
		ahead->npages += run->npages + behind->npages;
		remove_run(g, i);
		return true;
	}
	if (ahead) {
		ahead->npages += run->npages;
		return true;
	}
	if (behind) {
		behind->page = run->page;
		behind->npages += run->npages;
		return true;
	}
	return insert_run(g, i, run);
}

void grants_add(struct grants *g, const struct extent *run)
{
	if (!run->npages)
		return;
	pthread_mutex_lock(&g->lock);
	if (add_locked(g, run))
		g->npages += run->npages;
	pthread_mutex_unlock(&g->lock);
}

/* The smallest run of at least want pages, else the longest. */
static size_t best_fit(const struct grants *g, uint32_t want)
{
	size_t best = 0;

	for (size_t i = 1; i < g->nruns; i++) {
		uint32_t n = g->runs[i].npages, have = g->runs[best].npages;

		if (have < want ? n > have : n >= want && n < have)
			best = i;
	}
	return best;
}

static size_t grants_choose(const struct grants *g, uint32_t want, const struct extent *goal)
{
	if (goal) {
		size_t i = grants_find(g, goal);

		if (i < g->nruns && same_region(&g->runs[i], goal) && g->runs[i].page == goal->page)
			return i;
	}
	return best_fit(g, want);
}

static bool grants_take_locked(
	struct grants *g, uint32_t want, const struct extent *goal, struct extent *out)
{
	struct extent *run;
	size_t i;

	if (!g->nruns || !want)
		return false;
	i = grants_choose(g, want, goal);
	run = &g->runs[i];
	*out = *run;
	if (out->npages > want)
		out->npages = want;
	run->page += out->npages;
	run->npages -= out->npages;
	if (!run->npages)
		remove_run(g, i);
	g->npages -= out->npages;
	return true;
}

bool grants_take(struct grants *g, uint32_t want, const struct extent *goal, struct extent *out)
{
	bool taken;

	pthread_mutex_lock(&g->lock);
	taken = grants_take_locked(g, want, goal, out);
	pthread_mutex_unlock(&g->lock);
	return taken;
}

void grants_forget(struct grants *g)
{
	pthread_mutex_lock(&g->lock);
	g->nruns = 0;
	g->npages = g->windowed = 0;
	pthread_mutex_unlock(&g->lock);
}

uint64_t grants_count(struct grants *g)
{
	uint64_t npages;

	pthread_mutex_lock(&g->lock);
	npages = g->npages;
	pthread_mutex_unlock(&g->lock);
	return npages;
}

uint64_t grants_count_unused(struct grants *g, uint64_t taken)
{
	uint64_t npages;

	pthread_mutex_lock(&g->lock);
	npages = g->npages + g->windowed;
	pthread_mutex_unlock(&g->lock);
	return npages - min_u64(npages, taken);
}

/* ---- windows --------------------------------------------------------------------------------- */

static bool window_refill(struct window *w, struct grants *g, uint32_t want)
{
	uint32_t n = (uint32_t)max_u64(want, max_u64(w->appetite, WINDOW_PAGES_MIN));
	bool taken;

	pthread_mutex_lock(&g->lock);
	taken = grants_take_locked(g, n, w->begun ? &w->rest : NULL, &w->rest);
	if (taken)
		g->windowed += w->rest.npages;
	pthread_mutex_unlock(&g->lock);
	if (!taken)
		return false;
	w->begun = true;
	w->appetite = (uint32_t)min_u64((uint64_t)n * 2, WINDOW_PAGES_MAX);
	return true;
}

bool window_take(struct window *w, struct grants *g, uint32_t want, struct extent *out)
{
	if (!w->rest.npages && !window_refill(w, g, want))
		return false;
	*out = w->rest;
	if (out->npages > want)
		out->npages = want;
	w->rest.page += out->npages;
	w->rest.npages -= out->npages;
	return true;
}

void window_return(struct window *w, struct grants *g)
{
	if (w->rest.npages) {
		pthread_mutex_lock(&g->lock);
		if (add_locked(g, &w->rest))
			g->npages += w->rest.npages;
		g->windowed -= w->rest.npages;
		pthread_mutex_unlock(&g->lock);
	}
	*w = (struct window){0};
}
