/* test_overlap.c - pages that occur twice in a list of extents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "common/base/util.h"
#include "server/namespace/overlap.h"

enum { N = OVERLAP_EXTENTS_MAX };

static void shuffle(struct extent *e, unsigned n)
{
	unsigned seed = 3;

	for (unsigned i = n; i-- > 1;) {
		unsigned k = (unsigned)rand_r(&seed) % (i + 1);
		struct extent was = e[i];

		e[i] = e[k];
		e[k] = was;
	}
}

/* Neighbours that touch, in memory backwards. */
static void fill(struct extent *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		e[i] = (struct extent){.fpage = 10 * i, .npages = 10, .page = 10 * (n - i)};
}

static void list__without_a_page_twice(void **state)
{
	struct extent e[N], copy[N];

	fill(e, N);
	assert_false(overlap_any(e, 0, true));
	assert_false(overlap_any(e, 1, true));
	assert_false(overlap_any(e, N, true));
	shuffle(e, N);
	memcpy(copy, e, sizeof(e));
	assert_false(overlap_any(e, N, true));
	assert_memory_equal(e, copy, sizeof(e));
}

static void list__with_a_page_twice_in_memory(void **state)
{
	struct extent e[N];

	fill(e, N);
	e[N - 1].page = e[5].page + 9;
	assert_true(overlap_any(e, N, false));
	shuffle(e, N);
	assert_true(overlap_any(e, N, false));
	assert_true(overlap_any(e, N, true));
}

static void list__with_a_page_twice_in_the_file(void **state)
{
	struct extent e[N];

	fill(e, N);
	e[N - 1].fpage = e[5].fpage + 9;
	shuffle(e, N);
	assert_true(overlap_any(e, N, true));
	assert_false(overlap_any(e, N, false));
}

static void list__with_one_in_another(void **state)
{
	struct extent e[] = {{.fpage = 50, .npages = 1, .page = 50},
		{.fpage = 0, .npages = 100, .page = 1000},
		{.fpage = 200, .npages = 1, .page = 200}};

	assert_false(overlap_any(e, ARRAY_SIZE(e), false));
	assert_true(overlap_any(e, ARRAY_SIZE(e), true));
}

/* A peer may send any numbers. */
static void list__of_the_greatest_numbers(void **state)
{
	struct extent e[] = {{.fpage = UINT64_MAX, .npages = UINT32_MAX, .page = UINT32_MAX},
		{.fpage = 0, .npages = 1, .page = 7},
		{.fpage = UINT64_MAX - 1, .npages = 1, .region = 9}};

	assert_false(overlap_any(e, ARRAY_SIZE(e), true));
	e[2].npages = 2;
	assert_true(overlap_any(e, ARRAY_SIZE(e), true));
}

static bool plainly(const struct extent *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			if (e[i].page < e[k].page + e[k].npages &&
				e[k].page < e[i].page + e[i].npages)
				return true;
	return false;
}

static void random_lists__agree_with_a_comparison_of_all(void **state)
{
	unsigned seed = 7, twice = 0;

	for (unsigned step = 0; step < 4000; step++) {
		struct extent e[12];
		unsigned n = (unsigned)rand_r(&seed) % ARRAY_SIZE(e);

		for (unsigned i = 0; i < n; i++)
			e[i] = (struct extent){.npages = 1 + (uint32_t)rand_r(&seed) % 9,
				.page = (uint32_t)rand_r(&seed) % 300};
		assert_int_equal(overlap_any(e, n, false), plainly(e, n));
		twice += plainly(e, n);
	}
	assert_in_range(twice, 500, 3500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list__without_a_page_twice),
		cmocka_unit_test(list__with_a_page_twice_in_memory),
		cmocka_unit_test(list__with_a_page_twice_in_the_file),
		cmocka_unit_test(list__with_one_in_another),
		cmocka_unit_test(list__of_the_greatest_numbers),
		cmocka_unit_test(random_lists__agree_with_a_comparison_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
