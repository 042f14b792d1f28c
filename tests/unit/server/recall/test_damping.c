/* test_damping.c - for how long a lease that was recalled is not granted again unasked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/recall/damping.h"

enum { EXPORT = 2, INO = 77 };

static struct damping damping;

static int set_up(void **state)
{
	damping = (struct damping){0};
	return 0;
}

/* Returns for how long it is on from now. */
static int64_t lasts(int64_t now)
{
	int64_t ms = 0;

	while (damping_is_on(&damping, EXPORT, INO, now + ms))
		ms += DAMPING_FIRST_MS / 2;
	return ms;
}

static void damping__is_of_one_inode_of_one_export(void **state)
{
	assert_false(damping_is_on(&damping, EXPORT, INO, 0));
	damping_recalled(&damping, EXPORT, INO, 5000);
	assert_true(damping_is_on(&damping, EXPORT, INO, 5000));
	assert_false(damping_is_on(&damping, EXPORT + 1, INO, 5000));
	assert_false(damping_is_on(&damping, EXPORT, INO + DAMPING_SETS, 5000));
	assert_false(damping_is_on(&damping, EXPORT, 0, 5000));
	assert_int_equal(lasts(5000), DAMPING_FIRST_MS);
}

static void damping__lasts_longer_each_time_that_it_comes_to_nothing(void **state)
{
	int64_t now = 5000, expected = DAMPING_FIRST_MS;

	for (unsigned i = 0; i < 10; i++) {
		damping_recalled(&damping, EXPORT, INO, now);
		assert_int_equal(lasts(now), expected);
		/* A recall meanwhile is of a lease that was needed. */
		now += expected / 2;
		damping_recalled(&damping, EXPORT, INO, now);
		assert_int_equal(lasts(now), expected);
		now += expected;
		if (expected < DAMPING_LAST_MS)
			expected *= 2;
	}
	assert_int_equal(expected, DAMPING_LAST_MS);
	/* It was quiet for as long again. */
	now += DAMPING_LAST_MS;
	damping_recalled(&damping, EXPORT, INO, now);
	assert_int_equal(lasts(now), DAMPING_FIRST_MS);
}

static void damping__forgets_what_ends_first_where_it_is_full(void **state)
{
	for (unsigned i = 0; i <= DAMPING_WAYS; i++)
		damping_recalled(&damping, EXPORT, INO + i * DAMPING_SETS, 5000 + i);
	assert_false(damping_is_on(&damping, EXPORT, INO, 5010));
	for (unsigned i = 1; i <= DAMPING_WAYS; i++)
		assert_true(damping_is_on(&damping, EXPORT, INO + i * DAMPING_SETS, 5010));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup(test, set_up)
	static const struct CMUnitTest tests[] = {
		CASE(damping__is_of_one_inode_of_one_export),
		CASE(damping__lasts_longer_each_time_that_it_comes_to_nothing),
		CASE(damping__forgets_what_ends_first_where_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
