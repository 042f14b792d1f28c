/* Judgements of what a server has answered. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <stdio.h>

#include "daemon/ctl/doctor/answer.h"

static struct doctor_seen seen;

static const char *status(const char *exports)
{
	static char text[1024];

	snprintf(text, sizeof(text), "{\"version\":\"" RMEMFS_VERSION "\"%s%s}",
		exports ? ",\"exports\":" : "", exports ? exports : "");
	return text;
}

static void note__of_other_texts(void **state)
{
	answer_note("", &seen);
	assert_false(seen.answered);
	answer_note("[1]", &seen);
	assert_false(seen.answered);
	answer_note("{\"version\":7,\"exports\":{\"a\":1},\"memory_dir\":[]}", &seen);
	assert_true(seen.answered);
	assert_string_equal(seen.version, "");
	assert_int_equal(seen.nexports, 0);
}

static void note__names_are_printable(void **state)
{
	answer_note(status("[{\"name\":\"a\\u001bb\",\"bytes\":-4}]"), &seen);
	assert_string_equal(seen.exports[0].name, "a?b");
	assert_int_equal(seen.exports[0].bytes, 0);
}

static void exports__with_room(void **state)
{
	answer_note(status("[{\"name\":\"data\",\"bytes\":1048576,\"free\":52429}]"), &seen);
	answer_judge_exports(&seen, true, judge_anew());
	assert_judged(VERDICT_OK, "export data has", NULL);
	assert_has(judged.findings[0].found, "free of 1MiB");
}

static void exports__nearly_full(void **state)
{
	answer_note(status("[{\"name\":\"data\",\"bytes\":1048576,\"free\":52000}]"), &seen);
	answer_judge_exports(&seen, true, judge_anew());
	assert_judged(VERDICT_WARNING, "export data has",
		"raise the export's size in server.conf, and systemctl reload");
}

static void exports__more_than_places(void **state)
{
	char list[1024] = "[{}";

	for (int i = 0; i < DOCTOR_EXPORTS_MAX; i++)
		strcat(list, ",{}");
	strcat(list, "]");
	answer_note(status(list), &seen);
	answer_judge_exports(&seen, true, judge_anew());
	assert_int_equal(judged.n, DOCTOR_EXPORTS_MAX + 1);
	assert_among(VERDICT_NOTE, "1 more exports", NULL);
}

static void exports__of_strangers(void **state)
{
	answer_note(status(NULL), &seen);
	answer_judge_exports(&seen, false, judge_anew());
	assert_judged(VERDICT_NOTE, "not told to strangers", NULL);
}

static void exports__of_a_key_without_any(void **state)
{
	answer_note(status("[]"), &seen);
	answer_judge_exports(&seen, true, judge_anew());
	assert_judged(VERDICT_WARNING, "no export to this key", "rmemfsctl reload");
}

static void exports__of_another_release(void **state)
{
	answer_note(status("[{\"name\":\"data\",\"bytes\":100,\"free\":100}]"), &seen);
	strcpy(seen.version, "9.9");
	answer_judge_exports(&seen, true, judge_anew());
	assert_among(VERDICT_NOTE, "of release 9.9", NULL);
}

static void latency__is_a_median(void **state)
{
	const struct doctor_try try = {.tried = true,
		.wire_ns = 50000,
		.course = {.connect_ns = 200000,
			.prove_ns = 1100000,
			.round_ns = {900000000, 110000, 120000, 100000, 900000000},
			.nrounds = 5}};

	answer_judge_latency(TRANSPORT_TCP, &try, judge_anew());
	assert_judged(VERDICT_OK,
		"tcp: the wire 0.050 ms; connection and hello 0.200 ms; proof 1.100 ms; question and "
		"answer 0.120 ms (median of 5)",
		NULL);
}

static void latency__of_a_busy_server(void **state)
{
	struct doctor_try try = {.tried = true,
		.wire_ns = 2000000,
		.course = {.round_ns = {21000000}, .nrounds = 1}};

	answer_judge_latency(TRANSPORT_TCP, &try, judge_anew());
	assert_judged(VERDICT_WARNING, "question and answer 21.000 ms", "vmstat");
	/* A long way: the server is not to blame. */
	try.wire_ns = 2100000;
	answer_judge_latency(TRANSPORT_TCP, &try, judge_anew());
	assert_judged(VERDICT_OK, "question and answer 21.000 ms", NULL);
	/* Nothing was measured. */
	try = (struct doctor_try){.tried = true};
	answer_judge_latency(TRANSPORT_SHM, &try, judge_anew());
	assert_judged(VERDICT_OK, "the wire not measured", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(note__of_other_texts),
		cmocka_unit_test(note__names_are_printable),
		cmocka_unit_test(exports__with_room),
		cmocka_unit_test(exports__nearly_full),
		cmocka_unit_test(exports__more_than_places),
		cmocka_unit_test(exports__of_strangers),
		cmocka_unit_test(exports__of_a_key_without_any),
		cmocka_unit_test(exports__of_another_release),
		cmocka_unit_test(latency__is_a_median),
		cmocka_unit_test(latency__of_a_busy_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
