/* Two samples become rates. */
#include "tests/unit/daemon/ctl/survey/answers.h"

#include "daemon/ctl/survey/top_rates.h"

enum { TWO_S = 2000 };

static json_t *before, *now, *rates;

/* The operation of the second sample: {count, errors, bytes, pairs of bounds}. */
static json_t *operation(json_int_t count, json_int_t errors, json_int_t bytes, const char *pairs)
{
	return json_pack("{s:I, s:I, s:I, s:o}", "count", count, "errors", errors, "bytes", bytes,
		"latency_ns", json_loads(pairs, 0, NULL));
}

static json_t *operations_of(json_t *list)
{
	return answer_part(answer_part(json_array_get(list, 0), "answer"), "operations");
}

static int set_up_mounts(void **state)
{
	before = json_pack("[o]", answer_read(mount_answer));
	now = json_pack("[o]", answer_read(mount_answer));
	return 0;
}

static int set_up_sessions(void **state)
{
	before = answer_read(server_answer);
	now = answer_read(server_answer);
	return 0;
}

static int tear_down(void **state)
{
	json_decref(before);
	json_decref(now);
	json_decref(rates);
	rates = NULL;
	return 0;
}

/* Of the first mount or session. */
static void assert_rate(const char *key, json_int_t expected)
{
	const json_t *value = json_object_get(json_array_get(rates, 0), key);

	assert_true(json_is_integer(value));
	assert_int_equal(json_integer_value(value), expected);
}

static void assert_null_rate(const char *key)
{
	assert_true(json_is_null(json_object_get(json_array_get(rates, 0), key)));
}

static void compare_mounts(void)
{
	json_decref(rates);
	rates = top_rates_mounts(before, now, TWO_S);
}

static void mounts__idle(void **state)
{
	compare_mounts();
	assert_int_equal(json_array_size(rates), 1);
	assert_rate("operations", 0);
	assert_rate("read_bytes", 0);
	assert_null_rate("p50_ns");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(rates, 0), "state")), "connected");
}

static void mounts__count_the_interval_alone(void **state)
{
	json_object_set_new(
		operations_of(before), "read", operation(100, 4, 8192, "[[1000, 90], [2000, 10]]"));
	json_object_set_new(operations_of(now), "read",
		operation(120, 6, 12192, "[[1000, 90], [2000, 28], [null, 2]]"));
	json_object_set_new(operations_of(now), "write", operation(80, 0, 4000, "[[500, 80]]"));
	compare_mounts();
	assert_rate("operations", 50);
	assert_rate("errors", 1);
	assert_rate("read_bytes", 2000);
	assert_rate("write_bytes", 2000);
	assert_rate("p50_ns", 500);
	assert_rate("p99_ns", INT64_MAX);
}

static void mounts__quantiles(void **state)
{
	json_object_set_new(
		operations_of(now), "read", operation(100, 0, 0, "[[9, 49], [20, 50]]"));
	json_object_set_new(operations_of(now), "open", operation(1, 0, 0, "[[10, 1]]"));
	compare_mounts();
	assert_rate("p50_ns", 10);
	assert_rate("p99_ns", 20);
}

static void mounts__without_an_answer(void **state)
{
	answer_set(json_array_get(now, 0), "answer", json_null());
	compare_mounts();
	assert_null_rate("operations");
	assert_null_rate("state");
	json_array_clear(now);
	json_array_append_new(now, answer_read(mount_answer));
	json_array_clear(before);
	compare_mounts();
	assert_null_rate("operations");
	assert_int_equal(json_array_size(rates), 1);
}

/* The kernel gives a connection's number to another mount. */
static void mounts__of_another_daemon(void **state)
{
	answer_set_number(answer_part(json_array_get(before, 0), "answer"), "pid", 1);
	compare_mounts();
	assert_null_rate("operations");
}

/* ---- all mounts together --------------------------------------------------------------------- */

static void assert_part(const char *part, const char *key, json_int_t expected)
{
	const json_t *value = json_object_get(part ? json_object_get(rates, part) : rates, key);

	assert_true(json_is_integer(value));
	assert_int_equal(json_integer_value(value), expected);
}

static void all__is_the_sum_of_mounts(void **state)
{
	json_t *other = answer_read(mount_answer);

	answer_set_number(other, "connection", 43);
	json_array_append_new(before, json_deep_copy(other));
	json_array_append_new(now, other);
	json_object_set_new(operations_of(now), "read", operation(60, 2, 8000, "[[1000, 60]]"));
	json_object_set_new(answer_part(answer_part(other, "answer"), "operations"), "write",
		operation(20, 0, 4000, "[[9000, 20]]"));
	rates = top_rates_all(before, now, TWO_S);
	assert_part(NULL, "operations", 40);
	assert_part(NULL, "errors", 1);
	assert_part(NULL, "read_bytes", 4000);
	assert_part(NULL, "write_bytes", 2000);
	assert_part(NULL, "p50_ns", 1000);
	assert_part(NULL, "p99_ns", 9000);
	assert_part("reads", "operations", 30);
	assert_part("reads", "p99_ns", 1000);
	assert_part("writes", "p50_ns", 9000);
}

static void all__of_mounts_that_are_new(void **state)
{
	json_array_clear(before);
	rates = top_rates_all(before, now, TWO_S);
	assert_true(json_is_null(answer_part(rates, "operations")));
	assert_true(json_is_null(answer_part(answer_part(rates, "reads"), "p50_ns")));
}

static json_t *counters_of(json_t *status)
{
	return answer_part(json_array_get(answer_part(status, "sessions"), 0), "counters");
}

static void compare_sessions(void)
{
	json_decref(rates);
	rates = top_rates_sessions(before, now, TWO_S);
}

static void sessions__count_the_interval_alone(void **state)
{
	answer_set_number(counters_of(before), "reads", 100);
	answer_set_number(counters_of(now), "reads", 300);
	answer_set_number(counters_of(now), "write_bytes", 8192);
	compare_sessions();
	assert_rate("id", 1);
	assert_rate("reads", 100);
	assert_rate("write_bytes", 4096);
	assert_rate("rpcs", 0);
	/* Its client began another session, and counts anew. */
	answer_set_number(counters_of(now), "reads", 40);
	compare_sessions();
	assert_rate("reads", 20);
}

static void sessions__that_are_new(void **state)
{
	json_decref(before);
	before = NULL;
	answer_set_number(counters_of(now), "rpcs", 10);
	compare_sessions();
	assert_rate("rpcs", 5);
}

static json_t *export_counters(json_t *status)
{
	return answer_part(json_array_get(answer_part(status, "exports"), 0), "counters");
}

static void compare_exports(void)
{
	json_decref(rates);
	rates = top_rates_exports(before, now, TWO_S);
}

static void exports__count_the_interval_alone(void **state)
{
	answer_set_number(export_counters(before), "read_bytes", 1000);
	answer_set_number(export_counters(now), "read_bytes", 5000);
	compare_exports();
	assert_rate("read_bytes", 2000);
	assert_rate("rpcs", 0);
}

static void exports__of_a_server_that_was_started_again(void **state)
{
	answer_set_number(export_counters(before), "read_bytes", 1000);
	answer_set_number(export_counters(now), "read_bytes", 5000);
	answer_set(now, "incarnation", json_string("2"));
	compare_exports();
	assert_rate("read_bytes", 2500);
	answer_set_number(export_counters(now), "read_bytes", 600);
	compare_exports();
	assert_rate("read_bytes", 300);
}

static void exports__that_are_new(void **state)
{
	json_decref(before);
	before = NULL;
	compare_exports();
	assert_null_rate("reads");
}

static void answers__of_other_kinds(void **state)
{
	static const char *const texts[] = {"{}", "{\"sessions\":[3,{}]}",
		"{\"answer\":{\"pid\":3,\"operations\":{\"read\":{\"latency_ns\":[3,[],[[],-1]]}}}}"};

	for (unsigned i = 0; i < 3; i++) {
		json_t *any = answer_read(texts[i]), *list = json_pack("[O]", any);

		json_decref(top_rates_mounts(list, list, 0));
		json_decref(top_rates_sessions(any, any, -1));
		json_decref(top_rates_exports(any, any, 0));
		json_decref(top_rates_all(list, list, 0));
		json_decref(list);
		json_decref(any);
	}
}

#define MOUNTS(name)   cmocka_unit_test_setup_teardown(name, set_up_mounts, tear_down)
#define SESSIONS(name) cmocka_unit_test_setup_teardown(name, set_up_sessions, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOUNTS(mounts__idle),
		MOUNTS(mounts__count_the_interval_alone),
		MOUNTS(mounts__quantiles),
		MOUNTS(mounts__without_an_answer),
		MOUNTS(mounts__of_another_daemon),
		SESSIONS(sessions__count_the_interval_alone),
		SESSIONS(sessions__that_are_new),
		MOUNTS(all__is_the_sum_of_mounts),
		MOUNTS(all__of_mounts_that_are_new),
		SESSIONS(exports__count_the_interval_alone),
		SESSIONS(exports__of_a_server_that_was_started_again),
		SESSIONS(exports__that_are_new),
		SESSIONS(answers__of_other_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
