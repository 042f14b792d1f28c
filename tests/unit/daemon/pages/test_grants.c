/* The pool of granted pages, and the windows that inodes take from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "daemon/pages/grants.h"

static struct extent run_of(uint16_t region, uint32_t page, uint32_t npages)
{
	return (struct extent){.region = region, .page = page, .npages = npages};
}

static void add(struct grants *g, uint16_t region, uint32_t page, uint32_t npages)
{
	struct extent run = run_of(region, page, npages);

	grants_add(g, &run);
}

static void add__neighbours__one_run(void **state)
{
	struct grants g;
	struct extent out;

	grants_init(&g);
	add(&g, 0, 10, 10);
	add(&g, 0, 30, 10);
	add(&g, 0, 20, 10);
	add(&g, 0, 5, 5);
	add(&g, 1, 40, 10);
	assert_int_equal(g.nruns, 2);
	assert_int_equal(grants_count(&g), 45);
	assert_true(grants_take(&g, 100, NULL, &out));
	assert_int_equal(out.page, 5);
	assert_int_equal(out.npages, 35);
	grants_fini(&g);
}

static void take__smallest_that_has_enough(void **state)
{
	struct grants g;
	struct extent out;

	grants_init(&g);
	add(&g, 0, 0, 100);
	add(&g, 0, 200, 20);
	add(&g, 0, 300, 5);
	assert_true(grants_take(&g, 16, NULL, &out));
	assert_int_equal(out.page, 200);
	assert_int_equal(out.npages, 16);
	assert_int_equal(grants_count(&g), 109);
	grants_fini(&g);
}

static void take__at_the_goal_first(void **state)
{
	struct grants g;
	struct extent out, goal = run_of(0, 16, 0);

	grants_init(&g);
	add(&g, 0, 16, 1000);
	add(&g, 0, 3000, 32);
	assert_true(grants_take(&g, 32, &goal, &out));
	assert_int_equal(out.page, 16);
	assert_int_equal(out.npages, 32);
	grants_fini(&g);
}

static void take__empty__false(void **state)
{
	struct grants g;
	struct extent out;

	grants_init(&g);
	assert_false(grants_take(&g, 1, NULL, &out));
	add(&g, 0, 0, 1);
	assert_true(grants_take(&g, 5, NULL, &out));
	assert_int_equal(out.npages, 1);
	assert_false(grants_take(&g, 1, NULL, &out));
	grants_fini(&g);
}

static void window__sequential_writes__contiguous_and_growing(void **state)
{
	struct grants g;
	struct window w = {0};
	struct extent out;
	uint32_t next = 0;

	grants_init(&g);
	add(&g, 0, 0, 100000);
	add(&g, 0, 200000, 20);
	for (int i = 0; i < 20000; i++) {
		assert_true(window_take(&w, &g, 1, &out));
		if (i == 0)
			next = out.page;
		/* The first window came from the smaller run; from then on it continues.
		 */
		if (out.page != next)
			assert_int_equal(i, 20);
		next = out.page + 1;
	}
	assert_int_equal(w.appetite, WINDOW_PAGES_MAX);
	window_return(&w, &g);
	assert_int_equal(grants_count(&g), 100020 - 20000);
	grants_fini(&g);
}

static void window__small_file__gives_back_the_rest(void **state)
{
	struct grants g;
	struct window w = {0};
	struct extent out;

	grants_init(&g);
	add(&g, 0, 0, 256);
	assert_true(window_take(&w, &g, 3, &out));
	assert_int_equal(out.npages, 3);
	assert_int_equal(grants_count(&g), 256 - WINDOW_PAGES_MIN);
	window_return(&w, &g);
	assert_int_equal(grants_count(&g), 253);
	assert_int_equal(g.nruns, 1);
	grants_fini(&g);
}

static void window__fragments__takes_what_there_is(void **state)
{
	struct grants g;
	struct window w = {0};
	struct extent out;
	uint32_t got = 0;

	grants_init(&g);
	for (uint32_t i = 0; i < 10; i++)
		add(&g, 0, i * 10, 3);
	while (window_take(&w, &g, 256, &out))
		got += out.npages;
	assert_int_equal(got, 30);
	grants_fini(&g);
}

static void count_unused__pool_and_windows(void **state)
{
	struct grants g;
	struct window w = {0}, v = {0};
	struct extent out;

	grants_init(&g);
	add(&g, 0, 0, 100);
	assert_int_equal(grants_count_unused(&g, 0), 100);
	assert_true(window_take(&w, &g, 3, &out));
	assert_true(window_take(&v, &g, 1, &out));
	assert_int_equal(grants_count(&g), 100 - 2 * WINDOW_PAGES_MIN);
	assert_int_equal(grants_count_unused(&g, 4), 96);
	window_return(&w, &g);
	assert_int_equal(grants_count_unused(&g, 4), 96);
	window_return(&v, &g);
	assert_int_equal(grants_count(&g), 96);
	assert_int_equal(grants_count_unused(&g, 4), 96);
	grants_fini(&g);
}

/* Against a map of the pages that are in the pool. */
static void pool__random__no_page_twice(void **state)
{
	enum { PAGES = 512 };
	bool pooled[PAGES] = {false};
	struct grants g;
	struct extent out;
	unsigned seed = 4711;
	uint64_t count = 0;

	grants_init(&g);
	for (int round = 0; round < 20000; round++) {
		uint32_t page = (uint32_t)rand_r(&seed) % PAGES;

		if (rand_r(&seed) % 2 && !pooled[page]) {
			add(&g, 0, page, 1);
			pooled[page] = true;
			count++;
		} else if (grants_take(&g, 1 + page % 8, NULL, &out)) {
			for (uint32_t i = out.page; i < out.page + out.npages; i++) {
				assert_true(pooled[i]);
				pooled[i] = false;
			}
			count -= out.npages;
		}
		assert_int_equal(grants_count(&g), count);
	}
	grants_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add__neighbours__one_run),
		cmocka_unit_test(take__smallest_that_has_enough),
		cmocka_unit_test(take__at_the_goal_first),
		cmocka_unit_test(take__empty__false),
		cmocka_unit_test(window__sequential_writes__contiguous_and_growing),
		cmocka_unit_test(window__small_file__gives_back_the_rest),
		cmocka_unit_test(window__fragments__takes_what_there_is),
		cmocka_unit_test(count_unused__pool_and_windows),
		cmocka_unit_test(pool__random__no_page_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
