/* The extent map, by cases and against a model with one entry per page. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "daemon/file/extent_map.h"

static struct extent ext(uint64_t fpage, uint32_t npages, uint32_t page)
{
	return (struct extent){.fpage = fpage, .npages = npages, .page = page};
}

static int put(struct extent_map *map, uint64_t fpage, uint32_t npages, uint32_t page,
	enum extent_state state)
{
	struct extent e = ext(fpage, npages, page);

	return extent_map_insert(map, &e, state);
}

static void insert__adjoining__merged(void **state)
{
	struct extent_map map;
	struct extent_cursor at;
	struct mapped_extent e;

	extent_map_init(&map);
	assert_int_equal(put(&map, 10, 10, 110, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 30, 10, 130, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 20, 10, 120, EXTENT_COMMITTED), 0);
	assert_int_equal(extent_map_count(&map), 1);
	assert_true(extent_map_seek(&map, 25, &at, &e));
	assert_int_equal(e.fpage, 10);
	assert_int_equal(e.npages, 30);
	assert_int_equal(e.page, 110);
	assert_false(extent_map_next(&map, &at, &e));
	assert_false(extent_map_seek(&map, 40, &at, &e));
	extent_map_fini(&map);
}

static void insert__apart_in_memory__not_merged(void **state)
{
	struct extent_map map;

	extent_map_init(&map);
	assert_int_equal(put(&map, 0, 10, 100, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 10, 10, 111, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 20, 10, 121, EXTENT_DIRTY), 0);
	assert_int_equal(extent_map_count(&map), 3);
	extent_map_fini(&map);
}

static void insert__mapped__eexist(void **state)
{
	struct extent_map map;

	extent_map_init(&map);
	assert_int_equal(put(&map, 10, 10, 100, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 19, 1, 500, EXTENT_COMMITTED), -EEXIST);
	assert_int_equal(put(&map, 5, 6, 500, EXTENT_COMMITTED), -EEXIST);
	assert_int_equal(put(&map, 0, 100, 500, EXTENT_COMMITTED), -EEXIST);
	assert_int_equal(put(&map, 5, 5, 500, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 20, 1, 600, EXTENT_COMMITTED), 0);
	assert_int_equal(extent_map_count(&map), 3);
	extent_map_fini(&map);
}

static void has_all__without_holes(void **state)
{
	struct extent_map map;

	extent_map_init(&map);
	assert_false(extent_map_has_all(&map, 0, 1));
	assert_int_equal(put(&map, 10, 10, 100, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 20, 10, 500, EXTENT_DIRTY), 0);
	assert_int_equal(put(&map, 31, 9, 600, EXTENT_COMMITTED), 0);
	assert_true(extent_map_has_all(&map, 10, 30));
	assert_true(extent_map_has_all(&map, 15, 25));
	assert_false(extent_map_has_all(&map, 9, 11));
	assert_false(extent_map_has_all(&map, 10, 31));
	assert_false(extent_map_has_all(&map, 25, 40));
	assert_false(extent_map_has_all(&map, 35, 41));
	extent_map_fini(&map);
}

static void commit__collects_what_is_filled_only(void **state)
{
	struct extent_map map;
	struct extent out[8];
	bool more;

	extent_map_init(&map);
	assert_int_equal(put(&map, 0, 4, 100, EXTENT_FILLING), 0);
	assert_int_equal(put(&map, 4, 4, 104, EXTENT_FILLING), 0);
	assert_int_equal(put(&map, 8, 4, 108, EXTENT_FILLING), 0);
	assert_int_equal(extent_map_count(&map), 3);
	assert_int_equal(map.uncommitted, 12);
	assert_int_equal(extent_map_collect(&map, out, 8, &more), 0);

	extent_map_filled(&map, 0, 4);
	extent_map_filled(&map, 4, 8);
	assert_int_equal(extent_map_count(&map), 2);
	assert_int_equal(extent_map_collect(&map, out, 8, &more), 1);
	assert_false(more);
	assert_int_equal(out[0].fpage, 0);
	assert_int_equal(out[0].npages, 8);
	assert_int_equal(out[0].page, 100);

	/* Pages filled meanwhile are not part of the COMMIT in flight. */
	extent_map_filled(&map, 8, 12);
	assert_int_equal(extent_map_collected(&map, true), 8);
	assert_int_equal(map.uncommitted, 4);
	assert_int_equal(extent_map_collect(&map, out, 8, &more), 1);
	assert_int_equal(out[0].fpage, 8);
	assert_int_equal(extent_map_collected(&map, false), 4);
	assert_int_equal(map.uncommitted, 4);
	assert_int_equal(extent_map_collect(&map, out, 8, &more), 1);
	assert_int_equal(extent_map_collected(&map, true), 4);
	assert_int_equal(map.uncommitted, 0);
	assert_int_equal(extent_map_count(&map), 1);
	extent_map_fini(&map);
}

static void collect__more_than_fit__in_pieces(void **state)
{
	struct extent_map map;
	struct extent out[100];
	bool more;
	unsigned pieces = 0;

	extent_map_init(&map);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(put(&map, i * 2, 1, 7 + i * 2, EXTENT_DIRTY), 0);
	do {
		assert_int_equal(extent_map_collect(&map, out, 100, &more), 100);
		assert_int_equal(out[0].fpage, pieces * 200);
		assert_int_equal(extent_map_collected(&map, true), 100);
		pieces++;
	} while (more);
	assert_int_equal(pieces, 10);
	assert_int_equal(map.uncommitted, 0);
	extent_map_fini(&map);
}

static void cut__shortens_and_drops(void **state)
{
	struct extent_map map;
	struct extent_cursor at;
	struct mapped_extent e;

	extent_map_init(&map);
	map.known_end = 1000;
	for (uint32_t i = 0; i < 500; i++)
		assert_int_equal(
			put(&map, i * 2, 1, 7, i < 10 ? EXTENT_DIRTY : EXTENT_COMMITTED), 0);
	extent_map_cut(&map, 100);
	assert_int_equal(extent_map_count(&map), 50);
	assert_int_equal(map.known_end, UINT64_MAX);
	assert_false(extent_map_seek(&map, 100, &at, &e));
	extent_map_cut(&map, 3);
	assert_int_equal(map.uncommitted, 2);
	extent_map_cut(&map, 0);
	assert_int_equal(extent_map_count(&map), 0);
	assert_int_equal(map.uncommitted, 0);

	assert_int_equal(put(&map, 0, 100, 1000, EXTENT_COMMITTED), 0);
	extent_map_cut(&map, 40);
	assert_true(extent_map_seek(&map, 39, &at, &e));
	assert_int_equal(e.npages, 40);
	extent_map_fini(&map);
}

static void cut__beyond_what_is_known__knows_no_more(void **state)
{
	struct extent_map map;

	extent_map_init(&map);
	map.known_end = 10;
	extent_map_cut(&map, 20);
	assert_int_equal(map.known_end, 10);
	extent_map_fini(&map);
}

/* ---- pages others may have written ----------------------------------------------------------- */

static void learn__in_order_only(void **state)
{
	struct extent_map map;
	struct extent e = ext(10, 10, 100), before = ext(19, 1, 500);

	extent_map_init(&map);
	assert_int_equal(extent_map_learn(&map, &e), 0);
	assert_int_equal(map.known_end, 20);
	assert_int_equal(extent_map_learn(&map, &before), -EEXIST);
	assert_int_equal(map.known_end, 20);
	extent_map_learned_all(&map);
	assert_int_equal(map.known_end, UINT64_MAX);
	extent_map_fini(&map);
}

static void doubtful__what_was_there_and_not_what_is_ours(void **state)
{
	struct extent_map map;
	struct extent a = ext(10, 10, 100), b = ext(30, 10, 300);

	extent_map_init(&map);
	assert_int_equal(extent_map_learn(&map, &a), 0);
	assert_int_equal(extent_map_learn(&map, &b), 0);
	extent_map_learned_all(&map);
	assert_int_equal(put(&map, 50, 10, 500, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 22, 1, 200, EXTENT_FILLING), 0);
	assert_false(extent_map_is_doubtful(&map, 0, 10));
	assert_true(extent_map_is_doubtful(&map, 0, 11));
	assert_true(extent_map_is_doubtful(&map, 19, 30));
	assert_false(extent_map_is_doubtful(&map, 20, 30));
	assert_true(extent_map_is_doubtful(&map, 20, 100));
	assert_false(extent_map_is_doubtful(&map, 40, 100));
	/* Learned again, after the server has added pages, which are zero. */
	extent_map_filled(&map, 0, 100);
	extent_map_forget(&map, 40);
	a = ext(50, 30, 500);
	assert_int_equal(extent_map_learn(&map, &a), 0);
	assert_false(extent_map_is_doubtful(&map, 40, 100));
	extent_map_doubt(&map, 60);
	assert_true(extent_map_is_doubtful(&map, 40, 100));
	assert_false(extent_map_is_doubtful(&map, 60, 100));
	extent_map_cut(&map, 35);
	assert_true(extent_map_is_doubtful(&map, 34, 100));
	assert_false(extent_map_is_doubtful(&map, 35, 100));
	assert_int_equal(put(&map, 40, 1, 800, EXTENT_COMMITTED), 0);
	assert_false(extent_map_is_doubtful(&map, 35, 100));
	extent_map_fini(&map);
}

/* The part that was not known when the map was forgotten is learned as the rest is. */
static void doubtful__learned_in_parts(void **state)
{
	struct extent_map map;
	struct extent a = ext(10, 10, 100), b = ext(30, 10, 300);

	extent_map_init(&map);
	assert_int_equal(extent_map_learn(&map, &a), 0);
	extent_map_forget(&map, 15);
	a = ext(15, 5, 105);
	assert_int_equal(extent_map_learn(&map, &a), 0);
	assert_int_equal(extent_map_learn(&map, &b), 0);
	extent_map_learned_all(&map);
	assert_true(extent_map_is_doubtful(&map, 39, 100));
	assert_false(extent_map_is_doubtful(&map, 40, 100));
	extent_map_fini(&map);
}

/* ---- against a model ------------------------------------------------------------------------- */

enum { PAGES = 3000 };

struct model {
	uint32_t page[PAGES]; /* 0: hole */
	uint8_t state[PAGES];
};

static void check_model(const struct extent_map *map, const struct model *m)
{
	struct extent_cursor at;
	struct mapped_extent e;
	uint64_t uncommitted = 0, seen = 0, mapped = 0;
	bool found = extent_map_seek(map, 0, &at, &e);

	for (; found; found = extent_map_next(map, &at, &e)) {
		assert_true(e.fpage >= seen);
		seen = e.fpage + e.npages;
		for (uint32_t i = 0; i < e.npages; i++) {
			assert_int_equal(m->page[e.fpage + i], e.page + i);
			assert_int_equal(m->state[e.fpage + i], e.state);
			mapped++;
		}
	}
	for (uint32_t i = 0; i < PAGES; i++) {
		mapped -= m->page[i] != 0;
		uncommitted += m->page[i] && m->state[i] != EXTENT_COMMITTED;
	}
	assert_int_equal(mapped, 0);
	assert_int_equal(uncommitted, map->uncommitted);
}

static void model_insert(struct extent_map *map, struct model *m, unsigned *seed)
{
	uint32_t fpage = (uint32_t)rand_r(seed) % (PAGES - 8), n = 1 + (uint32_t)rand_r(seed) % 8;
	/* Often where the page before would continue, so that extents merge. */
	uint32_t page = rand_r(seed) % 2 ? 10000 + fpage : 1 + (uint32_t)rand_r(seed) % 9000;
	enum extent_state state = rand_r(seed) % 2 ? EXTENT_FILLING : EXTENT_COMMITTED;
	bool free_range = true;

	for (uint32_t i = fpage; i < fpage + n; i++)
		free_range = free_range && !m->page[i];
	assert_int_equal(put(map, fpage, n, page, state), free_range ? 0 : -EEXIST);
	for (uint32_t i = 0; free_range && i < n; i++) {
		m->page[fpage + i] = page + i;
		m->state[fpage + i] = (uint8_t)state;
	}
}

static void model_switch(struct model *m, uint8_t from, uint8_t to)
{
	for (uint32_t i = 0; i < PAGES; i++)
		if (m->page[i] && m->state[i] == from)
			m->state[i] = to;
}

static void model_step(struct extent_map *map, struct model *m, unsigned *seed)
{
	static struct extent out[PAGES];
	bool more, committed = rand_r(seed) % 3;

	switch (rand_r(seed) % 40) {
	case 0:
		extent_map_filled(map, 0, UINT64_MAX);
		model_switch(m, EXTENT_FILLING, EXTENT_DIRTY);
		break;
	case 1:
		extent_map_collect(map, out, PAGES, &more);
		model_switch(m, EXTENT_DIRTY, EXTENT_COMMITTING);
		break;
	case 2:
		extent_map_collected(map, committed);
		model_switch(m, EXTENT_COMMITTING, committed ? EXTENT_COMMITTED : EXTENT_DIRTY);
		break;
	case 3: {
		uint32_t cut = PAGES / 2 + (uint32_t)rand_r(seed) % PAGES;

		extent_map_cut(map, cut);
		for (; cut < PAGES; cut++)
			m->page[cut] = 0;
		break;
	}
	default:
		model_insert(map, m, seed);
	}
}

static void forget__what_is_before_stays_known(void **state)
{
	struct extent_map map;
	struct extent_cursor at;
	struct mapped_extent e;

	extent_map_init(&map);
	map.known_end = UINT64_MAX;
	assert_int_equal(put(&map, 0, 10, 100, EXTENT_COMMITTED), 0);
	assert_int_equal(put(&map, 20, 10, 300, EXTENT_COMMITTED), 0);
	extent_map_forget(&map, 5);
	assert_int_equal(map.known_end, 5);
	assert_int_equal(extent_map_count(&map), 1);
	assert_true(extent_map_seek(&map, 0, &at, &e));
	assert_int_equal(e.npages, 5);
	/* Beyond the known part there is nothing to forget. */
	extent_map_forget(&map, 8);
	assert_int_equal(map.known_end, 5);
	extent_map_forget(&map, 0);
	assert_int_equal(map.known_end, 0);
	assert_int_equal(extent_map_count(&map), 0);
	extent_map_fini(&map);
}

static void map__random__as_the_model(void **state)
{
	static struct model model;
	struct extent_map map;
	unsigned seed = 99;

	extent_map_init(&map);
	for (int step = 0; step < 8000; step++) {
		model_step(&map, &model, &seed);
		if (step % 10 == 0)
			check_model(&map, &model);
	}
	assert_true(extent_map_count(&map) > 200);
	extent_map_fini(&map);
}

static void map__100000_extents__all_found(void **state)
{
	enum { N = 100000 };
	struct extent_map map;
	struct extent_cursor at;
	struct mapped_extent e;

	extent_map_init(&map);
	/* A stride that visits every place once, far from in order. */
	for (uint64_t i = 0; i < N; i++) {
		uint64_t k = i * 61803 % N;

		assert_int_equal(put(&map, k * 2, 1, (uint32_t)k, EXTENT_COMMITTED), 0);
	}
	assert_int_equal(extent_map_count(&map), N);
	for (uint64_t k = 0; k < N; k++) {
		assert_true(extent_map_seek(&map, k * 2, &at, &e));
		assert_int_equal(e.fpage, k * 2);
		assert_int_equal(e.page, k);
	}
	extent_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(insert__adjoining__merged),
		cmocka_unit_test(insert__apart_in_memory__not_merged),
		cmocka_unit_test(insert__mapped__eexist),
		cmocka_unit_test(has_all__without_holes),
		cmocka_unit_test(commit__collects_what_is_filled_only),
		cmocka_unit_test(collect__more_than_fit__in_pieces),
		cmocka_unit_test(cut__shortens_and_drops),
		cmocka_unit_test(cut__beyond_what_is_known__knows_no_more),
		cmocka_unit_test(forget__what_is_before_stays_known),
		cmocka_unit_test(learn__in_order_only),
		cmocka_unit_test(doubtful__what_was_there_and_not_what_is_ours),
		cmocka_unit_test(doubtful__learned_in_parts),
		cmocka_unit_test(map__random__as_the_model),
		cmocka_unit_test(map__100000_extents__all_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
