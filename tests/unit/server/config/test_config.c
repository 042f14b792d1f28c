/* The server's configuration: every line that refuses one, for files and for the command line. */
#include "tests/unit/conf_example.h"

#include "common/transport/address.h"
#include "server/config/config.h"

static char path[] = "/tmp/rmemfs-test-server.XXXXXX";
static char why[640];

static int make_file(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(path);
}

static int read_and_finish(const char *text, struct server_config *config)
{
	FILE *f = fopen(path, "w");
	int err;

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	server_config_init(config);
	why[0] = '\0';
	err = server_config_read(config, path, why, sizeof(why));
	return err ? err : server_config_finish(config, why, sizeof(why));
}

/* ---- files ----------------------------------------------------------------------------------- */

#define NAME_63 "a234567890123456789012345678901234567890123456789012345678901_-"
#define PATH_107                                                                               \
	"/23456789012345678901234567890123456789012345678901234567890123456789012345678901234" \
	"5678901234567890123456."

#define EXPORT_WITH(quotas) "exports = ( { name = \"a\"; size = 4096; quotas = (\n" quotas " ) } )"

static void read__refuses_and_says_where(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"exporst = ( )", ":1: exporst: unknown key; did you mean 'exports'?"},
		{"speed = 1", ":1: speed: unknown key; see rmemfs.conf(5)"},
		{"exports = ( )", ":1: exports: must not be empty; leave it out for the default"},
		{"exports = (\n { name = \"a b\"; size = 4096 } )",
			":2: name: 'a b': must be of letters, digits, '.', '_' and '-'"},
		{"exports = ( { name = \"a/b\"; size = 4096 } )",
			":1: name: 'a/b': must be of letters, digits, '.', '_' and '-'"},
		{"exports = ( { name = \"..\"; size = 4096 } )",
			":1: name: '..': must not begin with '.'"},
		{"exports = ( { name = \"\"; size = 4096 } )", ":1: name: must not be empty"},
		{"exports = ( { name = \"" NAME_63 "x\"; size = 4096 } )",
			":1: name: '" NAME_63 "x': must be 1 to 63 bytes long"},
		{"exports = ( { name = \"a\" } )", ":1: size: is missing"},
		{"exports = ( { size = 4096 } )", ":1: name: is missing"},
		{"exports = ( { name = \"a\";\nsize = 0 } )",
			":2: size: '0': must be at least 4KiB"},
		{"exports = ( { name = \"a\"; size = \"99999999TiB\" } )",
			":1: size: '99999999TiB': is too large"},
		{"exports = ( { name = \"a\"; size = \"5KiB\" } )",
			":1: size: '5KiB': must be a multiple of 4KiB"},
		{"exports = ( { name = \"a\"; size = \"1.5GiB\" } )",
			":1: size: '1.5GiB': must be a whole number and B, KiB, MiB, GiB or TiB, "
			"as in 512MiB or 64GiB"},
		{"exports = ( { name = \"a\"; size = 4096 },\n\n  { name = \"a\"; size = 4096 } )",
			":3: exports: 'a': there is another export of this name"},
		{"region_size = \"2MiB\"\nexports = ( { name = \"big\"; size = \"1TiB\" } )",
			":2: exports: 'big': 1TiB by a region_size of 2MiB make 524288 regions in "
			"all, of at most 65535; make region_size larger"},
		{"exports = ( { name = \"a\"; size = \"40000GiB\" },\n"
		 "{ name = \"b\"; size = \"40000GiB\" } )",
			":2: exports: 'b': 39.1TiB by a region_size of 1GiB make 80000 regions in "
			"all, of at most 65535; make region_size larger"},
		{"exports = ( { name = \"a\"; size = \"8388608TiB\" } )",
			":1: exports: 'a': 8388608.0TiB by a region_size of 1GiB make 8589934592 "
			"regions in all, of at most 65535; make region_size larger"},
		{"region_size = \"8TiB\"", ":1: region_size: '8TiB': must be 2MiB to 4TiB"},
		{"region_size = \"1MiB\"", ":1: region_size: '1MiB': must be 2MiB to 4TiB"},
		{"region_size = 2097153", ":1: region_size: '2097153': must be a multiple of 4KiB"},
		{"exports = ( { name = \"a\"; size = 4096; inodes = 1 } )",
			":1: inodes: '1': must be a whole number of at least 2"},
		{"exports = ( { name = \"a\"; size = 4096; metadata = 4096 } )",
			":1: metadata: '4096': must be 4MiB to 1TiB"},
		{"exports = ( { name = \"a\"; size = 4096; metadata = \"33MiB\" },\n"
		 "{ name = \"b\"; size = 4096; metadata = \"32MiB\" } )",
			":2: metadata: 'b' has 32MiB, and with the exports before it that makes "
			"65MiB of 64MiB: make the shares smaller, or metadata_reserve larger"},
		{"exports = ( { name = \"a\"; size = 4096; metadata = \"63MiB\" },\n"
		 "{ name = \"b\"; size = 4096 },\n{ name = \"c\"; size = 4096 } )",
			":3: metadata: 1MiB is left for the exports without a share, such as 'c', "
			"which need 8MiB: make the shares smaller, or metadata_reserve larger"},
		{EXPORT_WITH("{ size = 4096 }"),
			":2: quotas: each needs a user or a group, and not both"},
		{EXPORT_WITH("{ user = 1; group = 1; size = 4096 }"),
			":2: quotas: each needs a user or a group, and not both"},
		{EXPORT_WITH("{ user = 1 }"), ":2: quotas: each needs a size, inodes or both"},
		{EXPORT_WITH("{ user = 1; size = 5000 }"),
			":2: size: '5000': must be a multiple of 4KiB"},
		{EXPORT_WITH("{ user = 1; inodes = 0 }"),
			":2: inodes: '0': must be a whole number of at least 1"},
		{EXPORT_WITH("{ user = true; inodes = 1 }"),
			":2: user: must be a string in double quotes or a whole number"},
		{EXPORT_WITH("{ user = \"nobody-of-that-name\"; inodes = 1 }"),
			":2: user: 'nobody-of-that-name': there is no such user on this machine; a "
			"number needs none"},
		{EXPORT_WITH("{ group = \"4294967295\"; inodes = 1 }"),
			":2: group: '4294967295': there is no such group on this machine; a "
			"number needs none"},
		{EXPORT_WITH("{ user = 0; inodes = 1 },\n{ user = \"root\"; size = 4096 }"),
			":3: user: 'root': has another quota in this export"},
		{EXPORT_WITH("{ group = \"*\"; inodes = 1 },\n{ group = \"*\"; size = 4096 }"),
			":3: group: '*': has another quota in this export"},
		{EXPORT_WITH("{ usr = 1; size = 4096 }"),
			":2: usr: unknown key; did you mean 'user'?"},
		{"snapshot_dir = \"snapshots\"",
			":1: snapshot_dir: 'snapshots': must be a path from / on"},
		{"snapshot_dir = 1", ":1: snapshot_dir: must be a string in double quotes"},
		{"snapshot_on_stop = \"yes\"", ":1: snapshot_on_stop: must be true or false"},
		{"restore_on_start = 1", ":1: restore_on_start: must be true or false"},
		{"memory_dir = \"/mem/\"\nsnapshot_dir = \"/mem/snapshots\"",
			": snapshot_dir: '/mem/snapshots': must not be in the memory directory, "
			"which is lost with the machine's memory"},
		{"memory_dir = \"/mem\"\nsnapshot_dir = \"/mem\"",
			": snapshot_dir: '/mem': must not be in the memory directory, which is lost "
			"with the machine's memory"},
		{"listen = \"pigeon:here\"",
			":1: listen: 'pigeon:here': must be verbs:HOST[:PORT], tcp:HOST[:PORT] or "
			"shm:/PATH"},
		{"listen = [ \"tcp:127.0.0.1\",\n \"tcp:127.0.0.1:0\" ]",
			":2: listen: 'tcp:127.0.0.1:0': port '0' is not in 1..65535"},
		{"listen = \"tcp:127.0.0.1:65536\"",
			":1: listen: 'tcp:127.0.0.1:65536': port '65536' is not in 1..65535"},
		{"listen = \"tcp:127.0.0.1:+7\"",
			":1: listen: 'tcp:127.0.0.1:+7': port '+7' is not in 1..65535"},
		{"listen = \"tcp:127.0.0.1: 7\"",
			":1: listen: 'tcp:127.0.0.1: 7': port ' 7' is not in 1..65535"},
		{"listen = \"tcp:127.0.0.1:0x10\"",
			":1: listen: 'tcp:127.0.0.1:0x10': port '0x10' is not in 1..65535"},
		{"listen = \"shm:run/x\"",
			":1: listen: 'shm:run/x': a socket's path begins with /"},
		{"listen = \"shm:" PATH_107 "x\"",
			":1: listen: 'shm:/23456789012345678901234567890123456789012345678901234567890"
			"...': a socket's path has at most 107 bytes"},
		{"listen = [ \"tcp:127.0.0.1\",\n\"shm:/a\",\n\"tcp:127.0.0.1:7470\" ]",
			":3: listen: 'tcp:127.0.0.1:7470': the same address is there twice"},
		{"listen = [ \"shm:/a\",\n\"shm:/a\" ]",
			":2: listen: 'shm:/a': the same address is there twice"},
		{"listen = ( )", ":1: listen: must not be empty; leave it out for the default"},
		{"listen = \"\"", ":1: listen: must not be empty"},
		{"memory_dir = \"\"", ":1: memory_dir: must not be empty"},
		{"\nhuge_pages = \"no\"", ":2: huge_pages: 'no': must be never, advise or always"},
		{"log_level = \"loud\"",
			":1: log_level: 'loud': must be error, warning, notice, info or debug"},
		{"lease_time = 0", ":1: lease_time: '0': must be a whole number from 1 to 3600"},
		{"peer_timeout = 3601",
			":1: peer_timeout: '3601': must be a whole number from 1 to 3600"},
		{"io_threads = 257", ":1: io_threads: '257': must be a whole number from 1 to 256"},
		{"metadata_reserve = \"4092KiB\"",
			":1: metadata_reserve: '4092KiB': must be 4MiB to 1TiB"},
		{"metadata_reserve = \"2TiB\"",
			":1: metadata_reserve: '2TiB': must be 4MiB to 1TiB"},
	};
	char expected[640];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;

		assert_int_not_equal(read_and_finish(cases[i].text, &config), 0);
		snprintf(expected, sizeof(expected), "%s%s", path, cases[i].why);
		assert_string_equal(why, expected);
		server_config_fini(&config);
	}
}

static void read__quotas_become_limits(void **state)
{
	struct server_config config;
	const struct quota_limit *limits;

	assert_int_equal(
		read_and_finish(EXPORT_WITH("{ user = \"root\"; size = \"1MiB\" },"
					    "{ user = 1000; inodes = 7 },"
					    "{ group = \"*\"; size = \"2MiB\"; inodes = 3 }"),
			&config),
		0);
	limits = server_config_export(&config, 0)->limits;
	assert_int_equal(server_config_export(&config, 0)->quotas.n, 3);
	assert_int_equal(limits[0].kind, QUOTA_USER);
	assert_int_equal(limits[0].id, 0);
	assert_int_equal(limits[0].npages, 256);
	assert_int_equal(limits[0].inodes, 0);
	assert_int_equal(limits[1].id, 1000);
	assert_int_equal(limits[1].npages, 0);
	assert_int_equal(limits[1].inodes, 7);
	assert_int_equal(limits[2].kind, QUOTA_GROUP);
	assert_true(limits[2].everybody);
	assert_int_equal(limits[2].npages, 512);
	server_config_fini(&config);
}

/* The shares of exports of 48, 16 and 64 MiB; the reserve is 64 MiB by default. */
static void expect_shares(const char *texts[3], uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t want[3] = {a, b, c};
	struct server_config config;
	char text[512];

	snprintf(text, sizeof(text),
		"exports = ( { name = \"a\"; size = \"48MiB\"; %s },"
		"{ name = \"b\"; size = \"16MiB\"; %s },\n{ name = \"c\"; size = \"64MiB\"; %s } )",
		texts[0], texts[1], texts[2]);
	if (read_and_finish(text, &config))
		fail_msg("%s", why);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(server_config_export(&config, i)->share, want[i]);
	server_config_fini(&config);
}

static void finish__shares_the_memory_for_metadata(void **state)
{
	const uint64_t kib = 1024, mib = 1024 * kib;
	const char *none[] = {"", "", ""}, *one[] = {"", "metadata = \"23MiB\"", ""};
	const char *all[] = {"metadata = \"4MiB\"", "metadata = \"5MiB\"", "metadata = \"55MiB\""};
	struct server_config config;

	/* 4 MiB for each, and of 52 MiB the parts by size. */
	expect_shares(none, 4 * mib + 19968 * kib, 4 * mib + 6656 * kib, 4 * mib + 26624 * kib);
	/* Two have 41 MiB in common. */
	expect_shares(one, 4 * mib + 14480 * kib, 23 * mib, 4 * mib + 19308 * kib);
	expect_shares(all, 4 * mib, 5 * mib, 55 * mib);
	assert_int_equal(
		read_and_finish("exports = ( { name = \"a\"; size = 4096 } )", &config), 0);
	assert_int_equal(server_config_export(&config, 0)->share, 0);
	server_config_fini(&config);
}

static void finish__has_metadata_for_many_small_exports(void **state)
{
	struct server_config config;
	char text[4096] = "exports = ( ";

	for (unsigned i = 0; i < 40; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"%s{ name = \"e%u\"; size = \"1MiB\" }", i ? ", " : "", i);
	strcat(text, " )");
	assert_int_equal(read_and_finish(text, &config), 0);
	assert_int_equal(server_config_store_bytes(&config), 160 << 20);
	assert_int_equal(server_config_export(&config, 39)->share, 4 << 20);
	server_config_fini(&config);
}

static void read__memory_dir_has_a_limit(void **state)
{
	struct server_config config;
	char text[1200];
	int at = snprintf(text, sizeof(text), "memory_dir = \"");

	memset(text + at, '/', 1025);
	strcpy(text + at + 1025, "\"");
	assert_int_not_equal(read_and_finish(text, &config), 0);
	assert_non_null(strstr(why, ":1: memory_dir: '///"));
	assert_non_null(strstr(why, "///...': must be 1 to 1024 bytes long"));
	server_config_fini(&config);
}

static void read__takes_what_is_just_within(void **state)
{
	struct server_config config;

	if (read_and_finish("exports = ( { name = \"" NAME_63 "\"; size = \"127GiB\" },\n"
			    "            { name = \"b\"; size = 4096 } );\n"
			    "region_size = \"2MiB\"; peer_timeout = 3600;\n"
			    "huge_pages = \"always\"; log_level = \"debug\";\n"
			    "listen = [ \"shm:" PATH_107 "\", \"tcp:127.0.0.1:65535\" ];\n",
		    &config))
		fail_msg("%s", why);
	assert_int_equal(config.exports.n, 2);
	assert_string_equal(server_config_export(&config, 0)->name, NAME_63);
	assert_int_equal(config.peer_timeout, 3600);
	assert_int_equal(config.huge_pages, HUGE_PAGES_ALWAYS);
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	/* Sockets come last. */
	assert_int_equal(config.addresses[0].kind, TRANSPORT_TCP);
	assert_int_equal(config.addresses[1].kind, TRANSPORT_SHM);
	server_config_fini(&config);
}

static void read__exactly_the_most_regions(void **state)
{
	struct server_config config;

	assert_int_equal(read_and_finish("region_size = \"2MiB\"\n"
					 "exports = ( { name = \"a\"; size = \"131070MiB\" } )",
				 &config),
		0);
	server_config_fini(&config);
	assert_int_not_equal(read_and_finish("region_size = \"2MiB\"\nexports = (\n"
					     "{ name = \"a\"; size = \"131070MiB\" },\n"
					     "{ name = \"b\"; size = 4096 } )",
				     &config),
		0);
	assert_non_null(
		strstr(why, ":4: exports: 'b': 4KiB by a region_size of 2MiB make 65536 regions"));
	server_config_fini(&config);
}

/* ---- the command line ------------------------------------------------------------------------ */

static void set_exports__refuses_and_names_the_option(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "--export: '': must be NAME:SIZE, as in data:64GiB"},
		{"data", "--export: 'data': must be NAME:SIZE, as in data:64GiB"},
		{":1GiB", "--export: ':1GiB': the name must not be empty"},
		{"a b:1GiB",
			"--export: 'a b:1GiB': the name must be of letters, digits, '.', '_' and "
			"'-'"},
		{".a:1GiB", "--export: '.a:1GiB': the name must not begin with '.'"},
		{NAME_63 "x:1B",
			"--export: '" NAME_63 "x...': the name must be 1 to 63 bytes long"},
		{"a:", "--export: 'a:': the size must be a whole number and B, KiB, MiB, GiB or "
		       "TiB, as in 512MiB or 64GiB"},
		{"a:-1GiB",
			"--export: 'a:-1GiB': the size must be a whole number and B, KiB, MiB, GiB "
			"or TiB, as in 512MiB or 64GiB"},
		{"a:0", "--export: 'a:0': the size must be at least 4KiB"},
		{"a:99999999TiB", "--export: 'a:99999999TiB': the size is too large"},
		{"a:5000", "--export: 'a:5000': the size must be a multiple of 4KiB"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server_config config;

		server_config_init(&config);
		assert_int_equal(
			server_config_set_exports(&config, &cases[i].text, 1, why, sizeof(why)),
			-EINVAL);
		assert_string_equal(why, cases[i].why);
		server_config_fini(&config);
	}
}

static void set_exports__is_checked_with_the_rest(void **state)
{
	static const char *const twice[] = {"a:1GiB", "b:1GiB", "a:2GiB"};
	static const char *const big[] = {"a:128TiB"};
	struct server_config config;

	server_config_init(&config);
	assert_int_equal(server_config_set_exports(&config, twice, 3, why, sizeof(why)), 0);
	assert_int_equal(server_config_finish(&config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "--export: 'a': there is another export of this name");
	assert_int_equal(server_config_set_exports(&config, big, 1, why, sizeof(why)), 0);
	assert_int_equal(server_config_finish(&config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why,
		"--export: 'a': 128TiB by a region_size of 1GiB make 131072 regions in all, of at "
		"most 65535; make region_size larger");
	server_config_fini(&config);
}

static void set_listen__is_checked_with_the_rest(void **state)
{
	static const char *const wrong[] = {"tcp:127.0.0.1:99999"};
	static const char *const twice[] = {"shm:/a", "tcp:127.0.0.1", "shm:/a"};
	struct server_config config;

	server_config_init(&config);
	assert_int_equal(server_config_set_listen(&config, wrong, 1, why, sizeof(why)), 0);
	assert_int_equal(server_config_finish(&config, why, sizeof(why)), -EINVAL);
	assert_string_equal(
		why, "--listen: 'tcp:127.0.0.1:99999': port '99999' is not in 1..65535");
	assert_int_equal(server_config_set_listen(&config, twice, 3, why, sizeof(why)), 0);
	assert_int_equal(server_config_finish(&config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "--listen: 'shm:/a': the same address is there twice");
	server_config_fini(&config);
}

static void set__replaces_the_file(void **state)
{
	static const char *const exports[] = {"x:4096"};
	static const char *const listen[] = {"shm:/x"};
	struct server_config config;

	assert_int_equal(
		read_and_finish("exports = ( { name = \"a\"; size = 4096 },\n"
				"{ name = \"b\"; size = 4096 } );\n"
				"listen = [ \"shm:/a\", \"shm:/b\" ]; memory_dir = \"/m\";\n"
				"log_level = \"error\"",
			&config),
		0);
	assert_int_equal(server_config_set_exports(&config, exports, 1, why, sizeof(why)), 0);
	assert_int_equal(server_config_set_listen(&config, listen, 1, why, sizeof(why)), 0);
	assert_int_equal(server_config_set(
				 &config, "--memory-dir", "memory_dir", "/other", why, sizeof(why)),
		0);
	assert_int_equal(
		server_config_set(&config, "--log-level", "log_level", "debug", why, sizeof(why)),
		0);
	assert_int_equal(server_config_finish(&config, why, sizeof(why)), 0);
	assert_int_equal(config.exports.n, 1);
	assert_string_equal(server_config_export(&config, 0)->name, "x");
	assert_int_equal(config.listen.n, 1);
	assert_string_equal(config.listen.v[0], "shm:/x");
	assert_string_equal(config.memory_dir, "/other");
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	server_config_fini(&config);
}

static void set__names_the_option(void **state)
{
	struct server_config config;

	server_config_init(&config);
	assert_int_equal(
		server_config_set(&config, "--log-level", "log_level", "loud", why, sizeof(why)),
		-EINVAL);
	assert_string_equal(
		why, "--log-level: 'loud': must be error, warning, notice, info or debug");
	assert_int_equal(
		server_config_set(&config, "--memory-dir", "memory_dir", "", why, sizeof(why)),
		-EINVAL);
	assert_string_equal(why, "--memory-dir: '': must not be empty");
	server_config_fini(&config);
}

/* ---- the shipped example --------------------------------------------------------------------- */

static bool same_exports(const struct server_config *a, const struct server_config *b)
{
	bool same = a->exports.n == b->exports.n;

	for (size_t i = 0; same && i < a->exports.n; i++) {
		const struct export_config *x = server_config_export(a, i);
		const struct export_config *y = server_config_export(b, i);

		same = x->size == y->size && strcmp(x->name, y->name) == 0;
	}
	return same;
}

static bool same_setting(
	const struct conf_key *key, const struct server_config *a, const struct server_config *b)
{
	if (key->type == CONF_GROUPS)
		return same_exports(a, b);
	if (strcmp(key->name, "numa_node") == 0) /* the default depends on the machine */
		return a->numa_node == 0 || a->numa_node == b->numa_node;
	if (strcmp(key->name, "metadata_reserve") == 0)
		return server_config_store_bytes(a) == server_config_store_bytes(b);
	return conf_equal(key, a, b);
}

static void check_line(const char *file, const char *name, bool first)
{
	const struct conf_key *key = conf_find(server_config_keys, name);
	struct server_config config, defaults;

	server_config_init(&config);
	server_config_init(&defaults);
	if (server_config_read(&config, file, why, sizeof(why)) ||
		server_config_finish(&config, why, sizeof(why)) ||
		server_config_finish(&defaults, why, sizeof(why)))
		fail_msg("%s", why);
	assert_non_null(key);
	if (first && !same_setting(key, &config, &defaults))
		fail_msg("the example shows another default of %s", name);
	server_config_fini(&config);
	server_config_fini(&defaults);
}

static void example__has_every_key_and_its_default(void **state)
{
	struct conf_example example;

	example_each(RMEMFS_CONFIG_DIR "/server.conf", check_line, &example);
	example_is_complete(&example, server_config_keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__refuses_and_says_where),
		cmocka_unit_test(read__quotas_become_limits),
		cmocka_unit_test(finish__shares_the_memory_for_metadata),
		cmocka_unit_test(finish__has_metadata_for_many_small_exports),
		cmocka_unit_test(read__memory_dir_has_a_limit),
		cmocka_unit_test(read__takes_what_is_just_within),
		cmocka_unit_test(read__exactly_the_most_regions),
		cmocka_unit_test(set_exports__refuses_and_names_the_option),
		cmocka_unit_test(set_exports__is_checked_with_the_rest),
		cmocka_unit_test(set_listen__is_checked_with_the_rest),
		cmocka_unit_test(set__replaces_the_file),
		cmocka_unit_test(set__names_the_option),
		cmocka_unit_test(example__has_every_key_and_its_default),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
