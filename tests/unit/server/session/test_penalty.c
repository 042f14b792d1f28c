/* test_penalty.c - how long owners wait for their next session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "server/session/penalty.h"

static struct penalties penalties;

static int set_up(void **state)
{
	memset(&penalties, 0, sizeof(penalties));
	return 0;
}

static const uint8_t *owner(unsigned i)
{
	static uint8_t id[OWNER_BYTES];

	memset(id, 0, sizeof(id));
	memcpy(id, &i, sizeof(i));
	return id;
}

/* How long owner i waits from now on. */
static int64_t wait_of(unsigned i, int64_t now)
{
	int64_t over_ms = penalty_over_ms(&penalties, owner(i));

	return over_ms > now ? over_ms - now : 0;
}

static void wait__is_twice_as_long_each_time(void **state)
{
	static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
	int64_t now = 5000;

	assert_int_equal(wait_of(1, now), 0);
	for (unsigned i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		penalty_add(&penalties, owner(1), now);
		assert_int_equal(wait_of(1, now), seconds[i] * 1000);
		assert_int_equal(wait_of(1, now + 400), seconds[i] * 1000 - 400);
		assert_int_equal(wait_of(1, now + seconds[i] * 1000), 0);
		assert_int_equal(wait_of(2, now), 0);
		now += seconds[i] * 1000;
	}
}

static void wait__begins_anew_after_some_time(void **state)
{
	penalty_add(&penalties, owner(1), 1000);
	penalty_add(&penalties, owner(1), 1000 + PENALTY_FORGET_MS - 1);
	assert_int_equal(wait_of(1, 1000 + PENALTY_FORGET_MS - 1), 2 * PENALTY_FIRST_MS);
	penalty_add(&penalties, owner(1), 1000 + 2 * PENALTY_FORGET_MS);
	assert_int_equal(wait_of(1, 1000 + 2 * PENALTY_FORGET_MS), PENALTY_FIRST_MS);
}

static void owners__are_forgotten_by_age(void **state)
{
	for (unsigned i = 0; i <= PENALTY_OWNERS; i++) {
		penalty_add(&penalties, owner(i), 1000 + i);
		penalty_add(&penalties, owner(0), 1000 + i);
	}
	assert_int_equal(wait_of(0, 1000 + PENALTY_OWNERS), PENALTY_MAX_MS);
	assert_int_equal(wait_of(1, 0), 0);
	for (unsigned i = 2; i <= PENALTY_OWNERS; i++)
		assert_int_equal(wait_of(i, 1000 + i), PENALTY_FIRST_MS);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(wait__is_twice_as_long_each_time),
		CASE(wait__begins_anew_after_some_time),
		CASE(owners__are_forgotten_by_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
