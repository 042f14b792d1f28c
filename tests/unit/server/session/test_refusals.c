/* test_refusals.c - keys that were refused, and when the log has a line of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "server/session/refusals.h"

static struct refusals refusals;

static int set_up(void **state)
{
	memset(&refusals, 0, sizeof(refusals));
	return 0;
}

/* True: the log gets a line, and `untold` have come since the last one. */
static bool add(const char *key, const char *peer, int64_t now, uint64_t untold)
{
	struct refusal refusal = {.reason = "no such key"};
	const struct refusal *told;
	uint64_t n = 0;

	snprintf(refusal.key, sizeof(refusal.key), "%s", key);
	told = refusals_add(&refusals, &refusal, peer, now, &n);
	if (told)
		assert_int_equal(n, untold);
	return told;
}

/* Each attempt comes from another port. */
static void add__has_one_line_for_many(void **state)
{
	assert_true(add("web", "tcp 10.0.0.2:1000", 5, 0));
	for (unsigned i = 1; i < 20; i++) {
		char peer[32];

		snprintf(peer, sizeof(peer), "tcp 10.0.0.2:%u", 1000 + i);
		assert_false(add("web", peer, 5 + i, 0));
	}
	assert_false(add("web", "tcp 10.0.0.2:7", 4 + REFUSALS_TELL_MS, 0));
	assert_true(add("web", "tcp 10.0.0.2:7", 5 + REFUSALS_TELL_MS, 20));
	assert_int_equal(refusals.n, 1);
	assert_int_equal(refusals.v[0].count, 22);
	assert_string_equal(refusals.v[0].host, "tcp 10.0.0.2");
	assert_int_equal(refusals.v[0].last_ms, 5 + REFUSALS_TELL_MS);
}

static void add__tells_others_apart(void **state)
{
	struct refusal reason = {.key = "web", .reason = "other bytes"};
	uint64_t untold;

	assert_true(add("web", "tcp 10.0.0.2:1", 1, 0));
	assert_true(add("lab", "tcp 10.0.0.2:1", 2, 0));
	assert_true(add("web", "tcp 10.0.0.3:1", 3, 0));
	assert_true(add("web", "tcp [fe80::1]:1", 3, 0));
	assert_non_null(refusals_add(&refusals, &reason, "tcp 10.0.0.2:1", 4, &untold));
	assert_int_equal(refusals.n, 5);
	assert_string_equal(refusals.v[3].host, "tcp [fe80::1]");
	/* It has no port. */
	assert_true(add("web", "shm", 5, 0));
	assert_string_equal(refusals.v[5].host, "shm");
}

static void add__forgets_the_oldest(void **state)
{
	char peer[32];

	for (unsigned i = 0; i < REFUSALS_MAX; i++) {
		snprintf(peer, sizeof(peer), "tcp 10.0.0.%u:1", i);
		assert_true(add("web", peer, 10 + i, 0));
	}
	assert_false(add("web", "tcp 10.0.0.0:2", 100, 0));
	assert_true(add("web", "tcp 10.0.1.0:1", 101, 0)); /* in place of 10.0.0.1 */
	assert_int_equal(refusals.n, REFUSALS_MAX);
	assert_false(add("web", "tcp 10.0.0.0:3", 102, 0));
	assert_true(add("web", "tcp 10.0.0.1:1", 103, 0));
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(add__has_one_line_for_many),
		CASE(add__tells_others_apart),
		CASE(add__forgets_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
