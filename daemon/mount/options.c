#include "daemon/mount/options.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/conf/args.h"
#include "common/base/util.h"
#include "daemon/mount/sharing_options.h"

enum { OPT_LOG_LEVEL = 256 };

static const struct option long_options[] = {
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{"options", required_argument, NULL, 'o'},
	{"foreground", no_argument, NULL, 'f'},
	{"config", required_argument, NULL, 'c'},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{0},
};

__attribute__((format(printf, 3, 4))) static int refuse(
	char *why, size_t whylen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, whylen, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- mount options --------------------------------------------------------------------------- */

/* Generic options that are passed to libfuse, which knows them. */
static const char *const passed[] = {"ro", "rw", "exec", "noexec", "async", "sync", "dirsync",
	"atime", "noatime", "allow_other"};

/* Whether the kernel obeys set-user-id programs and device files. mount(8) before 2.39 keeps "suid"
 * and "dev" to itself. So each has a second name, which mount(8) does not know and hands on. */
static const struct permission_word {
	const char *name;
	size_t offset;
	enum permission permission;
} permission_words[] = {
	{"nosuid", offsetof(struct options, suid), PERMISSION_REFUSED},
	{"suid", offsetof(struct options, suid), PERMISSION_GIVEN},
	{"allow_suid", offsetof(struct options, suid), PERMISSION_GIVEN},
	{"nodev", offsetof(struct options, dev), PERMISSION_REFUSED},
	{"dev", offsetof(struct options, dev), PERMISSION_GIVEN},
	{"allow_dev", offsetof(struct options, dev), PERMISSION_GIVEN},
};

static const char *const access_times[] = {
	"atime", "noatime", "relatime", "strictatime", "diratime", "nodiratime"};

/* Options for mount(8) and fstab, about access times, which the daemon keeps, or for what holds
 * anyway. */
static const char *const ignored[] = {
	"defaults",
	"auto",
	"noauto",
	"user",
	"nouser",
	"users",
	"nousers",
	"owner",
	"noowner",
	"group",
	"nogroup",
	"nofail",
	"_netdev",
	"diratime",
	"nodiratime",
	"relatime",
	"norelatime",
	"strictatime",
	"nostrictatime",
	"lazytime",
	"nolazytime",
	"default_permissions",
	"silent",
	"loud",
	"iversion",
	"noiversion",
	"mand",
	"nomand",
	"acl",
	"user_xattr",
	"symfollow",
};

/* Options that take back a flag which the file, or an option before, has set. */
static const struct opposite {
	const char *text, *key;
} opposites[] = {
	{"hard", "soft"},
	{"noexclusive", "exclusive"},
	{"noshare", "share"},
	{"noexit_when_lost", "exit_when_lost"},
	{"norevive", "revive"},
	{"nolow_latency", "low_latency"},
	{"nodebug_io", "debug_io"},
};

/* Labels of the kernel's security module. */
static const char *const contexts[] = {
	"context",
	"fscontext",
	"defcontext",
	"rootcontext",
};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* x-systemd.automount, comment=backup, user=joe. */
static bool is_remark(const char *item)
{
	return strncmp(item, "x-", 2) == 0 || strncmp(item, "X-", 2) == 0 ||
	       strncmp(item, "comment=", 8) == 0 || strncmp(item, "user=", 5) == 0;
}

/* Options that the kernel shows of a mount. mount(8) hands them back to us for a remount. */
static bool is_kernels(const char *item)
{
	return strncmp(item, "user_id=", 8) == 0 || strncmp(item, "group_id=", 9) == 0 ||
	       strncmp(item, "max_read=", 9) == 0;
}

static int append_item(char **list, const char *item)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", *list, (*list)[0] ? "," : "", item) < 0)
		return -ENOMEM;
	free(*list);
	*list = longer;
	return 0;
}

/* A label may hold commas, which libfuse wants behind a backslash. */
static int append_context(char **list, const char *item)
{
	autofree char *escaped = malloc(2 * strlen(item) + 1);
	char *to = escaped;

	if (!escaped)
		return -ENOMEM;
	for (; *item; *to++ = *item++)
		if (*item == ',' || *item == '\\')
			*to++ = '\\';
	*to = '\0';
	return append_item(list, escaped);
}

static bool was_given(const struct options *options, const char *name)
{
	autofree char *copy = strdup(options->given);
	char *save;

	for (char *at = copy ? strtok_r(copy, ",", &save) : NULL; at;
		at = strtok_r(NULL, ",", &save))
		if (strcmp(at, name) == 0)
			return true;
	return false;
}

/* option: as it was written. */
static int apply_setting(struct options *options, const char *option, const struct conf_key *key,
	const char *value, char *why, size_t whylen)
{
	char must[256], quoted[WORD_QUOTED_BYTES];
	int err;

	if (was_given(options, key->name))
		return refuse(why, whylen, "option '%s': given twice", key->name);
	err = append_item(&options->given, key->name);
	if (err)
		return err;
	err = conf_set(key, &options->config, value, must, sizeof(must));
	if (err == -EINVAL)
		return refuse(why, whylen, "option %s: %s", word_quote(option, quoted), must);
	return err;
}

/* Finds the flag that `name` sets or takes back, and its new value; NULL: it is none. */
static const struct conf_key *find_flag(const char *name, const char **value)
{
	const struct conf_key *key = conf_find(client_config_keys, name);

	*value = "true";
	for (size_t i = 0; !key && i < ARRAY_SIZE(opposites); i++) {
		if (strcmp(name, opposites[i].text) != 0)
			continue;
		key = conf_find(client_config_keys, opposites[i].key);
		*value = "false";
	}
	return key && key->type == CONF_BOOL ? key : NULL;
}

static const struct permission_word *find_permission(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(permission_words); i++)
		if (strcmp(name, permission_words[i].name) == 0)
			return &permission_words[i];
	return NULL;
}

static int refuse_unknown(const char *name, char *why, size_t whylen)
{
	struct word_guess guess = {.unknown = name};
	char quoted[WORD_QUOTED_BYTES];

	if (conf_is_elsewhere(&client_config_elsewhere, name))
		return refuse(why, whylen, "option '%s': belongs to %s", name,
			client_config_elsewhere.file);
	for (size_t i = 0; i < ARRAY_SIZE(opposites); i++)
		word_guess_offer(&guess, opposites[i].text);
	for (const struct conf_key *key = client_config_keys; key->name; key++)
		word_guess_offer(&guess, key->name);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		word_guess_offer(&guess, passed[i]);
	for (size_t i = 0; i < ARRAY_SIZE(permission_words); i++)
		word_guess_offer(&guess, permission_words[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		word_guess_offer(&guess, ignored[i]);
	word_quote(name, quoted);
	if (guess.nearest)
		return refuse(why, whylen, "option %s: unknown; did you mean '%s'?", quoted,
			guess.nearest);
	return refuse(why, whylen, "option %s: unknown; see --help", quoted);
}

static void apply_sync(struct options *options, const char *name)
{
	if (strcmp(name, "sync") == 0)
		options->sync = true;
	else if (strcmp(name, "async") == 0)
		options->sync = false;
	else if (strcmp(name, "dirsync") == 0)
		options->dirsync = true;
}

static void apply_access(struct options *options, const char *name)
{
	options->access_given |= is_one_of(name, access_times, ARRAY_SIZE(access_times));
	if (strcmp(name, "noatime") == 0)
		options->access = ACCESS_NEVER;
	else if (strcmp(name, "strictatime") == 0)
		options->access = ACCESS_STRICT;
	else if (strcmp(name, "atime") == 0 || strcmp(name, "relatime") == 0)
		options->access = ACCESS_RELATIVE;
	else if (strcmp(name, "nodiratime") == 0)
		options->nodiratime = true;
	else if (strcmp(name, "diratime") == 0)
		options->nodiratime = false;
}

/* Applies an option without a value. */
static int apply_flag(struct options *options, const char *name)
{
	const char *value;
	const struct conf_key *key = find_flag(name, &value);
	const struct permission_word *word = find_permission(name);

	if (word) {
		*(enum permission *)((char *)options + word->offset) = word->permission;
		return 0;
	}
	if (key) {
		int err = append_item(&options->given, key->name);

		return err ? err : conf_set(key, &options->config, value, NULL, 0);
	}
	if (strcmp(name, "remount") == 0)
		options->remount = true;
	else if (strcmp(name, "ro") == 0)
		options->read_only = true;
	else if (strcmp(name, "rw") == 0)
		options->read_only = false;
	else if (strcmp(name, "nosymfollow") == 0)
		options->nosymfollow = true;
	else if (strcmp(name, "symfollow") == 0)
		options->nosymfollow = false;
	apply_access(options, name);
	apply_sync(options, name);
	if (!is_one_of(name, passed, ARRAY_SIZE(passed)))
		return 0;
	return append_item(&options->mount_options, name);
}

static bool is_flag(const char *name)
{
	const char *value;

	return find_flag(name, &value) || find_permission(name) || strcmp(name, "remount") == 0 ||
	       strcmp(name, "nosymfollow") == 0 || is_one_of(name, passed, ARRAY_SIZE(passed)) ||
	       is_one_of(name, ignored, ARRAY_SIZE(ignored));
}

static int apply_item(struct options *options, const char *item, char *why, size_t whylen)
{
	const char *equals = strchr(item, '=');
	autofree char *name = equals ? strndup(item, (size_t)(equals - item)) : strdup(item);
	const struct conf_key *key;

	if (!name)
		return -ENOMEM;
	if (is_remark(item))
		return 0;
	if (is_kernels(item)) {
		options->kernels = true;
		return 0;
	}
	if (equals && is_one_of(name, contexts, ARRAY_SIZE(contexts)))
		return append_context(&options->mount_options, item);
	if (is_flag(name)) {
		if (equals)
			return refuse(why, whylen, "option '%s': takes no value", name);
		return apply_flag(options, name);
	}
	key = conf_find(client_config_keys, name);
	if (!key)
		return options->sloppy ? 0 : refuse_unknown(name, why, whylen);
	if (!equals)
		return refuse(why, whylen, "option '%s': needs a value", name);
	return apply_setting(options, item, key, equals + 1, why, whylen);
}

/* Cuts the first item off. A comma between quotes belongs to the value. */
static char *next_item(char **rest)
{
	char *item = *rest, *end = item;
	bool quoted = false;

	if (!item)
		return NULL;
	for (; *end && (quoted || *end != ','); end++)
		if (*end == '"')
			quoted = !quoted;
	*rest = *end ? end + 1 : NULL;
	*end = '\0';
	return item;
}

static int apply_list(struct options *options, const char *list, char *why, size_t whylen)
{
	autofree char *copy = strndup(list, strlen(list) - options->nobodys);
	char *rest = copy, *item;
	int err;

	if (!copy)
		return -ENOMEM;
	while ((item = next_item(&rest))) {
		if (item[0] == '\0')
			continue;
		err = apply_item(options, item, why, whylen);
		if (err)
			return err;
	}
	return 0;
}

/* mount(8) runs /sbin/mount.TYPE, a link to us. */
static bool is_helper(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	return strncmp(slash ? slash + 1 : argv0, "mount.", 6) == 0;
}

/* ---- mount.fuse3 ----------------------------------------------------------------------------- */

/* Whether item is one of the list's; with *last only if it is the last one. */
static bool options_lists(const char *list, const char *item, bool last)
{
	size_t len = strlen(item);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, item, len) == 0 && (at[len] == '\0' || (!last && at[len] == ',')))
			return true;
	}
	return false;
}

/* If mount(8) finds no helper of ours it runs mount.fuse3, and that runs
 *
 *     rmemfs SOURCE MOUNTPOINT -o LIST
 *
 * The end of LIST is its own: "dev" unless there is "nodev", then "suid" unless there is "nosuid".
 * The user has not asked for these. Returns how many bytes at the end they are.
 */
static size_t words_of_mount_fuse(int argc, char **argv)
{
	const char *list;

	if (is_helper(argv[0]) || argc != 5 || strcmp(argv[3], "-o") != 0)
		return 0;
	list = argv[4];
	if (options_lists(list, "dev,suid", true))
		return strlen("dev,suid");
	if (options_lists(list, "suid", true) && options_lists(list, "nodev", false))
		return strlen("suid");
	if (options_lists(list, "dev", true) && options_lists(list, "nosuid", false))
		return strlen("dev");
	return 0;
}

/* ---- set-user-id programs and device files --------------------------------------------------- */

/* A list with the kernel's options has all flags that hold now, changed by the user's. */
static bool is_given(const struct options *options, enum permission permission)
{
	return permission == PERMISSION_GIVEN ||
	       (permission == PERMISSION_UNSAID && options->remount && options->kernels);
}

/* libfuse mounts with nosuid,nodev unless told otherwise. */
static int pass_permissions(struct options *options)
{
	int err = 0;

	if (options->suid == PERMISSION_GIVEN)
		err = append_item(&options->mount_options, "suid");
	if (!err && options->dev == PERMISSION_GIVEN)
		err = append_item(&options->mount_options, "dev");
	return err;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int take_once(const char **value, const char *option, char *why, size_t whylen)
{
	if (*value)
		return refuse(why, whylen, "option '%s': given twice", option);
	if (optarg[0] == '\0')
		return refuse(why, whylen, "option '%s': must not be empty", option);
	*value = optarg;
	return 0;
}

static int parse_switch(struct options *options, char **argv, int c, char *why, size_t whylen)
{
	switch (c) {
	case 'h':
		options->help = true;
		return 0;
	case 'V':
		options->version = true;
		return 0;
	case 'f':
		*(options->helper ? &options->fake : &options->foreground) = true;
		return 0;
	case 'N':
		return take_once(&options->mount_namespace, "-N", why, whylen);
	case 's':
		options->sloppy = true;
		return 0;
	case 'c':
		return take_once(&options->config_path, "-c", why, whylen);
	case OPT_LOG_LEVEL:
		return take_once(&options->log_level, "--log-level", why, whylen);
	case 'o':
		options->lists[options->nlists++] = optarg;
		return 0;
	case 'n':
	case 'v': /* mount(8)'s */
		return 0;
	default:
		args_explain(argv, c, long_options, why, whylen);
		return -EINVAL;
	}
}

static int parse_operands(struct options *options, int argc, char **argv, char *why, size_t whylen)
{
	char reason[192], quoted[WORD_QUOTED_BYTES];
	int err;

	if (argc - optind < 1)
		return refuse(why, whylen, "SOURCE and MOUNTPOINT are missing; see --help");
	if (argc - optind < 2)
		return refuse(why, whylen, "MOUNTPOINT is missing; see --help");
	if (argc - optind > 2)
		return refuse(why, whylen, "%s: one operand too many; see --help",
			word_quote(argv[optind + 2], quoted));
	options->source_text = argv[optind];
	options->mountpoint_text = argv[optind + 1];
	if (strlen(options->mountpoint_text) >= PATH_MAX)
		return refuse(why, whylen, "mount point %s: must be at most %d bytes long",
			word_quote(options->mountpoint_text, quoted), PATH_MAX - 1);
	err = address_parse_source(options->source_text, &options->source, reason, sizeof(reason));
	if (err)
		snprintf(why, whylen, "source %s: %s", word_quote(options->source_text, quoted),
			reason);
	return err;
}

/* A file that was named must be there, the default one need not. */
static int read_config(struct options *options, const char *path, char *why, size_t whylen)
{
	int err = client_config_read(&options->config, path, why, whylen);

	return err == -ENOENT && !options->config_path ? 0 : err;
}

static int apply_log_level(struct options *options, char *why, size_t whylen)
{
	const struct conf_key *key = conf_find(client_config_keys, "log_level");
	autofree char *option = NULL;

	if (asprintf(&option, "--log-level=%s", options->log_level) < 0)
		return -ENOMEM;
	return apply_setting(options, option, key, options->log_level, why, whylen);
}

/* Applies the options; the file at path has given the defaults. */
static int apply_options(struct options *options, const char *path, char *why, size_t whylen)
{
	int err = 0;

	if (options->log_level)
		err = apply_log_level(options, why, whylen);
	for (unsigned i = 0; !err && i < options->nlists; i++)
		err = apply_list(options, options->lists[i], why, whylen);
	if (!err && options->kernels && !options->remount && !options->sloppy)
		return refuse(
			why, whylen, "options user_id=, group_id= and max_read= are the kernel's");
	/* In the file timeo is a default for soft mounts. */
	if (!err && was_given(options, "timeo") && !options->config.soft)
		return refuse(
			why, whylen, "option 'timeo': needs soft; a hard mount waits without end");
	return err ? err : sharing_options_check(options, was_given, path, why, whylen);
}

static bool means_shm(const struct options *options)
{
	const struct client_config *config = &options->config;

	return options->source.host[0] == '/' || config->transport == TRANSPORT_SHM;
}

/* Refuses a source, transport and port that exclude each other. This comes before the file's port
 * becomes the default. */
static int check_transport(const struct options *options, char *why, size_t whylen)
{
	const struct client_config *config = &options->config;

	if (options->source.host[0] == '/' && config->transport != TRANSPORT_AUTO &&
		config->transport != TRANSPORT_SHM)
		return refuse(why, whylen,
			"source '%s': a socket's path, which transport=%s can't use: name a host, or leave "
			"'transport' out",
			options->source.host,
			transport_kind_name((enum transport_kind)config->transport));
	if (config->port && means_shm(options))
		return refuse(why, whylen,
			"option 'port': shm has no ports: leave 'port' out, or use "
			"tcp or verbs");
	return 0;
}

static int cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int options_parse(int argc, char **argv, const char *default_config, struct options *options,
	char *why, size_t whylen)
{
	const char *path;
	uint64_t file_port;
	int c, err;

	*options = (struct options){0};
	client_config_init(&options->config);
	options->lists = calloc((size_t)argc + 1, sizeof(*options->lists));
	options->given = strdup("");
	options->mount_options = strdup("");
	if (!options->lists || !options->given || !options->mount_options)
		return -ENOMEM;
	options->helper = is_helper(argv[0]);
	options->nobodys = words_of_mount_fuse(argc, argv);
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, ":o:fc:hVnsvN:", long_options, NULL)) != -1) {
		err = parse_switch(options, argv, c, why, whylen);
		if (err)
			return err;
	}
	if (options->help || options->version)
		return 0;
	path = options->config_path ? options->config_path : default_config;
	err = parse_operands(options, argc, argv, why, whylen);
	if (!err)
		err = read_config(options, path, why, whylen);
	/* The file's port is for servers of other machines, so with a socket it is no error. */
	file_port = options->config.port;
	options->config.port = 0;
	if (!err)
		err = apply_options(options, path, why, whylen);
	if (!err)
		err = pass_permissions(options);
	if (!err)
		err = check_transport(options, why, whylen);
	if (err)
		return err;
	client_config_finish(&options->config, (unsigned)cpus());
	if (!options->config.port && !means_shm(options))
		options->config.port = file_port;
	return 0;
}

static unsigned long access_flags(const struct options *options)
{
	static const unsigned long modes[] = {
		[ACCESS_RELATIVE] = MS_RELATIME,
		[ACCESS_STRICT] = MS_STRICTATIME,
		[ACCESS_NEVER] = MS_NOATIME,
	};

	if (!options->access_given)
		return 0;
	return modes[options->access] | (options->nodiratime ? MS_NODIRATIME : 0);
}

/* Whether libfuse is told `name` after its last `opposite`. */
static bool is_passed(const struct options *options, const char *name, const char *opposite)
{
	autofree char *copy = strdup(options->mount_options);
	bool passed_last = false;
	char *save;

	for (char *at = copy ? strtok_r(copy, ",", &save) : NULL; at;
		at = strtok_r(NULL, ",", &save)) {
		if (strcmp(at, name) == 0)
			passed_last = true;
		else if (strcmp(at, opposite) == 0)
			passed_last = false;
	}
	return passed_last;
}

unsigned long options_flags(const struct options *options)
{
	return access_flags(options) | (options->read_only ? MS_RDONLY : 0) |
	       (options->nosymfollow ? MS_NOSYMFOLLOW : 0) |
	       (is_passed(options, "noexec", "exec") ? MS_NOEXEC : 0) |
	       (is_given(options, options->suid) ? 0 : MS_NOSUID) |
	       (is_given(options, options->dev) ? 0 : MS_NODEV);
}

static bool is_kept(const struct options *options, enum permission permission)
{
	return options->remount && permission == PERMISSION_UNSAID && !options->kernels;
}

unsigned long options_kept_flags(const struct options *options)
{
	return (is_kept(options, options->suid) ? MS_NOSUID : 0) |
	       (is_kept(options, options->dev) ? MS_NODEV : 0);
}

void options_fini(struct options *options)
{
	client_config_fini(&options->config);
	free(options->lists);
	free(options->given);
	free(options->mount_options);
}
