/* runmap.c - see runmap.h. */
#include "server/space/runmap.h"

#include <assert.h>
#include <stdbool.h>

#include "common/base/util.h"

enum {
	WORD_BITS = 64,
	LEAF_WORDS = 8,
	LEAF_PAGES = WORD_BITS * LEAF_WORDS,
};

/* Runs within a stretch: the one it begins with, the one it ends with, the longest. */
struct runs {
	uint32_t head, tail, longest;
};

struct runmap {
	uint64_t *bits;
	uint32_t npages;
	uint32_t nleaves;  /* a power of two */
	struct runs *tree; /* [1] is the root, [nleaves + i] leaf i */
};

struct runmap *runmap_new(uint32_t npages)
{
	struct runmap *map = calloc(1, sizeof(*map));
	uint32_t nleaves = 1;

	if (!map)
		return NULL;
	while ((uint64_t)nleaves * LEAF_PAGES < npages)
		nleaves *= 2;
	map->npages = npages;
	map->nleaves = nleaves;
	map->bits = calloc((size_t)nleaves * LEAF_WORDS, sizeof(*map->bits));
	map->tree = calloc((size_t)nleaves * 2, sizeof(*map->tree));
	if (map->bits && map->tree)
		return map;
	runmap_delete(map);
	return NULL;
}

void runmap_delete(struct runmap *map)
{
	if (!map)
		return;
	free(map->bits);
	free(map->tree);
	free(map);
}

/* Length of the run of ones that begins at bit `from` of a leaf; 0: that bit is not set. */
static uint32_t run_at(const uint64_t *words, uint32_t from)
{
	uint32_t at = from;

	while (at < LEAF_PAGES) {
		uint64_t rest = ~(words[at / WORD_BITS] >> at % WORD_BITS);
		uint32_t left = WORD_BITS - at % WORD_BITS;
		uint32_t ones = rest ? (uint32_t)__builtin_ctzll(rest) : WORD_BITS;

		if (ones < left)
			return at + ones - from;
		at += left;
	}
	return LEAF_PAGES - from;
}

/* The first bit at or after `from` that is set; LEAF_PAGES: none. */
static uint32_t next_one(const uint64_t *words, uint32_t from)
{
	while (from < LEAF_PAGES) {
		uint64_t word = words[from / WORD_BITS] >> from % WORD_BITS;

		if (word)
			return from + (uint32_t)__builtin_ctzll(word);
		from += WORD_BITS - from % WORD_BITS;
	}
	return LEAF_PAGES;
}

static struct runs summarize_leaf(const uint64_t *words)
{
	struct runs r = {.head = run_at(words, 0)};
	uint32_t len;

	for (uint32_t at = next_one(words, 0); at < LEAF_PAGES; at = next_one(words, at + len)) {
		len = run_at(words, at);
		if (len > r.longest)
			r.longest = len;
		r.tail = at + len == LEAF_PAGES ? len : 0;
	}
	return r;
}

static struct runs join(const struct runs *left, const struct runs *right, uint32_t half)
{
	struct runs r = {left->head, right->tail, left->tail + right->head};

	if (left->head == half)
		r.head += right->head;
	if (right->tail == half)
		r.tail += left->tail;
	if (left->longest > r.longest)
		r.longest = left->longest;
	if (right->longest > r.longest)
		r.longest = right->longest;
	return r;
}

/* Updates the summaries of leaves first..last and of all above them. */
static void refresh(struct runmap *map, uint32_t first, uint32_t last)
{
	uint32_t half = LEAF_PAGES;

	for (uint32_t i = first; i <= last; i++)
		map->tree[map->nleaves + i] = summarize_leaf(map->bits + (size_t)i * LEAF_WORDS);
	first += map->nleaves;
	last += map->nleaves;
	while (first > 1) {
		first /= 2;
		last /= 2;
		for (uint32_t i = first; i <= last; i++)
			map->tree[i] = join(&map->tree[2 * i], &map->tree[2 * i + 1], half);
		half *= 2;
	}
}

static void runmap_change(struct runmap *map, uint32_t page, uint32_t npages, bool set)
{
	uint32_t end = page + npages;

	assert(npages && range_within(page, npages, map->npages));
	for (uint32_t at = page; at < end;) {
		uint32_t shift = at % WORD_BITS;
		uint32_t n = (uint32_t)min_u64(WORD_BITS - shift, end - at);
		uint64_t mask = (n == WORD_BITS ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << shift;
		uint64_t *word = &map->bits[at / WORD_BITS];

		assert((*word & mask) == (set ? 0 : mask));
		*word ^= mask;
		at += n;
	}
	refresh(map, page / LEAF_PAGES, (end - 1) / LEAF_PAGES);
}

void runmap_add(struct runmap *map, uint32_t page, uint32_t npages)
{
	runmap_change(map, page, npages, true);
}

void runmap_remove(struct runmap *map, uint32_t page, uint32_t npages)
{
	runmap_change(map, page, npages, false);
}

uint32_t runmap_longest(const struct runmap *map)
{
	return map->tree[1].longest;
}

static uint32_t find_in_leaf(const uint64_t *words, uint32_t npages)
{
	uint32_t at = next_one(words, 0);

	while (run_at(words, at) < npages) {
		at = next_one(words, at + run_at(words, at));
		assert(at < LEAF_PAGES);
	}
	return at;
}

uint32_t runmap_find(const struct runmap *map, uint32_t npages)
{
	uint32_t node = 1, start = 0, half = map->nleaves * LEAF_PAGES / 2;

	assert(npages && runmap_longest(map) >= npages);
	while (node < map->nleaves) {
		const struct runs *left = &map->tree[2 * node], *right = left + 1;

		if (left->longest >= npages) {
			node = 2 * node;
		} else if (left->tail + right->head >= npages) {
			return start + half - left->tail;
		} else {
			node = 2 * node + 1;
			start += half;
		}
		half /= 2;
	}
	return start + find_in_leaf(map->bits + (size_t)(node - map->nleaves) * LEAF_WORDS, npages);
}
