/* test_runmap.c - sets of pages against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "server/space/runmap.h"

static void new__is_empty(void **state)
{
	struct runmap *map = runmap_new(1000);

	assert_non_null(map);
	assert_int_equal(runmap_longest(map), 0);
	runmap_delete(map);
}

static void find__takes_the_first_that_is_long_enough(void **state)
{
	struct runmap *map = runmap_new(3000);

	runmap_add(map, 10, 5);
	runmap_add(map, 100, 50);
	runmap_add(map, 500, 1500); /* over several leaves */
	assert_int_equal(runmap_longest(map), 1500);
	assert_int_equal(runmap_find(map, 1), 10);
	assert_int_equal(runmap_find(map, 5), 10);
	assert_int_equal(runmap_find(map, 6), 100);
	assert_int_equal(runmap_find(map, 51), 500);
	assert_int_equal(runmap_find(map, 1500), 500);
	runmap_remove(map, 511, 1);
	assert_int_equal(runmap_longest(map), 1488);
	assert_int_equal(runmap_find(map, 51), 512);
	runmap_delete(map);
}

static void whole_map__is_one_run(void **state)
{
	static const uint32_t sizes[] = {1, 63, 64, 65, 511, 512, 513, 4096, 5000};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct runmap *map = runmap_new(sizes[i]);

		runmap_add(map, 0, sizes[i]);
		assert_int_equal(runmap_longest(map), sizes[i]);
		assert_int_equal(runmap_find(map, sizes[i]), 0);
		runmap_remove(map, 0, sizes[i]);
		assert_int_equal(runmap_longest(map), 0);
		runmap_delete(map);
	}
}

enum { PAGES = 2500 };

static uint32_t plain_longest(const uint8_t *set, uint32_t *at)
{
	uint32_t best = 0;

	for (uint32_t i = 0, run = 0; i < PAGES; i++) {
		run = set[i] ? run + 1 : 0;
		if (run > best) {
			best = run;
			*at = i + 1 - run;
		}
	}
	return best;
}

static void random_changes__agree_with_an_array(void **state)
{
	struct runmap *map = runmap_new(PAGES);
	uint8_t set[PAGES] = {0};
	unsigned seed = 5;

	for (unsigned step = 0; step < 4000; step++) {
		uint32_t page = (uint32_t)rand_r(&seed) % PAGES, n = 1, at = 0, best;
		uint32_t most = 1 + (uint32_t)rand_r(&seed) % 300;

		while (n < most && page + n < PAGES && set[page + n] == set[page])
			n++;
		if (set[page])
			runmap_remove(map, page, n);
		else
			runmap_add(map, page, n);
		memset(set + page, !set[page], n);
		best = plain_longest(set, &at);
		assert_int_equal(runmap_longest(map), best);
		if (best)
			assert_int_equal(runmap_find(map, best), at);
	}
	runmap_delete(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new__is_empty),
		cmocka_unit_test(find__takes_the_first_that_is_long_enough),
		cmocka_unit_test(whole_map__is_one_run),
		cmocka_unit_test(random_changes__agree_with_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
