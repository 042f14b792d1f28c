/* search.c - see search.h.
 *
 * A configuration is the players' cursors and the object behind them, in one piece of memory, so
 * that it is copied and hashed as one. Seen configurations are remembered by a hash of 64 bits.
 */
#include "tests/stress/search.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_BITS = 22 };

unsigned search_limit = SEARCH_MAX;
uint64_t search_configurations;

/* Configurations on the way to the present one; [0] is the first. */
struct stack {
	uint8_t *at;
	size_t bytes, n, room;
};

static struct {
	uint64_t *slots;
	uint32_t *used; /* the used slots, to clear them by */
	size_t n;
} met;

static void *need_memory(void *at)
{
	if (!at) {
		fprintf(stderr, "coherence: no memory\n");
		exit(2);
	}
	return at;
}

/* ---- what was met ---------------------------------------------------------------------------- */

static void met_clear(void)
{
	if (!met.slots) {
		met.slots = need_memory(calloc((size_t)1 << TABLE_BITS, sizeof(*met.slots)));
		met.used = need_memory(calloc(SEARCH_MAX + 1, sizeof(*met.used)));
	}
	while (met.n)
		met.slots[met.used[--met.n]] = 0;
}

static uint64_t hash_of(const uint8_t *at, size_t bytes)
{
	uint64_t hash = bytes, word;

	for (size_t i = 0; i < bytes; i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		hash = mix(hash * UINT64_C(0x9e3779b97f4a7c15) + word);
	}
	return hash ? hash : 1;
}

/* Whether it is new; it is then remembered. */
static bool met_add(const uint8_t *at, size_t bytes)
{
	uint64_t hash = hash_of(at, bytes);
	size_t slot = hash >> (64 - TABLE_BITS);

	for (; met.slots[slot]; slot = (slot + 1) & (((size_t)1 << TABLE_BITS) - 1))
		if (met.slots[slot] == hash)
			return false;
	met.slots[slot] = hash;
	met.used[met.n++] = (uint32_t)slot;
	return true;
}

/* ---- configurations -------------------------------------------------------------------------- */

static struct cursor *cursors_of(uint8_t *configuration)
{
	return (struct cursor *)(void *)configuration;
}

static void *object_of(const struct search *s, uint8_t *configuration)
{
	return configuration + s->nplayers * sizeof(struct cursor);
}

static const struct event *next_of(const struct search *s, const struct cursor *c, unsigned player)
{
	return c[player].at < s->nops[player] ? s->ops[player][c[player].at] : NULL;
}

/* No operation that began after this moment may come next. */
static int64_t horizon(const struct search *s, const struct cursor *c)
{
	int64_t first = INT64_MAX;

	for (unsigned i = 0; i < s->nplayers; i++) {
		const struct event *e = next_of(s, c, i);

		if (e && e->end < first)
			first = e->end;
	}
	return first;
}

static void advance(struct cursor *c, enum step step)
{
	if (step == STEP_DONE)
		*c = (struct cursor){.at = c->at + 1};
}

/* Takes all steps that need no choice. */
static void observe_all(const struct search *s, uint8_t *configuration)
{
	struct cursor *c = cursors_of(configuration);
	bool again = true;

	while (again) {
		int64_t end = horizon(s, c);

		again = false;
		for (unsigned i = 0; i < s->nplayers; i++) {
			const struct event *e = next_of(s, c, i);
			enum step step = STEP_NO;

			if (e && e->start <= end)
				step = s->observe(s, object_of(s, configuration), &c[i], e);
			advance(&c[i], step);
			again = again || step != STEP_NO;
		}
	}
}

static unsigned progress(const struct search *s, const struct cursor *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nplayers; i++)
		n += c[i].at;
	return n;
}

/* The operation whose end keeps others from continuing. */
static const struct event *stuck_at(const struct search *s, const struct cursor *c)
{
	const struct event *first = NULL;

	for (unsigned i = 0; i < s->nplayers; i++) {
		const struct event *e = next_of(s, c, i);

		if (e && (!first || e->end < first->end))
			first = e;
	}
	return first;
}

/* ---- the search ------------------------------------------------------------------------------ */

static uint8_t *stack_push(struct stack *st)
{
	if (st->n == st->room) {
		st->room = st->room ? 2 * st->room : 256;
		st->at = need_memory(realloc(st->at, st->room * st->bytes));
	}
	return st->at + st->n++ * st->bytes;
}

static uint8_t *stack_top(const struct stack *st)
{
	return st->at + (st->n - 1) * st->bytes;
}

typedef enum step take_step(
	const struct search *s, void *object, struct cursor *c, const struct event *e);

static void expand_by(const struct search *s, struct stack *st, uint8_t *from, unsigned who,
	const struct event *e, take_step *take)
{
	uint8_t *to = stack_push(st);
	enum step step;

	memcpy(to, from, st->bytes);
	step = take(s, object_of(s, to), &cursors_of(to)[who], e);
	advance(&cursors_of(to)[who], step);
	if (step != STEP_NO)
		observe_all(s, to);
	if (step == STEP_NO || !met_add(to, st->bytes))
		st->n--;
}

/* Pushes each configuration that one step leads to. The operation that ends first comes last, so
 * that it is tried first. */
static void expand(const struct search *s, struct stack *st, uint8_t *from)
{
	int64_t end = horizon(s, cursors_of(from));
	bool tried[PLAYERS_MAX] = {false};

	for (;;) {
		const struct event *e, *last = NULL;
		unsigned who = 0;

		for (unsigned i = 0; i < s->nplayers; i++) {
			e = next_of(s, cursors_of(from), i);
			if (tried[i] || !e || e->start > end || (last && e->end < last->end))
				continue;
			last = e;
			who = i;
		}
		if (!last)
			return;
		tried[who] = true;
		if (s->take_other)
			expand_by(s, st, from, who, last, s->take_other);
		expand_by(s, st, from, who, last, s->take);
	}
}

enum search_result search_run(struct search *s, void *object, const struct event **stuck)
{
	size_t bytes = s->nplayers * sizeof(struct cursor) + s->object_bytes;
	struct stack st = {.bytes = bytes};
	uint8_t *now = need_memory(calloc(2, bytes)), *best = now + bytes;
	unsigned total = 0;
	enum search_result result = SEARCH_IMPOSSIBLE;

	for (unsigned i = 0; i < s->nplayers; i++)
		total += s->nops[i];
	met_clear();
	memcpy(object_of(s, stack_push(&st)), object, s->object_bytes);
	memset(stack_top(&st), 0, s->nplayers * sizeof(struct cursor));
	observe_all(s, stack_top(&st));
	memcpy(best, stack_top(&st), bytes);
	while (st.n) {
		memcpy(now, stack_top(&st), bytes);
		st.n--;
		if (progress(s, cursors_of(now)) >= progress(s, cursors_of(best)))
			memcpy(best, now, bytes);
		if (progress(s, cursors_of(now)) == total) {
			result = SEARCH_EXPLAINED;
			break;
		}
		if (met.n + 2 * PLAYERS_MAX > search_limit) {
			result = SEARCH_UNDECIDED;
			break;
		}
		expand(s, &st, now);
	}
	search_configurations += met.n;
	memcpy(object, object_of(s, best), s->object_bytes);
	*stuck = stuck_at(s, cursors_of(best));
	free(st.at);
	free(now);
	return result;
}

void search_select(struct search *s, const struct history *h,
	bool (*part)(const struct event *e, const void *context), const void *context)
{
	static const struct event *room[PLAYERS_MAX][EVENTS_MAX];

	s->history = h;
	s->nplayers = h->nplayers;
	for (unsigned i = 0; i < h->nplayers; i++) {
		s->ops[i] = room[i];
		s->nops[i] = 0;
		for (unsigned j = 0; j < h->logs[i].nevents; j++)
			if (part(&h->logs[i].events[j], context))
				room[i][s->nops[i]++] = &h->logs[i].events[j];
	}
}
