/* test_openmetrics.c - figures that are more than one member of a daemon's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics/openmetrics.h"

#define CASE(name) cmocka_unit_test(name)

/* Takes the list over. */
static char *text_with(json_t *mounts, const char *server, unsigned hidden)
{
	json_t *root = json_loads(server, 0, NULL);
	const struct observed seen = {.mounts = mounts,
		.server = root,
		.hidden = hidden,
		.missing = 2,
		.server_wanted = true};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(root);
	assert_non_null(out);
	openmetrics_write(out, &seen);
	assert_int_equal(fclose(out), 0);
	json_decref(mounts);
	json_decref(root);
	return text;
}

/* Writes the metrics of a server that answers so. */
static char *text_of(const char *server, unsigned hidden)
{
	return text_with(json_array(), server, hidden);
}

static void expect(const char *server, const char *sample)
{
	char *text = text_of(server, 3), line[256];

	snprintf(line, sizeof(line), "\n%s\n", sample);
	if (!strstr(text, line))
		fail_msg("no %s in\n%s", sample, text);
	free(text);
}

static void hidden__mounts_are_counted(void **state)
{
	expect("{}", "rmemfs_mounts_hidden 3");
	expect("{}", "rmemfs_mounts_missing 2");
}

static void server_counter__has_its_suffix(void **state)
{
	expect("{\"refused\": 7}", "rmemfs_server_refused_total 7");
	expect("{\"uptime_ms\": 1500}", "rmemfs_server_seconds 1.5");
}

static void keys__without_names(void **state)
{
	static const char server[] =
		"{\"keys\": [{\"key\": \"a\", \"unused_ms\": 2591999999},"
		"{\"key\": \"b\", \"unused_ms\": 2592000000}, {\"key\": \"c\"}]}";
	char *text = text_of(server, 0);

	expect(server, "rmemfs_server_keys 3");
	expect(server, "rmemfs_server_keys_unused 1");
	assert_null(strstr(text, "key=\"a\""));
	free(text);
}

/* Anybody may offer a key of any name. */
static void refused__keys_of_clients_alone(void **state)
{
	static const char server[] =
		"{\"refused_keys\": [{\"key\": \"a\", \"known\": true, \"recent\": 2},"
		"{\"key\": \"b\", \"known\": false, \"recent\": 4},"
		"{\"key\": \"c\", \"known\": false, \"recent\": 8}],"
		"\"sessions\": [{\"key\": \"b\"}]}";

	expect(server, "rmemfs_server_recent_refused_clients 6");
}

static void late_recalls__of_each_export(void **state)
{
	static const char server[] =
		"{\"exports\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"sessions\": ["
		"{\"export\": \"a\", \"late_recalls\": {\"count\": 9, \"recent\": 2}},"
		"{\"export\": \"a\", \"late_recalls\": {\"count\": 1, \"recent\": 1}}]}";

	expect(server, "rmemfs_export_recent_late_recalls{export=\"a\"} 3");
	expect(server, "rmemfs_export_recent_late_recalls{export=\"b\"} 0");
}

static void mount__waits_for_a_cpu_and_for_mounts(void **state)
{
	json_t *mounts = json_loads(
		"[{\"connection\": 5, \"answer\": {\"cpu\": {\"total_wait_ms\": 1500,"
		"\"late_ms\": 20}, \"requests\": [{\"for_mounts\": true}, {\"for_mounts\": false},"
		"{}, {\"for_mounts\": true}]}}]",
		0, NULL);
	char *text = text_with(mounts, "{}", 0);

	assert_non_null(strstr(text, "\nrmemfs_mount_cpu_wait_seconds_total{mount=\"5\"} 1.5\n"));
	assert_non_null(strstr(text, "\nrmemfs_mount_late_seconds{mount=\"5\"} 0.02\n"));
	assert_non_null(strstr(text, "\nrmemfs_mount_waiting_for_mounts{mount=\"5\"} 2\n"));
	free(text);
}

static void sessions__of_each_export(void **state)
{
	static const char server[] =
		"{\"exports\": [{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}],"
		" \"sessions\": [{\"export\": \"a\", \"silent_ms\": 500},"
		"  {\"export\": \"b\", \"silent_ms\": 9000}, {\"export\": \"a\", \"silent_ms\": 2500},"
		"  {\"export\": \"a\", \"silent_ms\": 100}]}";

	expect(server, "rmemfs_export_sessions{export=\"a\"} 3");
	expect(server, "rmemfs_export_sessions{export=\"b\"} 1");
	expect(server, "rmemfs_export_sessions{export=\"c\"} 0");
	expect(server, "rmemfs_export_silence_seconds{export=\"a\"} 2.5");
	expect(server, "rmemfs_export_silence_seconds{export=\"b\"} 9");
	expect(server, "rmemfs_export_silence_seconds{export=\"c\"} 0");
}

static void sharing__of_each_mount_and_export(void **state)
{
	static const char server[] =
		"{\"exports\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"sessions\": ["
		" {\"export\": \"a\", \"shared\": true, \"keeps_out\": false},"
		" {\"export\": \"a\", \"shared\": true},"
		" {\"export\": \"b\", \"shared\": false, \"keeps_out\": true}]}";
	json_t *mounts = json_loads(
		"[{\"connection\": 5, \"answer\": {\"options\": {\"share\": true}, \"sharing\":"
		" {\"begun\": 3, \"ended\": 2, \"under_way\": false, \"keep_out\": 4}}},"
		" {\"connection\": 6, \"answer\": {\"options\": {\"share\": false}}}]",
		0, NULL);
	char *text = text_with(mounts, "{}", 0);

	expect(server, "rmemfs_export_sharing_sessions{export=\"a\"} 2");
	expect(server, "rmemfs_export_sharing_sessions{export=\"b\"} 0");
	expect(server, "rmemfs_export_keep_out_sessions{export=\"a\"} 0");
	expect(server, "rmemfs_export_keep_out_sessions{export=\"b\"} 1");
	assert_non_null(strstr(text, "\nrmemfs_mount_sharing{mount=\"5\"} 1\n"));
	assert_non_null(strstr(text, "\nrmemfs_mount_sharing{mount=\"6\"} 0\n"));
	assert_non_null(strstr(text, "\nrmemfs_mount_sharing_begun_total{mount=\"5\"} 3\n"));
	assert_non_null(strstr(text, "\nrmemfs_mount_sharing_ended_total{mount=\"5\"} 2\n"));
	assert_non_null(strstr(text, "\nrmemfs_mount_keep_out_files{mount=\"5\"} 4\n"));
	free(text);
}

static void lease_wait__is_the_longest(void **state)
{
	static const char server[] =
		"{\"exports\": [{\"name\": \"a\", \"contested\": [{\"ms\": 250}, {\"ms\": 4000},"
		"  {\"ms\": 1}]}, {\"name\": \"b\", \"contested\": []}]}";

	expect(server, "rmemfs_export_lease_wait_seconds{export=\"a\"} 4");
	expect(server, "rmemfs_export_lease_wait_seconds{export=\"b\"} 0");
}

static void quota__is_the_fullest_of_bytes_and_inodes(void **state)
{
	static const char server[] =
		"{\"exports\": ["
		" {\"name\": \"bytes\", \"quotas\": [{\"used\": 100, \"limit\": 0},"
		"  {\"used\": 75, \"limit\": 100, \"inodes\": 1, \"max_inodes\": 10}]},"
		" {\"name\": \"inodes\", \"quotas\": [{\"used\": 75, \"limit\": 100,"
		"  \"inodes\": 7, \"max_inodes\": 8}, {\"used\": 1, \"limit\": 100}]},"
		" {\"name\": \"none\", \"quotas\": []}]}";

	expect(server, "rmemfs_export_quota_ratio{export=\"bytes\"} 0.75");
	expect(server, "rmemfs_export_quota_ratio{export=\"inodes\"} 0.875");
	expect(server, "rmemfs_export_quota_ratio{export=\"none\"} 0");
}

static void snapshot__failed_or_not(void **state)
{
	static const char server[] =
		"{\"exports\": [{\"name\": \"a\", \"snapshot\": {\"state\": \"failed\"}},"
		" {\"name\": \"b\", \"snapshot\": {\"state\": \"done\"}},"
		" {\"name\": \"c\", \"snapshot\": null}]}";

	expect(server, "rmemfs_export_snapshot_failed{export=\"a\"} 1");
	expect(server, "rmemfs_export_snapshot_failed{export=\"b\"} 0");
	expect(server, "rmemfs_export_snapshot_failed{export=\"c\"} 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(hidden__mounts_are_counted),
		CASE(server_counter__has_its_suffix),
		CASE(keys__without_names),
		CASE(refused__keys_of_clients_alone),
		CASE(late_recalls__of_each_export),
		CASE(mount__waits_for_a_cpu_and_for_mounts),
		CASE(sessions__of_each_export),
		CASE(sharing__of_each_mount_and_export),
		CASE(lease_wait__is_the_longest),
		CASE(quota__is_the_fullest_of_bytes_and_inodes),
		CASE(snapshot__failed_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
