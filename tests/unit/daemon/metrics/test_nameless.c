/* Answers without names: what was in them otherwise is the same, and so is the judgement. */
#include "tests/unit/daemon/ctl/survey/answers.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/ctl/survey/health_mount.h"
#include "daemon/ctl/survey/health_server.h"
#include "daemon/metrics/nameless.h"

static json_t *nameless;

static const char *text_of(json_t *root)
{
	static char *text;

	free(text);
	text = json_dumps(root, 0);
	assert_non_null(text);
	return text;
}

static void assert_without(const char *text, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (strstr(text, names[i]))
			fail_msg("'%s' in %s", names[i], text);
}

static int tear_down(void **state)
{
	json_decref(nameless);
	nameless = NULL;
	return 0;
}

static void configured__without_names(void **state)
{
	json_t *list = json_pack("[{s:s, s:s, s:b, s:s, s:s, s:s}]", "kind", "mount", "name",
		"rmemfs@web.service", "unit", 1, "state", "failed", "result", "exit-code", "status",
		"no server at 10.0.0.1");

	nameless = nameless_copy(list);
	json_decref(list);
	assert_string_equal(text_of(nameless),
		"[{\"kind\": \"mount\", \"name\": null, \"unit\": true, \"state\": \"failed\", "
		"\"result\": \"exit-code\", \"status\": null}]");
}

static void mounts__without_places(void **state)
{
	static const char *const names[] = {"/mnt", "10.0.0.1", ":/data"};
	json_t *list = json_pack("[o]", answer_read(mount_answer)), *answer;

	nameless = nameless_copy(list);
	assert_without(text_of(nameless), names, 3);
	answer = answer_part(json_array_get(nameless, 0), "answer");
	assert_string_equal(json_string_value(answer_part(answer, "transport")), "tcp");
	assert_string_equal(json_string_value(answer_part(answer, "state")), "connected");
	assert_int_equal(
		json_integer_value(answer_part(json_array_get(nameless, 0), "connection")), 42);
	assert_true(json_equal(answer_part(answer, "operations"),
		answer_part(answer_part(json_array_get(list, 0), "answer"), "operations")));
	json_decref(list);
}

static void server__without_clients_users_and_keys(void **state)
{
	static const char *const names[] = {
		"node7", "10.0.0.1", "test-6", "1234", "/dev/shm", "/run"};
	json_t *status = answer_read(server_answer), *export;

	answer_set(json_array_get(answer_part(status, "exports"), 0), "contested",
		json_pack("[{s:i, s:s, s:i}]", "inode", 7, "path", "/test/node7", "ms", 9000));
	answer_set(json_array_get(answer_part(status, "exports"), 0), "snapshot",
		json_pack("{s:s, s:s}", "state", "failed", "dir", "/run/test"));
	nameless = nameless_copy(status);
	assert_without(text_of(nameless), names, 6);
	export = json_array_get(answer_part(nameless, "exports"), 0);
	assert_string_equal(json_string_value(answer_part(export, "name")), "data");
	assert_int_equal(json_array_size(answer_part(export, "quotas")), 3);
	assert_string_equal(
		json_string_value(answer_part(nameless, "incarnation")), "1795738869284586596");
	json_decref(status);
}

/* A later version tells more. */
static void texts__that_are_not_known(void **state)
{
	json_t *answer =
		json_loads("{\"exports\":[{\"name\":\"a\",\"clients\":[{\"name\":\"b1\"}]}],"
			   "\"name\":\"b2\",\"new\":[\"b3\",[\"b4\"],{\"name\":\"b5\"}],"
			   "\"listen\":{\"state\":\"b6\"},\"n\":[1,true,null,2.5]}",
			0, NULL);
	json_t *expected =
		json_loads("{\"exports\":[{\"name\":\"a\",\"clients\":[{\"name\":null}]}],"
			   "\"name\":null,\"new\":[null,[null],{\"name\":null}],"
			   "\"listen\":{\"state\":null},\"n\":[1,true,null,2.5]}",
			0, NULL);

	assert_non_null(answer);
	assert_non_null(expected);
	nameless = nameless_copy(answer);
	assert_true(json_equal(nameless, expected));
	json_decref(answer);
	json_decref(expected);
	assert_null(nameless_copy(NULL));
}

/* All findings that there can be name nobody. */
static void findings__name_nobody(void **state)
{
	static const char *const names[] = {
		"/mnt", "10.0.0.1", "node7", "1234", "/snap", "it was cut"};
	const struct health_terms terms = {.now_s = 1800000000};
	json_t *mount = answer_read(mount_answer), *status = answer_read(server_answer);
	json_t *answer = answer_part(mount, "answer");
	json_t *export = json_array_get(answer_part(status, "exports"), 0);
	json_t *quota = json_array_get(answer_part(export, "quotas"), 0);
	json_t *session = json_array_get(answer_part(status, "sessions"), 0);
	struct report *r = judge_anew();

	answer_set(answer, "state", json_string("reconnecting"));
	answer_set_number(answer, "state_ms", 20000);
	answer_set(answer_part(answer, "session"), "last_loss", json_string("it was cut"));
	nameless = nameless_copy(mount);
	health_mount_judge(nameless, "mlx5_0", r);
	json_decref(nameless);
	answer_set_number(quota, "inodes", 10);
	answer_set_number(session, "silent_ms", 20000);
	answer_set(export, "snapshot", json_pack("{s:s, s:s}", "state", "failed", "dir", "/snap"));
	answer_set(export, "contested",
		json_pack("[{s:i, s:s, s:i}]", "inode", 7, "path", "/mnt/node7", "ms", 9000));
	nameless = nameless_copy(status);
	health_server_judge(nameless, &terms, r);
	assert_int_equal(r->n, 6);
	for (unsigned i = 0; i < r->n; i++) {
		assert_without(r->findings[i].found, names, 6);
		assert_without(r->findings[i].cause, names, 6);
		assert_without(r->findings[i].remedy, names, 6);
	}
	json_decref(mount);
	json_decref(status);
}

#define CASE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(configured__without_names),
		CASE(mounts__without_places),
		CASE(server__without_clients_users_and_keys),
		CASE(texts__that_are_not_known),
		CASE(findings__name_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
