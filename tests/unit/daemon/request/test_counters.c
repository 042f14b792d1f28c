/* The counters of an I/O thread: buckets, quantiles, sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "common/base/clock.h"
#include "daemon/request/counters.h"

static struct counters counters;

static int setup(void **state)
{
	counters = (struct counters){0};
	return 0;
}

static struct op_counters sum_of(enum request_op op)
{
	struct op_counters sum = {0};

	counters_sum(&sum, &counters, op);
	return sum;
}

static void buckets__have_each_time_once(void **state)
{
	uint64_t before = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS - 1; i++) {
		uint64_t bound = latency_bound_ns(i);

		assert_true(bound > before);
		assert_int_equal(latency_bucket(before), i);
		assert_int_equal(latency_bucket(bound - 1), i);
		assert_int_equal(latency_bucket(bound), i + 1);
		before = bound;
	}
	assert_int_equal(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
	assert_true(latency_bound_ns(LATENCY_BUCKETS - 1) == UINT64_MAX);
}

static void buckets__are_narrow(void **state)
{
	for (unsigned i = 1; i < LATENCY_BUCKETS - 1; i++)
		assert_true(latency_bound_ns(i) * 4 <= latency_bound_ns(i - 1) * 5);
	assert_true(latency_bound_ns(LATENCY_BUCKETS - 2) > UINT64_C(60) * 1000000000);
}

static void add__counts_results_bytes_and_time(void **state)
{
	struct op_counters c;

	counters_add(&counters, OP_READ, 0, 4096, 5000);
	counters_add(&counters, OP_READ, 0, 100, 7000);
	counters_add(&counters, OP_READ, -5, 0, 9000);
	c = sum_of(OP_READ);
	assert_int_equal(c.n, 3);
	assert_int_equal(c.errors, 1);
	assert_int_equal(c.bytes, 4196);
	assert_int_equal(c.ns, 21000);
	assert_int_equal(c.latency[latency_bucket(7000)], 1);
	assert_int_equal(sum_of(OP_WRITE).n, 0);
}

/* The clock of one CPU may be behind another one's by a little. */
static void add__takes_a_time_that_goes_back_as_none(void **state)
{
	counters_add(&counters, OP_OPEN, 0, 0, -3);
	assert_int_equal(sum_of(OP_OPEN).ns, 0);
	assert_int_equal(sum_of(OP_OPEN).latency[0], 1);
}

static void no_room__is_the_time_of_enospc_alone(void **state)
{
	counters_add(&counters, OP_WRITE, 0, 5, 7);
	counters_add(&counters, OP_WRITE, -EIO, 0, 7);
	assert_int_equal(counters_no_room_ms(&counters), 0);
	counters_add(&counters, OP_WRITE, -ENOSPC, 0, 7);
	assert_in_range(counters_no_room_ms(&counters), now_ms() - 60000, now_ms());
}

static void sum__is_of_all_threads(void **state)
{
	struct op_counters sum = {0};

	counters_add(&counters, OP_MKDIR, 0, 0, 2000);
	counters_sum(&sum, &counters, OP_MKDIR);
	counters_sum(&sum, &counters, OP_MKDIR);
	assert_int_equal(sum.n, 2);
	assert_int_equal(sum.ns, 4000);
	assert_int_equal(sum.latency[latency_bucket(2000)], 2);
}

static void quantile__is_the_bound_of_its_bucket(void **state)
{
	struct op_counters c;

	for (int i = 0; i < 98; i++)
		counters_add(&counters, OP_WRITE, 0, 0, 3000);
	counters_add(&counters, OP_WRITE, 0, 0, 1000000);
	counters_add(&counters, OP_WRITE, 0, 0, 1000000);
	c = sum_of(OP_WRITE);
	assert_int_equal(latency_quantile_ns(&c, 500), latency_bound_ns(latency_bucket(3000)));
	assert_int_equal(latency_quantile_ns(&c, 980), latency_bound_ns(latency_bucket(3000)));
	assert_int_equal(latency_quantile_ns(&c, 990), latency_bound_ns(latency_bucket(1000000)));
	assert_int_equal(latency_quantile_ns(&c, 1000), latency_bound_ns(latency_bucket(1000000)));
}

static void quantile__of_none_is_0_and_of_endless_ones_the_last_bound(void **state)
{
	struct op_counters c = sum_of(OP_FSYNC);

	assert_int_equal(latency_quantile_ns(&c, 500), 0);
	counters_add(&counters, OP_FSYNC, 0, 0, INT64_MAX);
	c = sum_of(OP_FSYNC);
	assert_int_equal(latency_quantile_ns(&c, 500), latency_bound_ns(LATENCY_BUCKETS - 2));
}

static void names__are_there_for_all(void **state)
{
	for (int op = 0; op < OP_NOPS; op++)
		assert_non_null(request_op_name((enum request_op)op));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets__have_each_time_once),
		cmocka_unit_test(buckets__are_narrow),
		cmocka_unit_test_setup(add__counts_results_bytes_and_time, setup),
		cmocka_unit_test_setup(no_room__is_the_time_of_enospc_alone, setup),
		cmocka_unit_test_setup(add__takes_a_time_that_goes_back_as_none, setup),
		cmocka_unit_test_setup(sum__is_of_all_threads, setup),
		cmocka_unit_test_setup(quantile__is_the_bound_of_its_bucket, setup),
		cmocka_unit_test_setup(
			quantile__of_none_is_0_and_of_endless_ones_the_last_bound, setup),
		cmocka_unit_test(names__are_there_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
