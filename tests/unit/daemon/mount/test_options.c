/* The command line of rmemfs: every option, and every line that refuses one. */
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

#include "common/base/util.h"
#include "daemon/mount/mountpoint.h"
#include "daemon/file/cache_policy.h"
#include "daemon/serve/fs.h"
#include "daemon/mount/options.h"

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

static void expect_flag(const struct conf_key *key, bool value, const char *given)
{
	char line[128];
	struct options o;

	snprintf(line, sizeof(line), "-o %s h:/e /m", given);
	assert_int_equal(parse_with(line, config_path, &o), 0);
	assert_int_equal(*(const bool *)((const char *)&o.config + key->offset), value);
	options_fini(&o);
}

/* ---- what is accepted ------------------------------------------------------------------------ */

static void options_parse__defaults(void **state)
{
	struct options o;

	assert_int_equal(parse("host:/exp /mnt", &o), 0);
	assert_string_equal(o.source.host, "host");
	assert_string_equal(o.source.export_name, "exp");
	assert_string_equal(o.source_text, "host:/exp");
	assert_string_equal(o.mountpoint_text, "/mnt");
	assert_false(o.foreground || o.read_only || o.help || o.version);
	assert_int_equal(o.config.transport, TRANSPORT_AUTO);
	assert_int_equal(o.config.protection, PROTECTION_BEST);
	assert_int_equal(o.config.port, 0);
	assert_int_equal(o.config.connect_timeout, 5);
	assert_int_equal(o.config.peer_timeout, 5);
	assert_false(o.config.soft || o.config.debug_io);
	assert_int_equal(o.config.timeo, 60);
	assert_int_equal(o.config.interrupt_wait, 30);
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
			       "buffers=4,merge_pages=1,spin_us=0,log_level=error,allow_other,ro,"
			       "soft,timeo=3600,peer_timeout=1,cache=exclusive,readahead=128KiB,"
			       "ack=local,interrupt_wait=3600,protection=all "
			       "[fe80::1]:/exp dir",
				 &o),
		0);
	assert_true(o.foreground && o.read_only && o.config.soft);
	assert_int_equal(o.config.timeo, 3600);
	assert_int_equal(o.config.interrupt_wait, 3600);
	assert_int_equal(o.config.peer_timeout, 1);
	assert_int_equal(o.config.transport, TRANSPORT_TCP);
	assert_int_equal(o.config.cache, CACHE_EXCLUSIVE);
	assert_int_equal(o.config.ack, ACK_LOCAL);
	assert_int_equal(o.config.protection, PROTECTION_ALL);
	assert_int_equal(o.config.port, 65535);
	assert_int_equal(o.config.connect_timeout, 60);
	assert_int_equal(o.config.io_threads, 3);
	assert_int_equal(o.config.buffers, 4);
	assert_int_equal(o.config.merge_pages, 1);
	assert_int_equal(o.config.readahead, 128 << 10);
	assert_int_equal(o.config.spin_us, 0);
	assert_int_equal(o.config.log_level, LOG_LEVEL_ERROR);
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
	assert_string_equal(o.mount_options, "rw,noexec,noatime,suid,dev");
	options_fini(&o);
}

static void options_parse__when_reading_is_noted(void **state)
{
	static const struct {
		const char *line;
		enum access_mode access;
		bool nodiratime;
		const char *mount_options;
	} cases[] = {
		{"h:/e /m", ACCESS_RELATIVE, false, ""},
		{"-o noatime h:/e /m", ACCESS_NEVER, false, "noatime"},
		{"-o noatime,relatime h:/e /m", ACCESS_RELATIVE, false, "noatime"},
		{"-o strictatime,nodiratime h:/e /m", ACCESS_STRICT, true, ""},
		{"-o nodiratime,diratime,nostrictatime h:/e /m", ACCESS_RELATIVE, false, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options o;

		assert_int_equal(parse(cases[i].line, &o), 0);
		assert_int_equal(o.access, cases[i].access);
		assert_int_equal(o.nodiratime, cases[i].nodiratime);
		assert_string_equal(o.mount_options, cases[i].mount_options);
		options_fini(&o);
	}
}

static void options_parse__what_needs_no_doing_is_taken(void **state)
{
	struct options o;

	assert_int_equal(parse("-o silent,loud,iversion,noiversion,mand,nomand,acl,user_xattr,"
			       "nosymfollow,symfollow h:/e /m",
				 &o),
		0);
	assert_false(o.nosymfollow);
	assert_string_equal(o.mount_options, "");
	options_fini(&o);
	assert_int_equal(parse("-o symfollow,nosymfollow h:/e /m", &o), 0);
	assert_true(o.nosymfollow);
	assert_string_equal(o.mount_options, "");
	options_fini(&o);
}

static void options_parse__labels_go_to_the_kernel(void **state)
{
	struct options o;

	assert_int_equal(parse("-o context=\"a:b:c0,c1\",noatime,rootcontext=d h:/e /m", &o), 0);
	assert_string_equal(o.mount_options, "context=\"a:b:c0\\,c1\",noatime,rootcontext=d");
	assert_int_equal(o.access, ACCESS_NEVER);
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

static void options_parse__last_of_hard_and_soft_counts(void **state)
{
	static const struct {
		const char *line;
		bool soft;
	} cases[] = {
		{"-o soft h:/e /m", true},
		{"-o hard h:/e /m", false},
		{"-o soft,hard h:/e /m", false},
		{"-o hard -o soft h:/e /m", true},
		{"-o soft,soft h:/e /m", true},
		{"-o timeo=7,soft h:/e /m", true},
		{"-o soft,timeo=7,hard,soft h:/e /m", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options o;

		assert_int_equal(parse(cases[i].line, &o), 0);
		assert_int_equal(o.config.soft, cases[i].soft);
		options_fini(&o);
	}
}

/* The default of cache, or the file's value, is for mounts that don't share. */
static void options_parse__share_goes_with_no_cache(void **state)
{
	struct options o;

	assert_int_equal(parse("-o share h:/e /m", &o), 0);
	assert_true(o.config.share);
	options_fini(&o);
	assert_int_equal(parse("-o cache=none,share h:/e /m", &o), 0);
	options_fini(&o);
	assert_int_equal(parse("-o cache=none h:/e /m", &o), 0);
	assert_false(o.config.share);
	options_fini(&o);
}

/* Flags of the file, too: each flag has an option that cancels it. */
static void options_parse__flags_are_taken_back(void **state)
{
	static const char *const opposites[][2] = {
		{"soft", "hard"},
		{"exclusive", "noexclusive"},
		{"share", "noshare"},
		{"exit_when_lost", "noexit_when_lost"},
		{"revive", "norevive"},
		{"low_latency", "nolow_latency"},
		{"debug_io", "nodebug_io"},
	};
	unsigned nflags = 0;

	for (const struct conf_key *key = client_config_keys; key->name; key++)
		nflags += key->type == CONF_BOOL;
	assert_int_equal(nflags, ARRAY_SIZE(opposites));
	for (size_t i = 0; i < ARRAY_SIZE(opposites); i++) {
		const char *on = opposites[i][0], *off = opposites[i][1];
		const struct conf_key *key = conf_find(client_config_keys, on);
		char text[64];

		snprintf(text, sizeof(text), "%s = true;\n", on);
		write_config(text);
		expect_flag(key, true, "ro");
		expect_flag(key, false, off);
		snprintf(text, sizeof(text), "%s,%s", off, on);
		expect_flag(key, true, text);
		snprintf(text, sizeof(text), "%s,%s", on, off);
		expect_flag(key, false, text);
	}
}

static void options_parse__debug_io_raises_the_log_level(void **state)
{
	struct options o;

	assert_int_equal(parse("-o log_level=error,debug_io h:/e /m", &o), 0);
	assert_true(o.config.debug_io);
	assert_int_equal(o.config.log_level, LOG_LEVEL_DEBUG);
	options_fini(&o);
}

static void options_parse__log_level_as_an_option_of_its_own(void **state)
{
	struct options o;

	assert_int_equal(parse("--log-level warning h:/e /m", &o), 0);
	assert_int_equal(o.config.log_level, LOG_LEVEL_WARNING);
	options_fini(&o);
	assert_int_equal(parse("h:/e /m --log-level=debug -o ro", &o), 0);
	assert_int_equal(o.config.log_level, LOG_LEVEL_DEBUG);
	options_fini(&o);
}

static void options_parse__transports(void **state)
{
	static const struct {
		const char *line;
		int transport;
	} cases[] = {
		{"-o transport=auto h:/e /m", TRANSPORT_AUTO},
		{"-o transport=verbs h:/e /m", TRANSPORT_VERBS},
		{"-o transport=tcp h:/e /m", TRANSPORT_TCP},
		{"-o transport=shm h:/e /m", TRANSPORT_SHM},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct options o;

		assert_int_equal(parse(cases[i].line, &o), 0);
		assert_int_equal(o.config.transport, cases[i].transport);
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

/* ---- what is refused ------------------------------------------------------------------------- */

static void options_parse__refusals(void **state)
{
	static const struct {
		const char *line, *text;
	} cases[] = {
		{"", "SOURCE and MOUNTPOINT are missing; see --help"},
		{"-o context h:/e /m", "option 'context': unknown; see --help"},
		{"h:/e", "MOUNTPOINT is missing; see --help"},
		{"h:/e /m extra", "'extra': one operand too many; see --help"},
		{"-x h:/e /m", "option '-x': unknown; see --help"},
		{"-f -xf h:/e /m", "option '-x': unknown; see --help"},
		{"--foreground -fx h:/e /m", "option '-x': unknown; see --help"},
		{"--fast h:/e /m", "option '--fast': unknown; see --help"},
		{"--fast=1 h:/e /m", "option '--fast': unknown; see --help"},
		{"--froeground h:/e /m",
			"option '--froeground': unknown; did you mean '--foreground'?"},
		{"--foreground=1 h:/e /m", "option '--foreground': takes no value"},
		{"h:/e /m -o", "option '-o': needs a value"},
		{"h:/e /m -fo", "option '-o': needs a value"},
		{"h:/e /m --options", "option '--options': needs a value"},
		{"h:/e /m -c", "option '-c': needs a value"},
		{"h:/e /m --log-level", "option '--log-level': needs a value"},
		{"h:/e /m --config=", "option '-c': must not be empty"},
		{"h:/e /m --log-level=", "option '--log-level': must not be empty"},
		{"-c a -c b h:/e /m", "option '-c': given twice"},
		{"-c a --config b h:/e /m", "option '-c': given twice"},
		{"--log-level info --log-level info h:/e /m", "option '--log-level': given twice"},
		{"--log-level info -o log_level=info h:/e /m", "option 'log_level': given twice"},
		{"--log-level loud h:/e /m",
			"option '--log-level=loud': must be error, warning, notice, info or debug"},
		{"-o port=0 h:/e /m", "option 'port=0': must be a whole number from 1 to 65535"},
		{"-o port=65536 h:/e /m",
			"option 'port=65536': must be a whole number from 1 to 65535"},
		{"-o port=-1 h:/e /m", "option 'port=-1': must be a whole number from 1 to 65535"},
		{"-o port=+7 h:/e /m", "option 'port=+7': must be a whole number from 1 to 65535"},
		{"-o port=0x10 h:/e /m",
			"option 'port=0x10': must be a whole number from 1 to 65535"},
		{"-o port= h:/e /m", "option 'port=': must be a whole number from 1 to 65535"},
		{"-o port=12x h:/e /m",
			"option 'port=12x': must be a whole number from 1 to 65535"},
		{"-o port=1.5 h:/e /m",
			"option 'port=1.5': must be a whole number from 1 to 65535"},
		{"-o port=18446744073709551617 h:/e /m",
			"option 'port=18446744073709551617': must be a whole number from 1 to 65535"},
		{"-o port=99999999999999999999999 h:/e /m",
			"option 'port=99999999999999999999999': must be a whole number from 1 to 65535"},
		{"-o port h:/e /m", "option 'port': needs a value"},
		{"-o port=1,port=1 h:/e /m", "option 'port': given twice"},
		{"-o port=1 -o port=2 h:/e /m", "option 'port': given twice"},
		{"-o connect_timeout=0 h:/e /m",
			"option 'connect_timeout=0': must be a whole number from 1 to 3600"},
		{"-o connect_timeout=3601 h:/e /m",
			"option 'connect_timeout=3601': must be a whole number from 1 to 3600"},
		{"-o peer_timeout=0 h:/e /m",
			"option 'peer_timeout=0': must be a whole number from 1 to 3600"},
		{"-o peer_timeout=3601 h:/e /m",
			"option 'peer_timeout=3601': must be a whole number from 1 to 3600"},
		{"-o peer_timeout=-5 h:/e /m",
			"option 'peer_timeout=-5': must be a whole number from 1 to 3600"},
		{"-o peer_timeout=5s h:/e /m",
			"option 'peer_timeout=5s': must be a whole number from 1 to 3600"},
		{"-o interrupt_wait=0 h:/e /m",
			"option 'interrupt_wait=0': must be a whole number from 1 to 3600"},
		{"-o timeo=0 h:/e /m", "option 'timeo=0': must be a whole number from 1 to 3600"},
		{"-o timeo=3601 h:/e /m",
			"option 'timeo=3601': must be a whole number from 1 to 3600"},
		{"-o timeo=soon h:/e /m",
			"option 'timeo=soon': must be a whole number from 1 to 3600"},
		{"-o io_threads=0 h:/e /m",
			"option 'io_threads=0': must be a whole number from 1 to 16"},
		{"-o io_threads=17 h:/e /m",
			"option 'io_threads=17': must be a whole number from 1 to 16"},
		{"-o buffers=1 h:/e /m",
			"option 'buffers=1': must be a whole number from 2 to 256"},
		{"-o buffers=257 h:/e /m",
			"option 'buffers=257': must be a whole number from 2 to 256"},
		{"-o ack=soon h:/e /m", "option 'ack=soon': must be remote or local"},
		{"-o cache=some h:/e /m", "option 'cache=some': must be none, shared or exclusive"},
		{"-o merge_pages=0 h:/e /m",
			"option 'merge_pages=0': must be a whole number from 1 to 256"},
		{"-o merge_pages=257 h:/e /m",
			"option 'merge_pages=257': must be a whole number from 1 to 256"},
		{"-o spin_us=10001 h:/e /m",
			"option 'spin_us=10001': must be a whole number from 0 to 10000"},
		{"-o spin_us=-1 h:/e /m",
			"option 'spin_us=-1': must be a whole number from 0 to 10000"},
		{"-o readahead=17MiB h:/e /m", "option 'readahead=17MiB': must be 0B to 16MiB"},
		{"-o readahead=1000 h:/e /m",
			"option 'readahead=1000': must be a multiple of 1KiB"},
		{"-o timeo=7 h:/e /m",
			"option 'timeo': needs soft; a hard mount waits without end"},
		{"-o share,cache=shared h:/e /m",
			"option 'cache': beside share only none, as what others write can't be "
			"cached; or leave 'cache' out"},
		{"-o cache=exclusive,noshare,share h:/e /m",
			"option 'cache': beside share only none, as what others write can't be "
			"cached; or leave 'cache' out"},
		{"-o lease_time=3 h:/e /m",
			"option 'lease_time': belongs to the server's server.conf"},
		{"-o exclusive,share h:/e /m",
			"exclusive and share: one keeps other mounts out, the other lets them in: "
			"leave one of them out"},
		{"-o noshare=1 h:/e /m", "option 'noshare': takes no value"},
		{"-o nosoft h:/e /m", "option 'nosoft': unknown; did you mean 'soft'?"},
		{"-o nobuffers h:/e /m", "option 'nobuffers': unknown; did you mean 'buffers'?"},
		{"-o nodebugio h:/e /m", "option 'nodebugio': unknown; did you mean 'nodebug_io'?"},
		{"-o soft,timeo=7,hard h:/e /m",
			"option 'timeo': needs soft; a hard mount waits without end"},
		{"-o soft=yes h:/e /m", "option 'soft': takes no value"},
		{"-o soft= h:/e /m", "option 'soft': takes no value"},
		{"-o hard=1 h:/e /m", "option 'hard': takes no value"},
		{"-o debug_io=true h:/e /m", "option 'debug_io': takes no value"},
		{"-o transport=tcp /run/s:/e /m",
			"source '/run/s': a socket's path, which transport=tcp can't use: name a host, or leave 'transport' out"},
		{"-o port=7470 /run/s:/e /m",
			"option 'port': shm has no ports: leave 'port' out, or use tcp or verbs"},
		{"-o transport=shm,port=7470 h:/e /m",
			"option 'port': shm has no ports: leave 'port' out, or use tcp or verbs"},
		{"-o transport=ib h:/e /m",
			"option 'transport=ib': must be auto, verbs, tcp or shm"},
		{"-o transport=TCP h:/e /m",
			"option 'transport=TCP': must be auto, verbs, tcp or shm"},
		{"-o transport= h:/e /m", "option 'transport=': must be auto, verbs, tcp or shm"},
		{"-o transport h:/e /m", "option 'transport': needs a value"},
		{"-o protection=some h:/e /m",
			"option 'protection=some': must be best, all or messages"},
		{"-o log_level=loud h:/e /m",
			"option 'log_level=loud': must be error, warning, notice, info or debug"},
		{"-o ro=1 h:/e /m", "option 'ro': takes no value"},
		{"-o prot=1 h:/e /m", "option 'prot': unknown; did you mean 'port'?"},
		{"-o loglevel=info h:/e /m",
			"option 'loglevel': unknown; did you mean 'log_level'?"},
		{"-o sofd h:/e /m", "option 'sofd': unknown; did you mean 'soft'?"},
		{"-o noatimes h:/e /m", "option 'noatimes': unknown; did you mean 'noatime'?"},
		{"-o nofial h:/e /m", "option 'nofial': unknown; did you mean 'nofail'?"},
		{"-o remount=1 h:/e /m", "option 'remount': takes no value"},
		{"-o =5 h:/e /m", "option '': unknown; see --help"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_refusal(cases[i].line, cases[i].text);
}

static void options_parse__sources(void **state)
{
	expect_refusal("nonsense /m", "source 'nonsense': must be HOST:/EXPORT or /SOCKET:/EXPORT");
	expect_refusal("host: /m", "source 'host:': must be HOST:/EXPORT or /SOCKET:/EXPORT");
	expect_refusal("host:/ /m", "source 'host:/': no export is named after :/");
	expect_refusal(":/e /m", "source ':/e': no host is named");
	expect_refusal("h:/a/b /m", "source 'h:/a/b': an export's name has no /");
	expect_refusal(
		"::1:/e /m", "source '::1:/e': an IPv6 address stands in brackets, as in [::1]");
}

/* Blanks and lengths that a split line can't hold. */
static void expect_refusal_of(const char *option, const char *source, const char *text)
{
	char program[] = "rmemfs", switch_o[] = "-o", mountpoint[] = "/m";
	autofree char *item = strdup(option), *from = strdup(source);
	char *argv[] = {program, switch_o, item, from, mountpoint, NULL};
	struct options o;

	assert_int_not_equal(
		options_parse(5, argv, "/nonexistent/client.conf", &o, why, sizeof(why)), 0);
	assert_string_equal(why, text);
	options_fini(&o);
}

static void options_parse__blanks_are_no_digits(void **state)
{
	expect_refusal_of(
		"port= 7", "h:/e", "option 'port= 7': must be a whole number from 1 to 65535");
	expect_refusal_of(
		"port=7 ", "h:/e", "option 'port=7 ': must be a whole number from 1 to 65535");
	expect_refusal_of("ro, rw", "h:/e", "option ' rw': unknown; did you mean 'rw'?");
	expect_refusal_of("", "", "source '': must be HOST:/EXPORT or /SOCKET:/EXPORT");
}

static void options_parse__limits_of_length(void **state)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[64] = '\0';
	memcpy(text, "h:/", 3);
	text[3 + 64] = '\0';
	memset(text + 3, 'x', 64);
	expect_refusal_of("ro", text,
		"source 'h:/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...': "
		"an export's name has at most 63 bytes");
	memset(text, 'x', sizeof(text));
	memcpy(text, "/run/", 5);
	memcpy(text + 108, ":/e", 4);
	expect_refusal_of("ro", text,
		"source '/run/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...': "
		"a socket's path has at most 107 bytes");
	memset(text, 'x', sizeof(text));
	memcpy(text + 256, ":/e", 4);
	expect_refusal_of("ro", text,
		"source 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...': "
		"a host's name has at most 255 bytes");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	expect_refusal_of(text, "h:/e",
		"option 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...': "
		"unknown; see --help");
}

static void options_parse__mount_point_is_a_path(void **state)
{
	char program[] = "rmemfs", source[] = "h:/e", path[5000];
	char *argv[] = {program, source, path, NULL};
	struct options o;

	memset(path, 'x', sizeof(path));
	path[4096] = '\0';
	assert_int_equal(
		options_parse(3, argv, "/nonexistent/client.conf", &o, why, sizeof(why)), -EINVAL);
	assert_string_equal(why,
		"mount point 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
		": must be at most 4095 bytes long");
	options_fini(&o);
	path[4095] = '\0';
	assert_int_equal(
		options_parse(3, argv, "/nonexistent/client.conf", &o, why, sizeof(why)), 0);
	options_fini(&o);
}

/* ---- the configuration file ------------------------------------------------------------------ */

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
		{"port = 1;\nprot = 2;\n", "%s:2: prot: unknown key; did you mean 'port'?"},
		{"port = 70000;\n", "%s:1: port: '70000': must be a whole number from 1 to 65535"},
		{"\ntransport = \"ib\";\n",
			"%s:2: transport: 'ib': must be auto, verbs, tcp or shm"},
		{"\n\nlog_level = \"loud\";\n",
			"%s:3: log_level: 'loud': must be error, warning, notice, info or debug"},
		{"soft = 1;\n", "%s:1: soft: must be true or false"},
		{"timeo = 3601;\n", "%s:1: timeo: '3601': must be a whole number from 1 to 3600"},
		{"hard = true;\n", "%s:1: hard: unknown key; see rmemfs.conf(5)"},
		{"\nlease_time = 3;\n", "%s:2: lease_time: belongs to the server's server.conf"},
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

static void options_parse__the_file_may_say_soft_and_timeo(void **state)
{
	struct options o;

	/* timeo alone is a default for soft mounts. */
	write_config("timeo = 7;\n");
	assert_int_equal(parse_with("h:/e /m", config_path, &o), 0);
	assert_false(o.config.soft);
	options_fini(&o);
	assert_int_equal(parse_with("-o soft h:/e /m", config_path, &o), 0);
	assert_true(o.config.soft);
	assert_int_equal(o.config.timeo, 7);
	options_fini(&o);
	write_config("soft = true;\n");
	assert_int_equal(parse_with("-o timeo=9 h:/e /m", config_path, &o), 0);
	assert_true(o.config.soft);
	assert_int_equal(o.config.timeo, 9);
	options_fini(&o);
	assert_int_equal(parse_with("-o hard h:/e /m", config_path, &o), 0);
	assert_false(o.config.soft);
	options_fini(&o);
}

static void options_parse__exclusive_beside_the_file(void **state)
{
	char expected[256];
	struct options o;

	write_config("share = true;\n");
	assert_int_not_equal(parse_with("-o exclusive h:/e /m", config_path, &o), 0);
	snprintf(expected, sizeof(expected),
		"option 'exclusive': %s says share: give noshare as well, or leave 'exclusive' out",
		config_path);
	assert_string_equal(why, expected);
	options_fini(&o);
	assert_int_equal(parse_with("-o exclusive,noshare h:/e /m", config_path, &o), 0);
	assert_true(o.config.exclusive);
	options_fini(&o);
	write_config("exclusive = true;\n");
	assert_int_not_equal(parse_with("-o share h:/e /m", config_path, &o), 0);
	snprintf(expected, sizeof(expected),
		"option 'share': %s says exclusive: give noexclusive as well, or leave 'share' out",
		config_path);
	assert_string_equal(why, expected);
	options_fini(&o);
}

static void options_parse__the_file_says_share(void **state)
{
	char expected[256];
	struct options o;

	write_config("share = true;\ncache = \"exclusive\";\n");
	assert_int_equal(parse_with("h:/e /m", config_path, &o), 0);
	assert_true(o.config.share);
	options_fini(&o);
	assert_int_equal(parse_with("-o noshare,cache=shared h:/e /m", config_path, &o), 0);
	options_fini(&o);
	assert_int_not_equal(parse_with("-o cache=shared h:/e /m", config_path, &o), 0);
	snprintf(expected, sizeof(expected),
		"option 'cache': only none, as %s says share, and what others write can't be "
		"cached; or noshare, or leave 'cache' out",
		config_path);
	assert_string_equal(why, expected);
	options_fini(&o);
}

static void options_parse__log_level_comes_before_the_file(void **state)
{
	struct options o;

	write_config("log_level = \"error\";\n");
	assert_int_equal(parse_with("--log-level debug h:/e /m", config_path, &o), 0);
	assert_int_equal(o.config.log_level, LOG_LEVEL_DEBUG);
	options_fini(&o);
}

static void options_parse__named_file_must_exist(void **state)
{
	struct options o;

	assert_int_equal(parse("-c /nonexistent/named.conf h:/e /m", &o), -ENOENT);
	assert_string_equal(
		why, "configuration file /nonexistent/named.conf: No such file or directory");
	options_fini(&o);
}

/* ---- mount points ---------------------------------------------------------------------------- */

static void mountpoint_resolve__refusals(void **state)
{
	char out[4096], tiny[4];

	assert_int_equal(
		mountpoint_resolve("/nonexistent/dir", false, out, sizeof(out), why, sizeof(why)),
		-ENOENT);
	assert_string_equal(why, "mount point /nonexistent/dir: no such directory: make it first");
	assert_int_equal(mountpoint_resolve("/dev/null", false, out, sizeof(out), why, sizeof(why)),
		-ENOTDIR);
	assert_string_equal(why, "mount point /dev/null: not a directory: name a directory");
	assert_int_equal(mountpoint_resolve("/usr", false, tiny, sizeof(tiny), why, sizeof(why)),
		-ENAMETOOLONG);
}

static void mountpoint_resolve__absolute(void **state)
{
	char out[4096];

	assert_int_equal(
		mountpoint_resolve("/usr/../usr/.", false, out, sizeof(out), why, sizeof(why)), 0);
	assert_string_equal(out, "/usr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_parse__defaults),
		cmocka_unit_test(options_parse__every_setting),
		cmocka_unit_test(options_parse__as_mount_calls_it),
		cmocka_unit_test(options_parse__when_reading_is_noted),
		cmocka_unit_test(options_parse__what_needs_no_doing_is_taken),
		cmocka_unit_test(options_parse__labels_go_to_the_kernel),
		cmocka_unit_test(options_parse__last_of_ro_and_rw_counts),
		cmocka_unit_test(options_parse__last_of_hard_and_soft_counts),
		cmocka_unit_test(options_parse__share_goes_with_no_cache),
		cmocka_unit_test(options_parse__flags_are_taken_back),
		cmocka_unit_test(options_parse__debug_io_raises_the_log_level),
		cmocka_unit_test(options_parse__log_level_as_an_option_of_its_own),
		cmocka_unit_test(options_parse__transports),
		cmocka_unit_test(options_parse__help_and_version_need_nothing_else),
		cmocka_unit_test(options_parse__refusals),
		cmocka_unit_test(options_parse__sources),
		cmocka_unit_test(options_parse__blanks_are_no_digits),
		cmocka_unit_test(options_parse__limits_of_length),
		cmocka_unit_test(options_parse__mount_point_is_a_path),
		cmocka_unit_test(options_parse__options_come_before_the_file),
		cmocka_unit_test(options_parse__port_of_the_file_is_not_for_sockets),
		cmocka_unit_test(options_parse__file_errors_name_the_line),
		cmocka_unit_test(options_parse__the_file_may_say_soft_and_timeo),
		cmocka_unit_test(options_parse__exclusive_beside_the_file),
		cmocka_unit_test(options_parse__the_file_says_share),
		cmocka_unit_test(options_parse__log_level_comes_before_the_file),
		cmocka_unit_test(options_parse__named_file_must_exist),
		cmocka_unit_test(mountpoint_resolve__refusals),
		cmocka_unit_test(mountpoint_resolve__absolute),
	};

	return cmocka_run_group_tests(tests, make_config, remove_config);
}
