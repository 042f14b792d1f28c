/* The clients of exports, in the file and on the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/util.h"
#include "server/config/config.h"

static char path[64], why[640];

static int read_and_finish(const char *text, struct server_config *config)
{
	int fd = memfd_create("conf", MFD_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	server_config_init(config);
	why[0] = '\0';
	err = server_config_read(config, path, why, sizeof(why));
	if (!err)
		err = server_config_finish(config, why, sizeof(why));
	close(fd);
	return err;
}

/* ---- the file -------------------------------------------------------------------------------- */

#define EXPORT_FOR(clients) \
	"exports = ( { name = \"a\"; size = 4096; clients = (\n" clients " ) } )"
#define NAMED(name) EXPORT_FOR("{ name = \"" name "\"; insecure = true }")
#define NAME_32     "a2345678901234567890123456789._-"

static void read__refuses_and_says_where(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"exports = ( { name = \"a\"; size = 4096; clients = ( ) } )",
			":1: clients: must not be empty; leave it out for the default"},
		{"exports = ( { name = \"a\"; size = 4096; clients = \"web\" } )",
			":1: clients: must be a list of groups: ( { ... }, { ... } )"},
		{"exports = ( { name = \"a\"; size = 4096; client = ( ) } )",
			":1: client: unknown key; did you mean 'clients'?"},
		{EXPORT_FOR("{ keys = \"/k\" }"), ":2: name: is missing"},
		{EXPORT_FOR("{ name = \"web\" }"),
			":2: clients: each needs keys or insecure = true, and not both"},
		{EXPORT_FOR("{ name = \"web\"; insecure = false }"),
			":2: clients: each needs keys or insecure = true, and not both"},
		{EXPORT_FOR("{ name = \"web\"; keys = \"/k\"; insecure = true }"),
			":2: clients: each needs keys or insecure = true, and not both"},
		{"exports = ( { name = \"a\"; size = 4096; protection = \"some\" } )",
			":1: protection: 'some': must be best, all or messages"},
		{"exports = ( { name = \"a\"; size = 4096; protection = \"all\"; clients = (\n"
		 "{ name = \"web\"; keys = \"/k\" },\n"
		 "{ name = \"any\"; insecure = true } ) } )",
			":3: clients: 'any': is insecure, and export 'a' has protection = \"all\", "
			"which needs keys: give it keys, or take one of the two away"},
		{EXPORT_FOR("{ name = \"web\"; keys = \"k\" }"),
			":2: keys: 'k': must be a path from / on"},
		{EXPORT_FOR("{ name = \"web\"; keys = \"\" }"), ":2: keys: must not be empty"},
		{EXPORT_FOR("{ name = \"web\"; keys = [ \"/a\", \"/b\" ] }"),
			":2: keys: must be a string in double quotes"},
		{EXPORT_FOR("{ name = \"web\"; key = \"/k\" }"),
			":2: key: unknown key; did you mean 'keys'?"},
		{EXPORT_FOR("{ name = \"web\"; host = \"10.0.0.1\" }"),
			":2: host: unknown key; did you mean 'hosts'?"},
		{EXPORT_FOR("{ name = \"web\"; hosts = [ ] }"),
			":2: hosts: must not be empty; leave it out for the default"},
		{EXPORT_FOR("{ name = \"web\"; hosts = 7 }"),
			":2: hosts: must be a string or a list of strings"},
		{EXPORT_FOR("{ name = \"web\"; access = \"rw\" }"),
			":2: access: 'rw': must be read-write, read-only or status"},
		{EXPORT_FOR("{ name = \"web\"; access = \"none\" }"),
			":2: access: 'none': must be read-write, read-only or status"},
		{EXPORT_FOR("{ name = \"web\"; sessions = 0 }"),
			":2: sessions: '0': must be a whole number from 1 to 256"},
		{EXPORT_FOR("{ name = \"web\"; sessions = 257 }"),
			":2: sessions: '257': must be a whole number from 1 to 256"},
		{EXPORT_FOR("{ name = \"web\"; insecure = \"yes\" }"),
			":2: insecure: must be true or false"},
		{EXPORT_FOR("{ name = \"web\"; squash = \"yes\" }"),
			":2: squash: 'yes': must be none, root or all"},
		{EXPORT_FOR("{ name = \"web\"; squash = true }"),
			":2: squash: must be a string in double quotes"},
		{EXPORT_FOR("{ name = \"web\"; squash = \"root\"; anonuid = 0 }"),
			":2: anonuid: '0': must be a whole number from 1 to 4294967294"},
		{EXPORT_FOR("{ name = \"web\"; squash = \"all\"; anongid = 4294967295L }"),
			":2: anongid: '4294967295': must be a whole number from 1 to 4294967294"},
		{EXPORT_FOR("{ name = \"web\"; squash = \"all\"; anonuid = -2 }"),
			":2: anonuid: '-2': must be a whole number from 1 to 4294967294"},
		{EXPORT_FOR("{ name = \"web\"; squash = \"root\"; anonuid = \"nobody\" }"),
			":2: anonuid: must be a whole number"},
		{EXPORT_FOR("{ name = \"web\"; keys = \"/k\" },\n"
			    "{ name = \"lab\"; keys = \"/l\"; anonuid = 65534 }"),
			":3: clients: 'lab': anonuid has no meaning without squash = \"root\" or "
			"\"all\""},
		{EXPORT_FOR("{ name = \"lab\"; keys = \"/l\"; squash = \"none\"; anongid = 7 }"),
			":2: clients: 'lab': anongid has no meaning without squash = \"root\" or "
			"\"all\""},
		{EXPORT_FOR("{ name = \"web\"; keys = \"/k\" },\n"
			    "{ name = \"lab\"; keys = \"/l\" },\n"
			    "{ name = \"web\"; insecure = true }"),
			":4: clients: 'web': this export has another client of this name"},
		{NAMED(""), ":2: name: must not be empty"},
		{NAMED("Web"),
			":2: name: 'Web': must be of small letters, digits, '.', '_' and '-'"},
		{NAMED("we b"),
			":2: name: 'we b': must be of small letters, digits, '.', '_' and '-'"},
		{NAMED("-web"), ":2: name: '-web': must begin with a small letter or a digit"},
		{NAMED(".web"), ":2: name: '.web': must begin with a small letter or a digit"},
		{NAMED("_"), ":2: name: '_': must begin with a small letter or a digit"},
		{NAMED(NAME_32 "x"), ":2: name: '" NAME_32 "x': must be 1 to 32 bytes long"},
		{NAMED("local"),
			":2: name: 'local': must be another name: this one is for root and the "
			"server's user over shm"},
		{"local_access = \"status\"",
			":1: local_access: 'status': must be read-write, read-only or none"},
		{"local_acess = \"none\"",
			":1: local_acess: unknown key; did you mean 'local_access'?"},
	};
	char expected[640];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;

		if (!read_and_finish(cases[i].text, &config))
			fail_msg("taken: %s", cases[i].text);
		snprintf(expected, sizeof(expected), "%s%s", path, cases[i].why);
		assert_string_equal(why, expected);
		server_config_fini(&config);
	}
}

static void read__clients_and_their_defaults(void **state)
{
	struct server_config config;
	const struct export_config *export;
	const struct export_client *client;

	if (read_and_finish(
		    EXPORT_FOR("{ name = \"web\"; keys = \"/k\"; hosts = \"10.0.0.0/24\" },"
			       "{ name = \"" NAME_32 "\"; insecure = true; sessions = 4;\n"
			       "  access = \"read-only\"; hosts = [ \"::1\", \"10.9.0.2\" ] },"
			       "{ name = \"0\"; keys = \"/k\"; access = \"status\" }"),
		    &config))
		fail_msg("%s", why);
	export = server_config_export(&config, 0);
	assert_int_equal(export->clients.n, 3);
	client = server_config_client(export, 0);
	assert_string_equal(client->name, "web");
	assert_string_equal(client->keys, "/k");
	assert_int_equal(client->hosts.n, 1);
	assert_string_equal(client->hosts.v[0], "10.0.0.0/24");
	assert_int_equal(client->access, ACCESS_READ_WRITE);
	assert_int_equal(client->sessions, CLIENT_SESSIONS_MAX);
	assert_false(client->insecure);
	client = server_config_client(export, 1);
	assert_string_equal(client->name, NAME_32);
	assert_null(client->keys);
	assert_int_equal(client->hosts.n, 2);
	assert_int_equal(client->hosts.lines[1], 3);
	assert_int_equal(client->access, ACCESS_READ_ONLY);
	assert_int_equal(client->sessions, 4);
	assert_true(client->insecure);
	assert_int_equal(server_config_client(export, 2)->access, ACCESS_STATUS);
	assert_int_equal(config.local_access, ACCESS_READ_WRITE);
	server_config_fini(&config);
}

static void read__squash_and_its_defaults(void **state)
{
	static const struct {
		const char *text;
		enum squash_kind squash;
		uint64_t anonuid, anongid;
	} cases[] = {
		{"", SQUASH_NONE, 0, 0},
		{"squash = \"none\"", SQUASH_NONE, 0, 0},
		{"squash = \"root\"", SQUASH_ROOT, 65534, 65534},
		{"squash = \"all\"; anonuid = 1", SQUASH_ALL, 1, 65534},
		{"squash = \"root\"; anongid = 4294967294L", SQUASH_ROOT, 65534, 4294967294},
		{"squash = \"all\"; anonuid = 1000; anongid = 50", SQUASH_ALL, 1000, 50},
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;
		const struct export_client *client;

		snprintf(text, sizeof(text), EXPORT_FOR("{ name = \"lab\"; keys = \"/l\"; %s }"),
			cases[i].text);
		if (read_and_finish(text, &config))
			fail_msg("%s", why);
		client = server_config_client(server_config_export(&config, 0), 0);
		assert_int_equal(client->squash, cases[i].squash);
		assert_int_equal(client->anonuid, cases[i].anonuid);
		assert_int_equal(client->anongid, cases[i].anongid);
		server_config_fini(&config);
	}
}

static void read__local_access(void **state)
{
	static const struct {
		const char *text;
		enum access_level level;
	} cases[] = {
		{"", ACCESS_READ_WRITE},
		{"local_access = \"read-write\"", ACCESS_READ_WRITE},
		{"local_access = \"read-only\"", ACCESS_READ_ONLY},
		{"local_access = \"none\"", ACCESS_NONE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;

		assert_int_equal(read_and_finish(cases[i].text, &config), 0);
		assert_int_equal(config.local_access, cases[i].level);
		/* Nobody else gets in before the configuration says so. */
		assert_int_equal(server_config_export(&config, 0)->clients.n, 0);
		server_config_fini(&config);
	}
}

/* ---- the command line ------------------------------------------------------------------------ */

static int set_clients(const char *file, struct server_config *config)
{
	static const char *const exports[] = {"a:4096", "b:4096"};
	int err;

	server_config_init(config);
	err = server_config_set_exports(config, exports, 2, why, sizeof(why));
	if (!err)
		err = server_config_set_clients(config, file, why, sizeof(why));
	return err ? err : server_config_finish(config, why, sizeof(why));
}

static void check_each(const struct server_config *config, const char *name, const char *keys)
{
	assert_int_equal(config->exports.n, 2);
	for (size_t i = 0; i < config->exports.n; i++) {
		const struct export_config *export = server_config_export(config, i);
		const struct export_client *client = server_config_client(export, 0);

		assert_int_equal(export->clients.n, 1);
		assert_string_equal(client->name, name);
		assert_int_equal(client->insecure, !keys);
		if (keys)
			assert_string_equal(client->keys, keys);
		assert_int_equal(client->hosts.n, 0);
		assert_int_equal(client->access, ACCESS_READ_WRITE);
	}
}

static void set_clients__names_the_client_by_its_file(void **state)
{
	static const struct {
		const char *file, *name;
	} cases[] = {
		{"/etc/rmemfs/keys/web.key", "web"},
		{"web1.key", "web1"},
		{"./lab", "lab"},
		{"/k/a.key.key", "a.key"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;

		assert_int_equal(set_clients(cases[i].file, &config), 0);
		check_each(&config, cases[i].name, cases[i].file);
		server_config_fini(&config);
	}
}

static void set_clients__refuses_a_file_whose_name_is_no_clients(void **state)
{
	static const struct {
		const char *file, *why;
	} cases[] = {
		{"/k/Web.key",
			"--key: '/k/Web.key': the file's name is the client's, and without '.key' "
			"it must be of small letters, digits, '.', '_' and '-'"},
		{"/k/.key",
			"--key: '/k/.key': the file's name is the client's, and without '.key' it "
			"must begin with a small letter or a digit"},
		{"/k/", "--key: '/k/': the file's name is the client's, and without '.key' it must "
			"not be empty"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;

		assert_int_equal(set_clients(cases[i].file, &config), -EINVAL);
		assert_string_equal(why, cases[i].why);
		server_config_fini(&config);
	}
}

static void set_clients__anybody(void **state)
{
	struct server_config config;

	assert_int_equal(set_clients(NULL, &config), 0);
	check_each(&config, "anybody", NULL);
	server_config_fini(&config);
}

/* Exports of the command line have none of the file's clients. */
static void set_exports__forgets_the_files_clients(void **state)
{
	static const char *const exports[] = {"a:4096"};
	struct server_config config;

	assert_int_equal(read_and_finish(NAMED("web"), &config), 0);
	assert_int_equal(server_config_set_exports(&config, exports, 1, why, sizeof(why)), 0);
	assert_int_equal(server_config_finish(&config, why, sizeof(why)), 0);
	assert_int_equal(server_config_export(&config, 0)->clients.n, 0);
	server_config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__refuses_and_says_where),
		cmocka_unit_test(read__clients_and_their_defaults),
		cmocka_unit_test(read__squash_and_its_defaults),
		cmocka_unit_test(read__local_access),
		cmocka_unit_test(set_clients__names_the_client_by_its_file),
		cmocka_unit_test(set_clients__refuses_a_file_whose_name_is_no_clients),
		cmocka_unit_test(set_clients__anybody),
		cmocka_unit_test(set_exports__forgets_the_files_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
