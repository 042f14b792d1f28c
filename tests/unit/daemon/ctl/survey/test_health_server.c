/* Whether a server is well: each kind of finding, and each threshold from both sides. */
#include "tests/unit/daemon/ctl/survey/answers.h"

#include <stdio.h>

#include "daemon/ctl/survey/health_server.h"
#include "daemon/ctl/survey/health_waits.h"

#define MIB (INT64_C(1) << 20)

enum { NOW_S = 1800000000, LEASE_MS = 10000 };

static json_t *server, *export, *session;

static int set_up(void **state)
{
	server = answer_read(server_answer);
	export = json_array_get(answer_part(server, "exports"), 0);
	session = json_array_get(answer_part(server, "sessions"), 0);
	assert_int_equal(json_integer_value(answer_part(server, "lease_ms")), LEASE_MS);
	return 0;
}

static int tear_down(void **state)
{
	json_decref(server);
	return 0;
}

static void judge_by(unsigned snapshot_max)
{
	const struct health_terms terms = {.now_s = NOW_S, .snapshot_max = snapshot_max};

	health_server_judge(server, &terms, judge_anew());
}

static void judge(void)
{
	judge_by(0);
}

static void assert_well(void)
{
	judge();
	assert_int_equal(judged.n, 0);
}

static void server__that_is_well(void **state)
{
	assert_well();
}

/* ---- how full it is -------------------------------------------------------------------------- */

/* The member has these values, of 1000, and its finding these verdicts. */
static void assert_levels(
	json_t *object, const char *key, json_int_t unit, const char *check, const char *remedy)
{
	static const struct {
		json_int_t used;
		enum verdict verdict;
	} levels[] = {{800, VERDICT_NOTE}, {899, VERDICT_NOTE}, {900, VERDICT_WARNING},
		{949, VERDICT_WARNING}, {950, VERDICT_FAILURE}, {1000, VERDICT_FAILURE},
		{1200, VERDICT_FAILURE}};

	answer_set_number(object, key, 799 * unit);
	assert_well();
	for (unsigned i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		char share[32];

		answer_set_number(object, key, levels[i].used * unit);
		judge();
		snprintf(share, sizeof(share), ": %d %% of its ", (int)levels[i].used / 10);
		assert_judged(levels[i].verdict, share, remedy);
		assert_string_equal(judged.findings[0].check, check);
	}
}

static void memory__at_each_level(void **state)
{
	answer_set_number(export, "bytes", 1000 * MIB);
	assert_levels(export, "used", MIB, "memory", "restart the server");
	assert_has(judged.findings[0].found, "export data: 120 % of its 1000MiB of memory");
}

/* Mounts give it back when somebody needs it. */
static void memory__that_is_lent_is_free(void **state)
{
	answer_set_number(export, "bytes", 1000 * MIB);
	answer_set_number(export, "free", 0);
	answer_set_number(export, "granted", 900 * MIB);
	answer_set_number(export, "dirty", 100 * MIB);
	assert_well();
}

static void inodes__at_each_level(void **state)
{
	answer_set_number(export, "max_inodes", 1000);
	assert_levels(export, "files", 1, "inodes", "in server.conf: rmemfsctl reload");
	assert_has(judged.findings[0].found, "of its 1000 inodes are in use");
	answer_set_number(export, "max_inodes", 0);
	assert_well();
}

/* The part that is kept for operations that give memory back counts for nothing. */
static void metadata__at_each_level(void **state)
{
	json_t *metadata = answer_part(export, "metadata");

	for (json_int_t used = 799; used <= 1000; used++) {
		answer_set_number(metadata, "used", used);
		answer_set_number(metadata, "left", 1000 - used);
		judge();
		if (used < 800)
			assert_int_equal(judged.n, 0);
		else
			assert_judged(used >= 950   ? VERDICT_FAILURE
				      : used >= 900 ? VERDICT_WARNING
						    : VERDICT_NOTE,
				"of metadata are in use", "metadata_reserve");
	}
	assert_has(judged.findings[0].found, "export data: 100 % of its 1000B of metadata");
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static void quota__near_its_limit(void **state)
{
	json_t *quota = json_array_get(answer_part(export, "quotas"), 0);

	answer_set_number(quota, "limit", 1000);
	answer_set_number(quota, "used", 800);
	answer_set_number(quota, "reserved", 99);
	assert_well();
	answer_set_number(quota, "reserved", 100);
	judge();
	assert_judged(VERDICT_WARNING, "export data: user 1234 has 90 % of its quota",
		"rmemfsctl reload");
	answer_set_number(quota, "used", 0);
	answer_set_number(quota, "inodes", 9);
	judge();
	assert_judged(VERDICT_WARNING, "user 1234 has 90 %", NULL);
}

static void quota__the_worst_of_several(void **state)
{
	json_t *quotas = answer_part(export, "quotas");

	for (size_t i = 0; i < json_array_size(quotas); i++) {
		answer_set_number(json_array_get(quotas, i), "limit", 100);
		answer_set_number(json_array_get(quotas, i), "used", 90 + (json_int_t)i);
	}
	judge();
	assert_judged(VERDICT_WARNING, "group 0 has 92 % of its quota, and 2 more", NULL);
}

/* ---- lost memory, snapshots ------------------------------------------------------------------ */

static void lost__regions(void **state)
{
	answer_set_number(export, "lost_regions", 1);
	judge();
	assert_judged(
		VERDICT_FAILURE, "export data: 1 of its 1 regions have lost bytes", "copy all");
}

static void snapshot__that_failed(void **state)
{
	answer_set(export, "snapshot", json_pack("{s:s, s:s}", "state", "done", "dir", "/srv/a"));
	assert_well();
	answer_set(export, "snapshot", json_pack("{s:s, s:s}", "state", "failed", "dir", "/srv/a"));
	judge();
	assert_judged(VERDICT_WARNING, "the last snapshot, to /srv/a, has failed", "take another");
}

static void snapshot__of_an_age(void **state)
{
	answer_set(export, "last_snapshot",
		json_pack("{s:I}", "completed", (json_int_t)NOW_S - 24 * 3600 + 1));
	judge_by(24);
	assert_int_equal(judged.n, 0);
	answer_set(export, "last_snapshot",
		json_pack("{s:I}", "completed", (json_int_t)NOW_S - 24 * 3600));
	judge_by(24);
	assert_judged(VERDICT_WARNING, "its last snapshot is 24 hours old", "by a timer");
	assert_well();
	answer_set(export, "last_snapshot", json_null());
	judge_by(24);
	assert_judged(VERDICT_WARNING, "has made no snapshot of it", "by a timer");
	/* A key that sees its own mounts alone is not told of snapshots. */
	json_object_del(export, "last_snapshot");
	judge_by(24);
	assert_int_equal(judged.n, 0);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Only a process that is known to be stopped is to be told anything. */
static void assert_blames_no_process(void)
{
	for (unsigned i = 0; i < judged.n; i++)
		assert_null(strstr(judged.findings[i].remedy, "kill"));
}

static void contest(json_int_t ms)
{
	answer_set(export, "contested",
		json_pack("[{s:i, s:I}, {s:i, s:I}]", "inode", 8, "ms", (json_int_t)3, "inode", 9,
			"ms", ms));
	judge();
}

/* One finding, of a holder of which that is known. */
static void assert_holder(const char *cause, const char *remedy)
{
	contest(HEALTH_RECALL_MS);
	assert_among(VERDICT_WARNING, "others have waited 2.0 s", remedy);
	for (unsigned i = 0; i < judged.n; i++)
		if (strcmp(judged.findings[i].check, "recalls") == 0)
			assert_has(judged.findings[i].cause, cause);
}

static void set_recent(const char *key, json_int_t n)
{
	answer_set_number(answer_part(session, key), "recent", n);
}

/* ms: since the last. */
static void refuse_key(const char *key, bool known, json_int_t ms)
{
	answer_set(server, "refused_keys",
		json_pack("[{s:s, s:s, s:s, s:b, s:i, s:i, s:I}]", "key", key, "host",
			"tcp 10.0.0.2", "reason", "no such key", "known", (int)known, "count", 20,
			"recent", 20, "ms", ms));
}

static void recalls__and_what_is_known_of_the_holder(void **state)
{
	answer_set_number(session, "recalls", 1);
	assert_holder("session 1 of node7:/mnt/rmem (pid 23892): it is connected",
		"rmemfsctl status MOUNTPOINT");
	assert_blames_no_process();
	set_recent("reconnects", HEALTH_RECONNECTS);
	assert_holder("it lost its connection 3 times", "checks the path and its MTU");
	assert_blames_no_process();
	answer_set_number(session, "silent_ms", 2000);
	assert_holder("nothing was heard of it for 2.0 s", "rmemfsctl evict 1");
	assert_blames_no_process();
	answer_set(session, "state", json_string("disconnected"));
	assert_holder("its connection is gone", "rmemfsctl evict 1");
	assert_blames_no_process();
	refuse_key("test-6qpp", false, 1000);
	assert_holder("its connection is gone: key test-6qpp is refused (20 times)",
		"copy the server's file over the client's");
	assert_blames_no_process();
	answer_set(session, "state", json_string("active"));
	answer_set(session, "stopped", json_true());
	answer_set_number(session, "pid", 77);
	assert_holder("its process 77 is stopped", "kill -CONT 77");
}

/* Others have nothing to give back. */
static void recalls__of_other_exports_and_sessions(void **state)
{
	answer_set(session, "stopped", json_true());
	contest(HEALTH_RECALL_MS);
	assert_judged(VERDICT_WARNING, "others have waited", "rmemfsctl who EXPORT 9");
	answer_set_number(session, "recalls", 1);
	answer_set(session, "export", json_string("other"));
	contest(HEALTH_RECALL_MS);
	assert_judged(VERDICT_WARNING, "others have waited", "rmemfsctl who EXPORT 9");
}

static void late__again_and_again(void **state)
{
	answer_set_number(answer_part(session, "late_recalls"), "count", 40);
	answer_set_number(answer_part(session, "late_recalls"), "longest_ms", 2600);
	set_recent("late_recalls", HEALTH_LATE_RECALLS - 1);
	assert_well();
	set_recent("late_recalls", HEALTH_LATE_RECALLS);
	judge();
	assert_judged(VERDICT_WARNING,
		"gave files back late 3 times within minutes, the latest "
		"after 2.6 s",
		"did not run for");
	assert_blames_no_process();
}

static void unsteady__connections(void **state)
{
	set_recent("reconnects", HEALTH_RECONNECTS - 1);
	assert_well();
	set_recent("reconnects", HEALTH_RECONNECTS);
	judge();
	assert_judged(VERDICT_WARNING, "(pid 23892) lost its connection 3 times", "MTU");
}

/* It comes first, and then nobody else is blamed. */
static void cpu__that_the_server_lacks(void **state)
{
	json_t *cpu = answer_part(server, "cpu");

	answer_set_number(cpu, "wait_ms", 9800);
	assert_well();
	answer_set(cpu, "starved", json_true());
	answer_set_number(session, "recalls", 1);
	set_recent("late_recalls", HEALTH_LATE_RECALLS);
	set_recent("reconnects", HEALTH_RECONNECTS);
	contest(2 * LEASE_MS);
	assert_int_equal(judged.n, 2);
	assert_has(judged.findings[0].found, "server: it waited 98 % of the last 10 s for a CPU");
	assert_has(judged.findings[0].remedy, "CPUWeight=");
	assert_has(judged.findings[1].cause, "the server itself gets too little CPU; session 1");
	assert_int_equal(judged.worst, VERDICT_WARNING);
	answer_set(cpu, "throttled", json_true());
	judge();
	assert_has(judged.findings[0].found, "its control group is throttled: see CPUQuota=");
	assert_has(judged.findings[0].remedy, "/proc/23784/cgroup");
}

/* A stranger may offer any key: that is a note. */
static void refused__keys(void **state)
{
	refuse_key("web-1", false, HEALTH_REFUSED_MS);
	assert_well();
	refuse_key("web-1", false, HEALTH_REFUSED_MS - 1);
	judge();
	assert_judged(VERDICT_NOTE, "server: key web-1, from tcp 10.0.0.2, is refused: 20 times",
		"rmemfsctl keycheck");
	refuse_key("web-1", true, 1000);
	judge();
	assert_judged(VERDICT_WARNING, "the last 1.0 s ago", "copy the server's file");
	refuse_key("test-6qpp", false, 1000);
	judge();
	assert_judged(VERDICT_WARNING, "key test-6qpp", NULL);
	answer_set(session, "state", json_string("disconnected"));
	answer_set_number(session, "silent_ms", LEASE_MS);
	judge();
	assert_among(VERDICT_WARNING, "is not connected", "copy the server's file");
}

static void recalls__that_take_long(void **state)
{
	contest(HEALTH_RECALL_MS - 1);
	assert_int_equal(judged.n, 0);
	contest(HEALTH_RECALL_MS);
	assert_judged(VERDICT_WARNING, "others have waited 2.0 s", "rmemfsctl who EXPORT 9");
	contest(2 * LEASE_MS - 1);
	assert_judged(VERDICT_WARNING, "19.9 s", NULL);
	contest(2 * LEASE_MS);
	assert_judged(VERDICT_FAILURE, "20.0 s", NULL);
}

static void with_session(const char *name, json_int_t silent_ms)
{
	answer_set(session, "state", json_string(name));
	answer_set_number(session, "silent_ms", silent_ms);
	judge();
}

static void sessions__that_are_silent(void **state)
{
	with_session("active", HEALTH_SILENT_MS - 1);
	assert_int_equal(judged.n, 0);
	with_session("active", HEALTH_SILENT_MS);
	assert_judged(VERDICT_WARNING,
		"session 1 of node7:/mnt/rmem (pid 23892) is connected, and silent",
		"rmemfsctl evict");
	assert_blames_no_process();
	answer_set(session, "stopped", json_true());
	answer_set_number(session, "pid", 77);
	judge();
	assert_judged(VERDICT_WARNING, "is connected, and silent", "kill -CONT 77");
	answer_set(session, "stopped", json_false());
	with_session("disconnected", LEASE_MS - 1);
	assert_int_equal(judged.n, 0);
	with_session("disconnected", LEASE_MS);
	assert_judged(VERDICT_WARNING, "is not connected, for 10.0 s", NULL);
	with_session("restored", LEASE_MS);
	assert_judged(VERDICT_WARNING, "is not connected", NULL);
	with_session("ending", LEASE_MS);
	assert_int_equal(judged.n, 0);
	answer_set(session, "waits_for", json_pack("[i]", 7));
	judge();
	assert_judged(
		VERDICT_WARNING, "is to end, and its process still has the memory", "kill -9");
}

static void sessions__the_worst_of_many(void **state)
{
	json_t *sessions = answer_part(server, "sessions");

	answer_set_number(session, "silent_ms", 6000);
	for (int i = 2; i < 1000; i++) {
		json_t *copy = json_deep_copy(session);

		answer_set_number(copy, "id", i);
		answer_set_number(copy, "silent_ms", 5000 + i);
		json_array_append_new(sessions, copy);
	}
	judge();
	assert_judged(VERDICT_WARNING, "session 1 of", NULL);
	assert_has(judged.findings[0].found, "for 6.0 s, and 998 more");
}

static void transport__tcp_beside_verbs(void **state)
{
	json_array_append_new(answer_part(server, "listen"), json_string("verbs:10.0.0.1:7470"));
	judge();
	assert_judged(VERDICT_NOTE, "1 of its 1 sessions are on tcp", "rmemfsctl doctor");
}

/* ---- other answers --------------------------------------------------------------------------- */

static void key__that_sees_its_own_mounts(void **state)
{
	static const char *const untold[] = {"counters", "snapshot", "last_snapshot", "leases",
		"contested", "contested_locks", "quotas", "unlisted"};

	for (unsigned i = 0; i < sizeof(untold) / sizeof(*untold); i++)
		json_object_del(export, untold[i]);
	json_object_set_new(server, "key", json_string("test-6qpp"));
	judge();
	assert_judged(VERDICT_NOTE, "this key sees its own mounts alone", "\"status\"");
	answer_set_number(export, "used", json_integer_value(answer_part(export, "bytes")));
	judge();
	assert_among(VERDICT_FAILURE, "export data: 100 % of its", NULL);
}

/* The status tells no names: the findings are the same without them. */
static void names__that_are_not_told(void **state)
{
	json_t *quota = json_array_get(answer_part(export, "quotas"), 0);

	answer_set(quota, "user", json_null());
	answer_set_number(quota, "max_inodes", 1);
	answer_set_number(quota, "inodes", 1);
	judge();
	assert_judged(VERDICT_WARNING, "export data: a user has 100 % of its quota", NULL);
	json_object_del(quota, "user");
	answer_set(quota, "inodes", json_integer(0));
	answer_set(session, "client", json_null());
	with_session("active", HEALTH_SILENT_MS);
	judge();
	assert_judged(VERDICT_WARNING, "export data: session 1 is connected, and silent, for 5.0 s",
		NULL);
	with_session("active", 0);
	answer_set(export, "snapshot", json_pack("{s:s}", "state", "failed"));
	judge();
	assert_judged(
		VERDICT_WARNING, "export data: the last snapshot has failed", "rmemfsctl snapshot");
}

static void with_unused_key(size_t i, json_int_t days)
{
	answer_set_number(json_array_get(answer_part(server, "keys"), i), "unused_ms",
		days * 24 * 3600 * 1000);
}

static void keys__that_nobody_uses(void **state)
{
	with_unused_key(1, HEALTH_KEY_DAYS - 1);
	assert_well();
	with_unused_key(1, HEALTH_KEY_DAYS);
	judge();
	assert_judged(VERDICT_NOTE, "server: no client has used key old-k7q2 in 30 days",
		"take it out of /etc/rmemfs/keys/old.key: rmemfsctl reload");
	with_unused_key(0, HEALTH_KEY_DAYS + 1);
	judge();
	assert_judged(VERDICT_NOTE,
		"server: no client has used key test-6qpp in 31 days, and 1 more",
		"/etc/rmemfs/keys/test.key");
	/* The file is not told to clients, and no name on the status page. */
	answer_set(json_array_get(answer_part(server, "keys"), 0), "file", json_null());
	judge();
	assert_judged(VERDICT_NOTE, "key test-6qpp", "take it out of its file on the server");
	answer_set(json_array_get(answer_part(server, "keys"), 0), "key", json_null());
	judge();
	assert_judged(VERDICT_NOTE, "server: no client has used 2 of its keys in 30 days", NULL);
}

static void answer__of_other_kinds(void **state)
{
	static const char *const texts[] = {"{}", "{\"exports\":{},\"sessions\":3,\"store\":[]}",
		"{\"exports\":[null,7,{\"bytes\":-1,\"used\":9223372036854775807,\"quotas\":[[]]}]}",
		"{\"sessions\":[{\"channels\":[4]},[]],\"listen\":[null,{}]}",
		"{\"keys\":[null,{\"unused_ms\":9223372036854775807},{\"key\":[]}]}",
		"{\"refused_keys\":[null,{\"key\":3},{\"key\":\"a\"}]}",
		"{\"exports\":[{\"contested\":[{\"ms\":9999}]}]}",
		"{\"sessions\":[{\"recalls\":1,\"late_recalls\":[]}]}"};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		json_decref(server);
		server = answer_read(texts[i]);
		judge_by(1);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(server__that_is_well),
		CASE(memory__at_each_level),
		CASE(memory__that_is_lent_is_free),
		CASE(inodes__at_each_level),
		CASE(metadata__at_each_level),
		CASE(quota__near_its_limit),
		CASE(quota__the_worst_of_several),
		CASE(lost__regions),
		CASE(snapshot__that_failed),
		CASE(snapshot__of_an_age),
		CASE(recalls__that_take_long),
		CASE(recalls__and_what_is_known_of_the_holder),
		CASE(recalls__of_other_exports_and_sessions),
		CASE(late__again_and_again),
		CASE(unsteady__connections),
		CASE(refused__keys),
		CASE(cpu__that_the_server_lacks),
		CASE(sessions__that_are_silent),
		CASE(sessions__the_worst_of_many),
		CASE(transport__tcp_beside_verbs),
		CASE(key__that_sees_its_own_mounts),
		CASE(names__that_are_not_told),
		CASE(keys__that_nobody_uses),
		CASE(answer__of_other_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
