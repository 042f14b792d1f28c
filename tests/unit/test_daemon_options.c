/* The command line of rmemfs: every option and every line that refuses one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/mountpoint.h"
#include "daemon/options.h"

enum { ARGS_MAX = 12 };

static char why[512];

/* Splits at blanks; the first word is the program's name. */
static int parse_with(const char *line, const char *config, struct options *options)
{
	static char copy[1024]; /* options point into it */
	static char program[] = "rmemfs";
	char *argv[ARGS_MAX + 1] = {program}, *save;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *at = strtok_r(copy, " ", &save); at; at = strtok_r(NULL, " ", &save)) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = at;
	}
	argv[argc] = NULL;
	why[0] = '\0';
	return options_parse(argc, argv, config, options, why, sizeof(why));
}

static int parse(const char *line, struct options *options)
{
	return parse_with(line, "/nonexistent/client.conf", options);
}

static void expect_refusal(const char *line, const char *text)
{
	struct options options;

	assert_int_not_equal(parse(line, &options), 0);
	assert_string_equal(why, text);
	options_fini(&options);
}

/* ---- what is accepted --------------------------------------------------------------------------
 */

static void options_parse__defaults(void **state)
{
	struct options o;

	assert_int_equal(parse("host:/exp /mnt", &o), 0);
	assert_string_equal(o.source.host, "host");
	assert_string_equal(o.source.export_name, "exp");
	assert_string_equal(o.source_text, "host:/exp");
	assert_string_equal(o.mountpoint_text, "/mnt");
	assert_false(o.foreground || o.read_only || o.help || o.version);
	assert_true(o.config.auto_transport);
	assert_int_equal(o.config.port, 0);
	assert_int_equal(o.config.connect_timeout, 5);
	assert_in_range(o.config.io_threads, 1, 4);
	assert_int_equal(o.config.buffers, 16);
	assert_int_equal(o.config.log_level, LOG_LEVEL_INFO);
	assert_string_equal(o.mount_options, "");
	options_fini(&o);
}

static void options_parse__every_setting(void **state)
{
	struct options o;

	assert_int_equal(parse("-f -o transport=tcp,port=65535,connect_timeout=60,io_threads=3,"
			       "buffers=4,merge_pages=1,spin_us=0,log_level=debug,allow_other,ro "
			       "[fe80::1]:/exp dir",
				 &o),
		0);
	assert_true(o.foreground && o.read_only && !o.config.auto_transport);
	assert_int_equal(o.config.transport, TRANSPORT_TCP);
	assert_int_equal(o.config.port, 65535);
	assert_int_equal(o.config.connect_timeout, 60);
	assert_int_equal(o.config.io_threads, 3);
	assert_int_equal(o.config.buffers, 4);
	assert_int_equal(o.config.merge_pages, 1);
	assert_int_equal(o.config.spin_us, 0);
	assert_int_equal(o.config.log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(o.mount_options, "allow_other,ro");
	assert_string_equal(o.source.host, "fe80::1");
	options_fini(&o);
}

static void options_parse__as_mount_calls_it(void **state)
{
	struct options o;

	assert_int_equal(parse("host:/exp /mnt -n -o rw,noauto,nofail,_netdev,user=joe,defaults "
			       "-o x-systemd.automount,comment=a,nosuid,noexec,noatime,,dev,suid",
				 &o),
		0);
	assert_false(o.read_only);
	assert_string_equal(o.mount_options, "rw,nosuid,noexec,noatime,dev,suid");
	options_fini(&o);
}

static void options_parse__last_of_ro_and_rw_counts(void **state)
{
	struct options o;

	assert_int_equal(parse("-o ro,rw h:/e /m", &o), 0);
	assert_false(o.read_only);
	options_fini(&o);
	assert_int_equal(parse("-o rw,ro h:/e /m", &o), 0);
	assert_true(o.read_only);
	options_fini(&o);
}

static void options_parse__transports(void **state)
{
	static const struct {
		const char *line;
		bool automatic;
		enum transport_kind kind;
	} cases[] = {
		{"-o transport=auto h:/e /m", true, 0},
		{"-o transport=verbs h:/e /m", false, TRANSPORT_VERBS},
		{"-o transport=tcp h:/e /m", false, TRANSPORT_TCP},
		{"-o transport=shm h:/e /m", false, TRANSPORT_SHM},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options o;

		assert_int_equal(parse(cases[i].line, &o), 0);
		assert_int_equal(o.config.auto_transport, cases[i].automatic);
		if (!cases[i].automatic)
			assert_int_equal(o.config.transport, cases[i].kind);
		options_fini(&o);
	}
}

static void options_parse__help_and_version_need_nothing_else(void **state)
{
	struct options o;

	assert_int_equal(parse("--help", &o), 0);
	assert_true(o.help);
	options_fini(&o);
	assert_int_equal(parse("-V h:/e", &o), 0);
	assert_true(o.version);
	options_fini(&o);
}

/* ---- what is refused ---------------------------------------------------------------------------
 */

static void options_parse__refusals(void **state)
{
	static const struct {
		const char *line, *text;
	} cases[] = {
		{"", "SOURCE and MOUNTPOINT are missing; see rmemfs --help"},
		{"h:/e", "MOUNTPOINT is missing; see rmemfs --help"},
		{"h:/e /m extra", "'extra': one operand too many; see rmemfs --help"},
		{"-x h:/e /m", "option '-x': unknown; see rmemfs --help"},
		{"--fast h:/e /m", "option '--fast': unknown; see rmemfs --help"},
		{"h:/e /m -o", "option '-o': needs a value"},
		{"h:/e /m -c", "option '-c': needs a value"},
		{"-c a -c b h:/e /m", "option '-c': given twice"},
		{"-o port=0 h:/e /m", "option 'port=0': must be 1..65535"},
		{"-o port=65536 h:/e /m", "option 'port=65536': must be 1..65535"},
		{"-o port=-1 h:/e /m", "option 'port=-1': must be 1..65535"},
		{"-o port=+1 h:/e /m", "option 'port=+1': must be 1..65535"},
		{"-o port= h:/e /m", "option 'port=': must be 1..65535"},
		{"-o port=12x h:/e /m", "option 'port=12x': must be 1..65535"},
		{"-o port=99999999999999999999999 h:/e /m",
			"option 'port=99999999999999999999999': must be 1..65535"},
		{"-o port h:/e /m", "option 'port': needs a value"},
		{"-o port=1,port=1 h:/e /m", "option 'port': given twice"},
		{"-o port=1 -o port=2 h:/e /m", "option 'port': given twice"},
		{"-o connect_timeout=0 h:/e /m", "option 'connect_timeout=0': must be 1..3600"},
		{"-o connect_timeout=3601 h:/e /m",
			"option 'connect_timeout=3601': must be 1..3600"},
		{"-o io_threads=17 h:/e /m", "option 'io_threads=17': must be 1..16"},
		{"-o buffers=1 h:/e /m", "option 'buffers=1': must be 2..256"},
		{"-o merge_pages=257 h:/e /m", "option 'merge_pages=257': must be 1..256"},
		{"-o spin_us=10001 h:/e /m", "option 'spin_us=10001': must be 0..10000"},
		{"-o transport=ib h:/e /m",
			"option 'transport=ib': must be auto, verbs, tcp or shm"},
		{"-o transport= h:/e /m", "option 'transport=': must be auto, verbs, tcp or shm"},
		{"-o transport h:/e /m", "option 'transport': needs a value"},
		{"-o log_level=loud h:/e /m",
			"option 'log_level=loud': must be error, warning, notice, info or debug"},
		{"-o ro=1 h:/e /m", "option 'ro': takes no value"},
		{"-o prot=1 h:/e /m", "option 'prot': unknown; see rmemfs --help"},
		{"-o remount h:/e /m", "option 'remount': unknown; see rmemfs --help"},
		{"-o =5 h:/e /m", "option '': unknown; see rmemfs --help"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_refusal(cases[i].line, cases[i].text);
}

static void options_parse__source_is_named(void **state)
{
	struct options o;

	assert_int_not_equal(parse("nonsense /m", &o), 0);
	assert_memory_equal(why, "source 'nonsense': ", strlen("source 'nonsense': "));
	options_fini(&o);
}

/* ---- the configuration file --------------------------------------------------------------------
 */

static char config_path[] = "/tmp/rmemfs-test-options.XXXXXX";

static void write_config(const char *text)
{
	FILE *f = fopen(config_path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_config(void **state)
{
	int fd = mkstemp(config_path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_config(void **state)
{
	return unlink(config_path);
}

static void options_parse__options_come_before_the_file(void **state)
{
	struct options o;

	write_config("port = 1000;\nbuffers = 8;\ntransport = \"shm\";\nlog_level = \"error\";\n");
	assert_int_equal(parse_with("-o port=2000,transport=tcp h:/e /m", config_path, &o), 0);
	assert_int_equal(o.config.port, 2000);
	assert_int_equal(o.config.buffers, 8);
	assert_int_equal(o.config.transport, TRANSPORT_TCP);
	assert_int_equal(o.config.log_level, LOG_LEVEL_ERROR);
	options_fini(&o);
}

static void options_parse__port_of_the_file_is_not_for_sockets(void **state)
{
	struct options o;

	write_config("port = 1000;\n");
	assert_int_equal(parse_with("/run/s:/e /m", config_path, &o), 0);
	assert_int_equal(o.config.port, 0);
	options_fini(&o);
	assert_int_equal(parse_with("-o transport=shm h:/e /m", config_path, &o), 0);
	assert_int_equal(o.config.port, 0);
	options_fini(&o);
	assert_int_equal(parse_with("h:/e /m", config_path, &o), 0);
	assert_int_equal(o.config.port, 1000);
	options_fini(&o);
}

static void options_parse__file_errors_name_the_line(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{"port = 1;\nprot = 2;\n", "%s:2: prot: unknown key"},
		{"port = 70000;\n", "%s:1: port: 70000: must be 1 to 65535"},
		{"transport = \"ib\";\n", "%s: transport: must be auto, verbs, tcp or shm"},
		{"log_level = \"loud\";\n",
			"%s: log_level: must be error, warning, notice, info or debug"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char expected[256];
		struct options o;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(expected, sizeof(expected), cases[i].expected, config_path);
#pragma GCC diagnostic pop
		write_config(cases[i].text);
		assert_int_not_equal(parse_with("h:/e /m", config_path, &o), 0);
		assert_string_equal(why, expected);
		options_fini(&o);
	}
}

static void options_parse__named_file_must_exist(void **state)
{
	struct options o;

	assert_int_equal(parse("-c /nonexistent/named.conf h:/e /m", &o), -ENOENT);
	assert_string_equal(why, "/nonexistent/named.conf: No such file or directory");
	options_fini(&o);
}

/* ---- mount points ------------------------------------------------------------------------------
 */

static void mountpoint_resolve__refusals(void **state)
{
	char out[4096], tiny[4];

	assert_int_equal(mountpoint_resolve("/nonexistent/dir", out, sizeof(out), why, sizeof(why)),
		-ENOENT);
	assert_string_equal(why, "mount point /nonexistent/dir: no such directory");
	assert_int_equal(
		mountpoint_resolve("/dev/null", out, sizeof(out), why, sizeof(why)), -ENOTDIR);
	assert_string_equal(why, "mount point /dev/null: not a directory");
	assert_int_equal(
		mountpoint_resolve("/usr", tiny, sizeof(tiny), why, sizeof(why)), -ENAMETOOLONG);
}

static void mountpoint_resolve__absolute(void **state)
{
	char out[4096];

	assert_int_equal(
		mountpoint_resolve("/usr/../usr/.", out, sizeof(out), why, sizeof(why)), 0);
	assert_string_equal(out, "/usr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_parse__defaults),
		cmocka_unit_test(options_parse__every_setting),
		cmocka_unit_test(options_parse__as_mount_calls_it),
		cmocka_unit_test(options_parse__last_of_ro_and_rw_counts),
		cmocka_unit_test(options_parse__transports),
		cmocka_unit_test(options_parse__help_and_version_need_nothing_else),
		cmocka_unit_test(options_parse__refusals),
		cmocka_unit_test(options_parse__source_is_named),
		cmocka_unit_test(options_parse__options_come_before_the_file),
		cmocka_unit_test(options_parse__port_of_the_file_is_not_for_sockets),
		cmocka_unit_test(options_parse__file_errors_name_the_line),
		cmocka_unit_test(options_parse__named_file_must_exist),
		cmocka_unit_test(mountpoint_resolve__refusals),
		cmocka_unit_test(mountpoint_resolve__absolute),
	};

	return cmocka_run_group_tests(tests, make_config, remove_config);
}
