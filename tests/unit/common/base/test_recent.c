/* test_recent.c - how often something has happened lately. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/recent.h"

static void recent_count__forgets(void **state)
{
	struct recent r = {0};
	int64_t at = 7 * RECENT_MS;

	assert_int_equal(recent_count(&r, at), 0);
	recent_add(&r, at);
	recent_add(&r, at + RECENT_MS - 1);
	assert_int_equal(recent_count(&r, at + RECENT_MS - 1), 2);
	/* As those of the span before. */
	recent_add(&r, at + RECENT_MS);
	assert_int_equal(recent_count(&r, at + RECENT_MS), 3);
	assert_int_equal(recent_count(&r, at + 2 * RECENT_MS - 1), 3);
	assert_int_equal(recent_count(&r, at + 2 * RECENT_MS), 1);
	assert_int_equal(recent_count(&r, at + 3 * RECENT_MS), 0);
	/* To look changes nothing. */
	assert_int_equal(recent_count(&r, at + RECENT_MS), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recent_count__forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
