/* The lines and warnings that tell an admin of a table. */
#include "tests/unit/server/access_fixture.h"

#include "common/base/log.h"
#include "server/access/access_report.h"

static char warnings[4096];

static void collect(enum log_level level, const char *text)
{
	assert_int_equal(level, LOG_LEVEL_WARNING);
	strncat(warnings, text, sizeof(warnings) - strlen(warnings) - 1);
	strncat(warnings, "\n", sizeof(warnings) - strlen(warnings) - 1);
}

static const char *warnings_of(const struct server_config *config)
{
	struct access_table *table;

	if (access_table_new(config, NULL, &table, access_why, sizeof(access_why)))
		fail_msg("%s", access_why);
	warnings[0] = '\0';
	log_set_watcher(collect);
	access_report_warn(table, config);
	log_set_watcher(NULL);
	access_table_put(table);
	return warnings;
}

static const char *warnings_about(const char *text)
{
	struct server_config config;
	const char *said;

	access_read(text, &config);
	said = warnings_of(&config);
	server_config_fini(&config);
	return said;
}

static void print__each_client_with_its_keys(void **state)
{
	struct access_table *table;
	char *text = NULL, expected[2048];
	size_t size;
	FILE *to;

	access_add_key("web.key", "web-1", 1);
	access_add_key("web.key", "web-2", 2);
	table = access_table_of(
		"exports = ( { name = \"data\"; size = 4096; clients = ("
		"  { name = \"web\"; keys = \"@/web.key\"; hosts = [ \"10.0.0.0/24\", \"::1\" ] },"
		"  { name = \"any\"; insecure = true; sessions = 1; access = \"read-only\";"
		"    squash = \"all\"; anongid = 50 },"
		"  { name = \"lab\"; insecure = true; squash = \"root\" },"
		"  { name = \"watch\"; insecure = true; sessions = 2; access = \"status\" } ) },"
		"{ name = \"home\"; size = 4096 } ); local_access = \"none\"");
	to = open_memstream(&text, &size);
	assert_non_null(to);
	access_report_print(table, to);
	assert_int_equal(fclose(to), 0);
	snprintf(expected, sizeof(expected),
		"export 'data': client 'web' may read and write, with key web-1 (fingerprint %s) or "
		"web-2 (fingerprint %s) of %s/web.key, from 10.0.0.0/24, ::1\n"
		"export 'data': client 'any' may read, without a key, from any address; 1 session at "
		"a time; all users count as 65534:50\n"
		"export 'data': client 'lab' may read and write, without a key, from any address; "
		"root counts as 65534:65534\n"
		"export 'data': client 'watch' may ask for its state, without a key, from any "
		"address; 2 sessions at a time\n"
		"export 'home': nobody over tcp and verbs\n"
		"each export: over shm root and the server's user may not mount it\n",
		access_table_key(table, "web-1", 5)->proof.fingerprint,
		access_table_key(table, "web-2", 5)->proof.fingerprint, access_dir);
	assert_string_equal(text, expected);
	free(text);
	access_table_put(table);
}

static void warn__insecure_from_anywhere(void **state)
{
	static const struct {
		const char *hosts, *listen;
		bool warned;
	} cases[] = {
		{"", "tcp:127.0.0.1", true},
		{"hosts = \"0.0.0.0/0\"", "tcp:127.0.0.1", true},
		{"hosts = [ \"10.0.0.1\", \"::/0\" ]", "tcp:127.0.0.1", true},
		{"hosts = \"10.0.0.0/8\"", "tcp:127.0.0.1", false},
		{"", "shm:/x", false},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text),
			"exports = ( { name = \"a\"; size = 4096; clients = ( { name = \"any\"; "
			"insecure = true; access = \"read-only\"; %s } ) } ); listen = \"%s\"",
			cases[i].hosts, cases[i].listen);
		assert_string_equal(warnings_about(text),
			cases[i].warned
				? "export 'a': client 'any' is insecure and may come from any "
				  "address: anybody who reaches this server may read without a "
				  "key; name its addresses in hosts\n"
				: "");
	}
}

/* Only where keys are, and where verbs alone is. */
static void warn__all_without_tcp(void **state)
{
	static const struct {
		const char *protection, *listen;
		bool warned;
	} cases[] = {
		{"all", "\"verbs:127.0.0.1\"", true},
		{"best", "\"verbs:127.0.0.1\"", false},
		{"all", "[ \"verbs:127.0.0.1\", \"tcp:127.0.0.1\" ]", false},
		{"all", "\"shm:/x\"", false},
	};
	char text[512];

	access_add_key("all.key", "all-1", 7);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text),
			"exports = ( { name = \"a\"; size = 4096; protection = \"%s\"; clients = ( { "
			"name = \"w\"; keys = \"@/all.key\" } ) } ); listen = %s",
			cases[i].protection, cases[i].listen);
		assert_string_equal(warnings_about(text),
			cases[i].warned ? "export 'a' has protection = \"all\", and the server "
					  "listens at no tcp address: nobody can mount it over "
					  "verbs. Add tcp:HOST to listen, or take protection away\n"
					: "");
	}
}

static void print__demand(void **state)
{
	struct access_table *table;
	char *text = NULL;
	size_t size;
	FILE *to;

	access_add_key("demand.key", "demand-1", 8);
	table = access_table_of("exports = ( { name = \"a\"; size = 4096; protection = \"all\";"
				"clients = ( { name = \"w\"; keys = \"@/demand.key\" } ) } )");
	to = open_memstream(&text, &size);
	assert_non_null(to);
	access_report_print(table, to);
	assert_int_equal(fclose(to), 0);
	assert_non_null(strstr(text, "export 'a': all bytes are protected, so nobody can mount it "
				     "over verbs\n"));
	free(text);
	access_table_put(table);
}

#define CLIENT(name, file) "{ name = \"" name "\"; keys = \"@/" file "\" }"

static void warn__one_key_in_two_clients_of_an_export(void **state)
{
	access_add_key("a.key", "a-1", 1);
	access_add_key("a.key", "a-2", 2);
	access_add_key("b.key", "b-1", 3);
	access_add_key("ab.key", "a-2", 2);
	access_add_key("ab.key", "b-1", 3);
	assert_string_equal(
		warnings_about("exports = ( { name = \"x\"; size = 4096; clients = (" CLIENT("a",
			"a.key") ", " CLIENT("b", "b.key") ", " CLIENT("ab", "ab.key") ") } )"),
		"export 'x': key a-2 is of client 'a' and of client 'ab': the first one whose hosts "
		"have the peer's address counts\n"
		"export 'x': key b-1 is of client 'b' and of client 'ab': the first one whose hosts "
		"have the peer's address counts\n");
	/* At two exports a key may well have two names. */
	assert_string_equal(
		warnings_about("exports = ( { name = \"x\"; size = 4096; clients = (" CLIENT(
			"a", "a.key") ") }, { name = \"y\"; size = 4096; clients = (" CLIENT("b",
			"a.key") ") } )"),
		"");
}

static void warn__export_without_clients(void **state)
{
	static const char *const exports[] = {"c:4096"};
	static const char *const listen[] = {"tcp:127.0.0.1"};
	struct server_config config;

	assert_string_equal(
		warnings_about("exports = ( { name = \"a\"; size = 4096 } ); listen = \"shm:/x\""),
		"");
	assert_string_equal(warnings_about("exports = ( { name = \"a\"; size = 4096 } ); "
					   "listen = [ \"shm:/x\", \"tcp:127.0.0.1\" ]"),
		"export 'a' has no clients: nobody can mount it over tcp and verbs. Make a key "
		"(rmemfsctl keygen) and name its file in clients, or say insecure there\n");
	server_config_init(&config);
	server_config_set_exports(&config, exports, 1, access_why, sizeof(access_why));
	server_config_set_listen(&config, listen, 1, access_why, sizeof(access_why));
	assert_int_equal(server_config_finish(&config, access_why, sizeof(access_why)), 0);
	assert_string_equal(warnings_of(&config),
		"export 'c' has no clients: nobody can mount it over tcp and verbs. Make a key "
		"(rmemfsctl keygen) and name its file in --key, or say --insecure\n");
	server_config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print__each_client_with_its_keys),
		cmocka_unit_test(warn__insecure_from_anywhere),
		cmocka_unit_test(warn__one_key_in_two_clients_of_an_export),
		cmocka_unit_test(warn__export_without_clients),
		cmocka_unit_test(warn__all_without_tcp),
		cmocka_unit_test(print__demand),
	};

	return cmocka_run_group_tests(tests, access_make_dir, access_remove_dir);
}
