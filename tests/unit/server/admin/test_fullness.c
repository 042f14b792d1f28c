/* test_fullness.c - when an export counts as full, and when it does not any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/admin/fullness.h"

enum { TOTAL = 1000 };

static void level__is_reached_with_its_percentage(void **state)
{
	assert_int_equal(fullness_level(0, 0, TOTAL), 0);
	assert_int_equal(fullness_level(0, 799, TOTAL), 0);
	assert_int_equal(fullness_level(0, 800, TOTAL), 80);
	assert_int_equal(fullness_level(80, 899, TOTAL), 80);
	assert_int_equal(fullness_level(80, 900, TOTAL), 90);
	assert_int_equal(fullness_level(0, 950, TOTAL), 95);
	assert_int_equal(fullness_level(90, TOTAL, TOTAL), 95);
	assert_int_equal(fullness_level(90, 2 * TOTAL, TOTAL), 95);
}

static void level__is_left_below_two_percent_less(void **state)
{
	assert_int_equal(fullness_level(95, 930, TOTAL), 95);
	assert_int_equal(fullness_level(95, 929, TOTAL), 90);
	assert_int_equal(fullness_level(90, 880, TOTAL), 90);
	assert_int_equal(fullness_level(90, 879, TOTAL), 80);
	assert_int_equal(fullness_level(80, 780, TOTAL), 80);
	assert_int_equal(fullness_level(80, 779, TOTAL), 0);
	assert_int_equal(fullness_level(95, 0, TOTAL), 0);
}

static void level__of_any_total(void **state)
{
	assert_int_equal(fullness_level(0, 1, 1), 95);
	assert_int_equal(fullness_level(0, 1, 2), 0);
	assert_int_equal(fullness_level(0, UINT64_MAX / 100 * 81, UINT64_MAX), 80);
	assert_int_equal(fullness_level(0, UINT64_MAX, UINT64_MAX), 95);
	assert_int_equal(fullness_level(95, 12, 0), 0); /* there is no limit */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(level__is_reached_with_its_percentage),
		cmocka_unit_test(level__is_left_below_two_percent_less),
		cmocka_unit_test(level__of_any_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
