/* Tables of clients and keys: how they are made, refused and searched. */
#include "tests/unit/server/access_fixture.h"

#define EXPORT(name, clients) "{ name = \"" name "\"; size = 4096; clients = (\n" clients " ) }"
#define ONE(clients)          "exports = ( " EXPORT("data", clients) " )"
#define CLIENT(name, file)    "{ name = \"" name "\"; keys = \"@/" file "\" }"

/* ---- making ---------------------------------------------------------------------------------- */

static void new__has_all_of_the_configuration(void **state)
{
	const struct access_export *export;
	struct access_table *table;

	access_add_key("web.key", "web-2", 2);
	access_add_key("web.key", "web-1", 1);
	access_add_key("lab.key", "lab-1", 3);
	table = access_table_of("local_access = \"read-only\"; exports = (" EXPORT("data",
		"{ name = \"web\"; keys = \"@/web.key\"; sessions = 4;\n"
		"  hosts = [ \"10.0.0.0/24\", \"::1\" ]; access = \"read-only\" },"
		"{ name = \"anybody\"; insecure = true }") "," EXPORT("home",
		CLIENT("web", "web.key") "," CLIENT(
			"lab", "lab.key")) ","
					   "{ name = \"none\"; size = 4096 } )");
	assert_int_equal(table->local, ACCESS_READ_ONLY);
	assert_int_equal(table->nfiles, 2);
	assert_int_equal(table->nkeys, 3);
	export = access_table_export(table, "data", 4);
	assert_int_equal(export->n, 2);
	assert_string_equal(export->clients[0].name, "web");
	assert_int_equal(export->clients[0].level, ACCESS_READ_ONLY);
	assert_int_equal(export->clients[0].sessions, 4);
	assert_int_equal(export->clients[0].nhosts, 2);
	assert_true(access_table_has(&export->clients[0], "web-1"));
	assert_true(access_table_has(&export->clients[0], "web-2"));
	assert_false(access_table_has(&export->clients[0], "lab-1"));
	assert_null(export->clients[1].file);
	assert_false(access_table_has(&export->clients[1], "web-1"));
	assert_int_equal(access_table_export(table, "none", 4)->n, 0);
	access_table_put(table);
}

static void new__refuses_and_says_where(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ONE("{ name = \"a\"; insecure = true; hosts = [ \"10.0.0.1\",\n\"web1\" ] }"),
			":3: hosts: 'web1': host names are not looked up: must be an address or a "
			"network, as in 10.0.0.7, 10.0.0.0/24 or 2001:db8::/32"},
		{ONE("{ name = \"a\"; insecure = true; hosts = \"10.0.0.1/24\" }"),
			":2: hosts: '10.0.0.1/24': has bits behind its prefix: must be 10.0.0.0/24 "
			"for the network, or 10.0.0.1 for the address"},
		{ONE(CLIENT("web", "missing.key")), ":2: keys: "},
		{ONE(CLIENT("web", "open.key")), ":2: keys: "},
	};
	struct access_table *table;
	char expected[640];

	access_add_key("open.key", "open-1", 1);
	assert_int_equal(chmod(access_path("open.key"), 0644), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_not_equal(access_build(cases[i].text, &table), 0);
		snprintf(expected, sizeof(expected), "%s%s", access_conf, cases[i].why);
		if (strncmp(access_why, expected, strlen(expected)) != 0)
			fail_msg("%s: %s", expected, access_why);
	}
	assert_non_null(strstr(access_why, "chmod"));
	assert_int_equal(access_build(cases[2].text, &table), -ENOENT);
	assert_non_null(strstr(access_why, "missing.key"));
}

static void new__names_the_option_of_the_command_line(void **state)
{
	static const char *const exports[] = {"a:4096"};
	struct access_table *table;
	struct server_config config;

	server_config_init(&config);
	server_config_set_exports(&config, exports, 1, access_why, sizeof(access_why));
	server_config_set_clients(
		&config, access_path("nowhere.key"), access_why, sizeof(access_why));
	assert_int_equal(server_config_finish(&config, access_why, sizeof(access_why)), 0);
	assert_int_equal(
		access_table_new(&config, NULL, &table, access_why, sizeof(access_why)), -ENOENT);
	assert_int_equal(strncmp(access_why, "--key: ", 7), 0);
	server_config_fini(&config);
}

/* The id is all by which a client names its key. */
static void new__one_id_has_one_secret(void **state)
{
	struct access_table *table;
	char expected[640];

	access_add_key("one.key", "same-1", 1);
	access_add_key("copy.key", "same-1", 1);
	access_add_key("other.key", "same-1", 2);
	table = access_table_of(ONE(CLIENT("one", "one.key") "," CLIENT("copy", "copy.key")));
	assert_int_equal(table->nkeys, 2);
	access_table_put(table);
	assert_int_equal(
		access_build("exports = (" EXPORT("a", CLIENT("one", "one.key")) "," EXPORT(
				     "b", CLIENT("one", "other.key")) ")",
			&table),
		-EINVAL);
	snprintf(expected, sizeof(expected), "key same-1 is in %s/", access_dir);
	assert_int_equal(strncmp(access_why, expected, strlen(expected)), 0);
	assert_non_null(strstr(access_why, "one.key"));
	assert_non_null(strstr(access_why, "other.key"));
	assert_non_null(strstr(access_why, "with other bytes"));
}

/* The table of text, in which these exports of the one before keep their clients. */
static struct access_table *table_after(
	const struct access_table *before, const char *text, const char *const *names, size_t n)
{
	const struct access_kept kept = {before, names, n};
	struct server_config config;
	struct access_table *table;

	access_read(text, &config);
	if (access_table_new(&config, &kept, &table, access_why, sizeof(access_why)))
		fail_msg("%s", access_why);
	server_config_fini(&config);
	return table;
}

static void new__keeps_clients_and_reads_their_keys_again(void **state)
{
	static const char *const names[] = {"kept", "unknown"};
	struct access_table *before, *table;
	const struct access_export *export;

	access_add_key("kept.key", "kept-1", 7);
	access_add_key("new.key", "new-1", 8);
	before = access_table_of("exports = (" EXPORT("kept",
		"{ name = \"a\"; keys = \"@/kept.key\"; hosts = \"10.0.0.7\"; sessions = 3 },"
		"{ name = \"b\"; insecure = true; access = \"read-only\" }") "," EXPORT("other",
		CLIENT("b", "kept.key")) ")");
	assert_int_equal(unlink(access_path("kept.key")), 0);
	access_add_key("kept.key", "kept-2", 9);
	table = table_after(before, ONE(CLIENT("web", "new.key")), names, 2);
	access_table_put(before);
	assert_int_equal(table->nexports, 2);
	assert_null(access_table_export(table, "other", 5));
	export = access_table_export(table, "kept", 4);
	assert_int_equal(export->n, 2);
	assert_string_equal(export->clients[0].name, "a");
	assert_int_equal(export->clients[0].sessions, 3);
	assert_int_equal(export->clients[0].nhosts, 1);
	assert_true(access_table_has(&export->clients[0], "kept-2"));
	assert_false(access_table_has(&export->clients[0], "kept-1"));
	assert_int_equal(export->clients[1].level, ACCESS_READ_ONLY);
	assert_null(export->clients[1].file);
	assert_non_null(access_table_key(table, "kept-2", 6));
	access_table_put(table);
}

/* Nobody gets in by it, and all other changes come in force. */
static void new__keeps_a_client_whose_file_is_gone_without_keys(void **state)
{
	static const char *const names[] = {"kept"};
	struct access_table *before, *table;
	const struct access_client *client;

	access_add_key("gone.key", "gone-1", 7);
	access_add_key("fresh.key", "fresh-1", 8);
	before = access_table_of("exports = (" EXPORT("kept", CLIENT("a", "gone.key")) ")");
	assert_int_equal(unlink(access_path("gone.key")), 0);
	table = table_after(before, ONE(CLIENT("web", "fresh.key")), names, 1);
	access_table_put(before);
	client = access_table_export(table, "kept", 4)->clients;
	assert_non_null(client->file);
	assert_false(access_table_has(client, "gone-1"));
	assert_null(access_table_key(table, "gone-1", 6));
	access_table_put(table);
}

/* ---- searching ------------------------------------------------------------------------------- */

static void key__is_found_by_its_whole_id(void **state)
{
	struct access_table *table;
	const struct access_key *key;

	access_add_key("many.key", "b-1", 2);
	access_add_key("many.key", "a-1", 1);
	access_add_key("many.key", "c", 3);
	table = access_table_of(ONE(CLIENT("many", "many.key")));
	for (uint8_t i = 0; i < 3; i++) {
		static const char *const ids[] = {"a-1...", "b-1...", "c..."};

		key = access_table_key(table, ids[i], i < 2 ? 3 : 1);
		assert_non_null(key);
		assert_int_equal(key->secret->secret[31], i + 1);
		assert_int_equal(strlen(key->proof.fingerprint), 8);
		assert_int_equal(strncmp(key->proof.id, ids[i], i < 2 ? 3 : 1), 0);
	}
	assert_null(access_table_key(table, "a-1", 2));
	assert_null(access_table_key(table, "a-1x", 4));
	assert_null(access_table_key(table, "c\0", 2));
	assert_null(access_table_key(table, "", 0));
	assert_null(access_table_key(table, "A-1", 3));
	assert_null(
		access_table_key(table, "a-1345678901234567890123456789012345678901234567890", 50));
	access_table_put(table);
}

static void export__is_found_by_its_whole_name(void **state)
{
	struct access_table *table = access_table_of(
		"exports = ( { name = \"data\"; size = 4096 }, { name = \"d\"; size = 4096 } )");

	assert_ptr_equal(access_table_export(table, "data", 4), &table->exports[0]);
	assert_ptr_equal(access_table_export(table, "data", 1), &table->exports[1]);
	assert_null(access_table_export(table, "data", 3));
	assert_null(access_table_export(table, "data\0", 5));
	assert_null(access_table_export(table, "", 0));
	access_table_put(table);
}

/* ---- sharing --------------------------------------------------------------------------------- */

static void put__last_reference_frees(void **state)
{
	struct access_table *table = access_table_of(ONE("{ name = \"a\"; insecure = true }"));

	assert_ptr_equal(access_table_get(table), table);
	access_table_put(table);
	assert_non_null(access_table_export(table, "data", 4));
	access_table_put(table);
	access_table_put(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new__has_all_of_the_configuration),
		cmocka_unit_test(new__refuses_and_says_where),
		cmocka_unit_test(new__names_the_option_of_the_command_line),
		cmocka_unit_test(new__one_id_has_one_secret),
		cmocka_unit_test(new__keeps_clients_and_reads_their_keys_again),
		cmocka_unit_test(new__keeps_a_client_whose_file_is_gone_without_keys),
		cmocka_unit_test(key__is_found_by_its_whole_id),
		cmocka_unit_test(export__is_found_by_its_whole_name),
		cmocka_unit_test(put__last_reference_frees),
	};

	return cmocka_run_group_tests(tests, access_make_dir, access_remove_dir);
}
