/* Whether a mount is well: each state, and each threshold from both sides. */
#include "tests/unit/daemon/ctl/survey/answers.h"

#include "daemon/ctl/survey/health_mount.h"

static json_t *mount, *answer;

static int set_up(void **state)
{
	mount = answer_read(mount_answer);
	answer = answer_part(mount, "answer");
	return 0;
}

static int tear_down(void **state)
{
	json_decref(mount);
	return 0;
}

static void judge(void)
{
	health_mount_judge(mount, NULL, judge_anew());
}

static void in_state(const char *name, json_int_t ms)
{
	answer_set(answer, "state", json_string(name));
	answer_set_number(answer, "state_ms", ms);
	judge();
}

static void mount__that_is_well(void **state)
{
	judge();
	assert_int_equal(judged.n, 0);
	in_state("connected", 0);
	assert_int_equal(judged.n, 0);
}

static void program__that_was_replaced(void **state)
{
	json_object_set_new(answer, "outdated", json_true());
	judge();
	assert_judged(VERDICT_NOTE, "from before an upgrade", "rmemfsctl upgrade /mnt/rmem");
}

static void room__there_was_none(void **state)
{
	json_object_set_new(answer, "no_room_ms", json_null());
	judge();
	assert_int_equal(judged.n, 0);
	json_object_set_new(answer, "no_room_ms", json_integer(HEALTH_NO_ROOM_MS - 1));
	judge();
	assert_judged(VERDICT_WARNING, "was told ENOSPC", "df /mnt/rmem; df -i /mnt/rmem");
	json_object_set_new(answer, "no_room_ms", json_integer(HEALTH_NO_ROOM_MS));
	judge();
	assert_int_equal(judged.n, 0);
}

static void connection__is_away(void **state)
{
	static const char *const states[] = {"silent", "connecting", "reconnecting"};

	for (unsigned i = 0; i < 3; i++) {
		in_state(states[i], HEALTH_AWAY_MS - 1);
		assert_judged(VERDICT_WARNING, "/mnt/rmem: ",
			"on the server: rmemfsctl health; from here: rmemfsctl doctor tcp:10.0.0.1:7470");
		in_state(states[i], HEALTH_AWAY_MS);
		assert_judged(VERDICT_FAILURE, " for 10.0 s", NULL);
		assert_string_equal(judged.findings[0].check, "connection");
	}
	answer_set(answer_part(answer, "session"), "last_loss", json_string("it was cut"));
	judge();
	assert_string_equal(judged.findings[0].cause, "it was cut");
	/* Why it does not come back counts for more. */
	answer_set(answer_part(answer, "session"), "last_attempt",
		json_string("server 10.0.0.1 does not accept key web-1"));
	judge();
	assert_string_equal(judged.findings[0].cause, "server 10.0.0.1 does not accept key web-1");
}

static void cpu__that_the_daemon_lacks(void **state)
{
	json_t *cpu = answer_part(answer, "cpu");

	answer_set_number(cpu, "recent_pauses", HEALTH_PAUSES - 1);
	answer_set_number(cpu, "longest_pause_ms", 2600);
	judge();
	assert_int_equal(judged.n, 0);
	answer_set_number(cpu, "recent_pauses", HEALTH_PAUSES);
	judge();
	assert_judged(VERDICT_WARNING,
		"/mnt/rmem: its daemon did not run 3 times within minutes, the longest for 2.6 s",
		"what stops process 23892");
	answer_set_number(cpu, "recent_pauses", 0);
	answer_set_number(cpu, "wait_ms", 9000);
	answer_set(cpu, "starved", json_true());
	judge();
	assert_judged(VERDICT_WARNING, "its daemon waited 90 % of the last 10 s for a CPU", "top");
	assert_string_equal(judged.findings[0].check, "cpu");
}

static void connection__other_states(void **state)
{
	in_state("lost", 0);
	assert_judged(VERDICT_FAILURE, "its files are lost", "umount /mnt/rmem, and mount again");
	in_state("stopped", 0);
	assert_judged(VERDICT_FAILURE, "I/O thread of its daemon", "kill -CONT 23892");
	in_state("renewing", 0);
	assert_judged(VERDICT_WARNING, "it begins another session", "rmemfsctl doctor");
}

static void daemon__without_answer(void **state)
{
	answer_set(mount, "answer", json_null());
	answer_set(mount, "error", json_string("its daemon is gone"));
	judge();
	assert_judged(VERDICT_FAILURE, "/mnt/rmem: no answer from its daemon", "rmemfsctl doctor");
	assert_string_equal(judged.findings[0].cause, "its daemon is gone");
	answer_set(mount, "allowed", json_false());
	judge();
	assert_judged(VERDICT_UNKNOWN, "may not ask its daemon", "rmemfs-monitor");
}

static void requests__wait_long(void **state)
{
	answer_set_number(answer, "oldest_request_ms", HEALTH_LATE_MS - 1);
	judge();
	assert_int_equal(judged.n, 0);
	answer_set_number(answer, "oldest_request_ms", HEALTH_LATE_MS);
	judge();
	assert_judged(VERDICT_WARNING, "a request has waited for 5.0 s", "status /mnt/rmem");
	answer_set_number(answer, "oldest_request_ms", HEALTH_HUNG_MS - 1);
	judge();
	assert_judged(VERDICT_WARNING, "59.9 s", NULL);
	answer_set_number(answer, "oldest_request_ms", HEALTH_HUNG_MS);
	judge();
	assert_judged(VERDICT_FAILURE, "60.0 s", NULL);
}

static void requests__name_the_oldest(void **state)
{
	answer_set_number(answer, "oldest_request_ms", 7000);
	answer_set(answer, "requests",
		json_pack("[{s:s, s:i, s:s}, {s:s, s:i, s:s}]", "operation", "read", "age_ms", 20,
			"waits_for", "nothing", "operation", "write", "age_ms", 7000, "waits_for",
			"pages"));
	judge();
	assert_judged(VERDICT_WARNING, "a request (write) has waited for 7.0 s", NULL);
	assert_has(judged.findings[0].cause, "it waits for free pages of the export");
}

/* The connection is the cause then. */
static void requests__count_with_a_connection_only(void **state)
{
	answer_set_number(answer, "oldest_request_ms", HEALTH_HUNG_MS);
	in_state("silent", 4000);
	assert_judged(VERDICT_WARNING, "its server is silent for 4.0 s", NULL);
}

static void transport__verbs_would_lead_there(void **state)
{
	health_mount_judge(mount, "mlx5_0", judge_anew());
	assert_judged(VERDICT_WARNING, "on tcp, and the RDMA device mlx5_0 leads to its server",
		"rmemfsctl doctor 10.0.0.1:/data says more");
	assert_has(judged.findings[0].cause, "it has not looked yet");
	answer_set(answer, "no_verbs", json_string("the server does not listen on verbs"));
	health_mount_judge(mount, "mlx5_0", judge_anew());
	assert_has(judged.findings[0].cause, "the server does not listen on verbs");
	answer_set(answer, "transport", json_string("verbs"));
	health_mount_judge(mount, "mlx5_0", judge_anew());
	assert_int_equal(judged.n, 0);
}

static void place__is_quoted_in_remedies(void **state)
{
	answer_set(mount, "mountpoint", json_string("/mnt/a; rm -r b"));
	in_state("lost", 0);
	assert_judged(VERDICT_FAILURE, "/mnt/a; rm", "umount '/mnt/a; rm -r b', and");
}

/* Any program may listen at the socket. */
/* The answer tells no names: there are words in their stead. */
static void names__that_are_not_told(void **state)
{
	answer_set(mount, "mountpoint", json_null());
	answer_set(mount, "source", json_null());
	answer_set(answer, "server", json_null());
	in_state("silent", HEALTH_AWAY_MS);
	assert_judged(VERDICT_FAILURE, "mount 42: its server is silent for 10.0 s",
		"on the server: rmemfsctl health; from here: rmemfsctl doctor HOST");
	assert_has(judged.findings[0].cause, "but the server does not answer");
	in_state("lost", 0);
	assert_judged(VERDICT_FAILURE, "mount 42: its files are lost", "umount MOUNTPOINT, and");
	in_state("connected", 0);
	health_mount_judge(mount, "mlx5_0", judge_anew());
	assert_judged(VERDICT_WARNING, "mount 42: it is on tcp", "rmemfsctl doctor HOST:/EXPORT ");
	answer_set(mount, "answer", json_null());
	judge();
	assert_judged(VERDICT_FAILURE, "mount 42: no answer from its daemon", NULL);
	answer_set(mount, "allowed", json_false());
	judge();
	assert_judged(VERDICT_UNKNOWN, "mount 42: this user may not ask its daemon", NULL);
	assert_string_equal(judged.findings[0].cause, "its socket is for others");
}

static void answer__of_other_kinds(void **state)
{
	static const char *const texts[] = {"{}", "{\"answer\":{}}",
		"{\"answer\":{\"state\":7,\"requests\":{},\"session\":[],\"server\":null}}",
		"{\"answer\":{\"oldest_request_ms\":-5,\"requests\":[3,null]}}"};

	for (unsigned i = 0; i < 4; i++) {
		json_t *other = answer_read(texts[i]);

		health_mount_judge(other, "mlx5_0", judge_anew());
		json_decref(other);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(program__that_was_replaced),
		CASE(room__there_was_none),
		CASE(mount__that_is_well),
		CASE(connection__is_away),
		CASE(cpu__that_the_daemon_lacks),
		CASE(connection__other_states),
		CASE(daemon__without_answer),
		CASE(requests__wait_long),
		CASE(requests__name_the_oldest),
		CASE(requests__count_with_a_connection_only),
		CASE(transport__verbs_would_lead_there),
		CASE(place__is_quoted_in_remedies),
		CASE(names__that_are_not_told),
		CASE(answer__of_other_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
