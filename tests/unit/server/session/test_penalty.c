/* test_penalty.c - how long clients wait for their next session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/session/penalty.h"

static struct penalties penalties;

static int set_up(void **state)
{
	memset(&penalties, 0, sizeof(penalties));
	return 0;
}

/* A holder of a key, whose owners' names do not count. */
static const struct penalty_client *holder(unsigned i)
{
	static const uint8_t owner[OWNER_BYTES] = "any";
	static struct penalty_client client;
	char name[16];

	snprintf(name, sizeof(name), "holder%u", i);
	client = penalty_client_of(0, name, owner, true);
	return &client;
}

/* A session of holder i, which began then, is ended. */
static void add(unsigned i, int64_t began_ms, int64_t now)
{
	penalty_add(&penalties, holder(i), began_ms, now);
}

static int64_t left_of(const struct penalty_client *client, int64_t now)
{
	int64_t over_ms = penalty_over_ms(&penalties, client);

	return over_ms > now ? over_ms - now : 0;
}

/* How long holder i waits from now on. */
static int64_t wait_of(unsigned i, int64_t now)
{
	return left_of(holder(i), now);
}

static void wait__is_twice_as_long_each_time(void **state)
{
	static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
	int64_t now = 5000;

	assert_int_equal(wait_of(1, now), 0);
	for (unsigned i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		add(1, now, now);
		assert_int_equal(wait_of(1, now), seconds[i] * 1000);
		assert_int_equal(wait_of(1, now + 400), seconds[i] * 1000 - 400);
		assert_int_equal(wait_of(1, now + seconds[i] * 1000), 0);
		assert_int_equal(wait_of(2, now), 0);
		now += seconds[i] * 1000;
	}
}

/* A holder's machines that are cut off together. */
static void wait__of_sessions_that_were_there_does_not_double(void **state)
{
	for (int64_t now = 1000; now <= 9000; now += 1000) {
		add(1, 500, now);
		assert_int_equal(wait_of(1, now), PENALTY_FIRST_MS);
	}
	add(1, 9001, 10000);
	assert_int_equal(wait_of(1, 10000), 2 * PENALTY_FIRST_MS);
}

static void wait__begins_anew_after_some_time(void **state)
{
	add(1, 0, 1000);
	add(1, 1001, 1000 + PENALTY_FORGET_MS - 1);
	assert_int_equal(wait_of(1, 1000 + PENALTY_FORGET_MS - 1), 2 * PENALTY_FIRST_MS);
	add(1, 1000 + PENALTY_FORGET_MS, 1000 + 2 * PENALTY_FORGET_MS);
	assert_int_equal(wait_of(1, 1000 + 2 * PENALTY_FORGET_MS), PENALTY_FIRST_MS);
}

static void clients__are_forgotten_by_age(void **state)
{
	for (unsigned i = 0; i <= PENALTY_CLIENTS; i++) {
		add(i, 1000 + i, 1000 + i);
		add(0, 1000 + i, 1000 + i);
	}
	assert_int_equal(wait_of(0, 1000 + PENALTY_CLIENTS), PENALTY_MAX_MS);
	assert_int_equal(wait_of(1, 0), 0);
	for (unsigned i = 2; i <= PENALTY_CLIENTS; i++)
		assert_int_equal(wait_of(i, 1000 + i), PENALTY_FIRST_MS);
}

/* Another owner's name changes nothing for a key's holder. Without a key it is all there is to tell
 * clients apart. */
static void client__of_a_key_is_its_holder(void **state)
{
	static const uint8_t a[OWNER_BYTES] = "a", b[OWNER_BYTES] = "b";
	struct penalty_client key_a = penalty_client_of(1, "web", a, true);
	struct penalty_client key_b = penalty_client_of(1, "web", b, true);
	struct penalty_client elsewhere = penalty_client_of(2, "web", a, true);
	struct penalty_client any_a = penalty_client_of(1, "any", a, false);
	struct penalty_client any_b = penalty_client_of(1, "any", b, false);
	struct penalty_client web_a = penalty_client_of(1, "web", a, false);

	penalty_add(&penalties, &key_a, 0, 1000);
	assert_int_equal(left_of(&key_b, 1000), PENALTY_FIRST_MS);
	assert_int_equal(left_of(&elsewhere, 1000), 0);
	assert_int_equal(left_of(&web_a, 1000), 0);
	penalty_add(&penalties, &any_a, 0, 1000);
	assert_int_equal(left_of(&any_a, 1000), PENALTY_FIRST_MS);
	assert_int_equal(left_of(&any_b, 1000), 0);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(wait__is_twice_as_long_each_time),
		CASE(wait__begins_anew_after_some_time),
		CASE(wait__of_sessions_that_were_there_does_not_double),
		CASE(clients__are_forgotten_by_age),
		CASE(client__of_a_key_is_its_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
