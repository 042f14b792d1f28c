/* Numbers as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "daemon/metrics/figure.h"

static char buf[FIGURE_CHARS];

static void bytes__in_the_largest_unit(void **state)
{
	assert_string_equal(figure_bytes(0, buf), "0 B");
	assert_string_equal(figure_bytes(1023, buf), "1023 B");
	assert_string_equal(figure_bytes(1024, buf), "1 KiB");
	assert_string_equal(figure_bytes(71.25 * 1048576, buf), "71.2 MiB");
	assert_string_equal(figure_bytes(1048575, buf), "1.0 MiB");
	assert_string_equal(figure_bytes(0x1p60, buf), "1024 PiB");
	assert_string_equal(figure_bytes(99.94 * 1024, buf), "99.9 KiB");
	assert_string_equal(figure_bytes(99.96 * 1024, buf), "100 KiB");
	assert_string_equal(figure_bytes(1023.6 * 1024, buf), "1.0 MiB");
	assert_string_equal(figure_byte_rate(1536, buf), "1.5 KiB/s");
}

static void counts__up_to_four_digits(void **state)
{
	assert_string_equal(figure_count(0, buf), "0");
	assert_string_equal(figure_count(2.5, buf), "2.5");
	assert_string_equal(figure_count(9999, buf), "9999");
	assert_string_equal(figure_count(18211, buf), "18.2 k");
	assert_string_equal(figure_rate(1500000, buf), "1.5 M/s");
	assert_string_equal(figure_rate(1500, buf), "1500/s");
}

static void times__and_shares(void **state)
{
	assert_string_equal(figure_time(41000, buf), "41.0 us");
	assert_string_equal(figure_time(0x1p63, buf), "> 68 s");
	assert_string_equal(figure_share(1, 3, buf), "33 %");
	assert_string_equal(figure_share(1, 101, buf), "< 1 %");
	assert_string_equal(figure_share(0, 9, buf), "0 %");
	assert_string_equal(figure_share(999, 1000, buf), "99 %");
}

static void unknown__is_a_dash(void **state)
{
	double none = (double)NAN;

	assert_string_equal(figure_bytes(none, buf), "–");
	assert_string_equal(figure_count(none, buf), "–");
	assert_string_equal(figure_time(none, buf), "–");
	assert_string_equal(figure_time(-1, buf), "–");
	assert_string_equal(figure_share(0, 0, buf), "–");
	assert_string_equal(figure_rate((double)INFINITY, buf), "–");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__in_the_largest_unit),
		cmocka_unit_test(counts__up_to_four_digits),
		cmocka_unit_test(times__and_shares),
		cmocka_unit_test(unknown__is_a_dash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
