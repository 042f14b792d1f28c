/* The rates of the last minutes, in memory of a fixed size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics/history.h"

static struct history *h;

static int set_up(void **state)
{
	h = history_new();
	return h ? 0 : -1;
}

static int tear_down(void **state)
{
	free(h);
	return 0;
}

static double last(const char *name)
{
	return history_last(h, history_find(h, name), HISTORY_READ_BYTES);
}

static void put(const char *name, double value)
{
	history_put(h, name, HISTORY_READ_BYTES, value);
}

static void values__before_the_first_moment(void **state)
{
	put("a", 1);
	assert_null(history_find(h, "a"));
	assert_true(isnan(last("a")));
	assert_true(isnan(history_most(h, NULL, HISTORY_P50, 0)));
}

static void values__of_the_last_moment(void **state)
{
	history_begin(h, 1000);
	put("a", 7);
	put("a", -1);
	put("a", (double)NAN);
	assert_true(last("a") == 7);
	history_begin(h, 2000);
	assert_true(isnan(last("a")));
	put("a", 3);
	assert_true(last("a") == 3);
	assert_true(history_most(h, history_find(h, "a"), HISTORY_READ_BYTES, 1000) == 7);
	assert_true(history_most(h, history_find(h, "a"), HISTORY_READ_BYTES, 1001) == 3);
	assert_true(isnan(history_last(h, history_find(h, "a"), HISTORY_P99)));
}

/* Each moment has its own value, from the oldest that is kept to the last. */
static void moments__the_oldest_is_forgotten(void **state)
{
	const struct history_track *track;

	for (int i = 0; i < HISTORY_MOMENTS + 5; i++) {
		history_begin(h, 1000 + i);
		put("a", i);
	}
	track = history_find(h, "a");
	assert_int_equal(h->n, HISTORY_MOMENTS);
	for (unsigned i = 0; i < h->n; i++) {
		assert_int_equal(history_at_ms(h, i), 1000 + 5 + i);
		assert_true(history_value(h, track, HISTORY_READ_BYTES, i) == 5 + i);
	}
}

static void tracks__all_are_taken(void **state)
{
	char name[16], other[HISTORY_NAME_BYTES + 1];

	history_begin(h, 1);
	for (int i = 0; i < HISTORY_TRACKS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		put(name, i);
	}
	put("one more", 1);
	assert_null(history_find(h, "one more"));
	assert_true(last("127") == 127);
	/* All but one become too old. */
	for (int i = 1; i < HISTORY_MOMENTS; i++) {
		history_begin(h, 1 + i);
		put("5", i);
	}
	put("one more", 1);
	assert_null(history_find(h, "one more"));
	history_begin(h, 1 + HISTORY_MOMENTS);
	put("one more", 8);
	assert_true(last("one more") == 8);
	assert_null(history_find(h, "0"));
	assert_true(history_most(h, history_find(h, "5"), HISTORY_READ_BYTES, 0) ==
		    HISTORY_MOMENTS - 1);
	memset(other, 'x', sizeof(other) - 1);
	other[HISTORY_NAME_BYTES] = '\0';
	put(other, 1);
	assert_null(history_find(h, other));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(values__before_the_first_moment),
		CASE(values__of_the_last_moment),
		CASE(moments__the_oldest_is_forgotten),
		CASE(tracks__all_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
