/* options.c - the options of rmemfs-server; they override the configuration file. */
#include "server/config/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/conf/args.h"
#include "common/base/util.h"
#include "common/rpc/wire_version.h"
#include "server/base/refusal.h"
#include "server/config/config_files.h"

enum {
	OPT_MEMORY_DIR = 256,
	OPT_EXPORT,
	OPT_KEY,
	OPT_INSECURE,
	OPT_LISTEN,
	OPT_LOG_LEVEL,
	OPT_RESTORE,
	OPT_CHECK_CONFIG,
	OPT_CHECK
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"memory-dir", required_argument, NULL, OPT_MEMORY_DIR},
	{"export", required_argument, NULL, OPT_EXPORT},
	{"key", required_argument, NULL, OPT_KEY},
	{"insecure", no_argument, NULL, OPT_INSECURE},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"restore", required_argument, NULL, OPT_RESTORE},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
	{"check", required_argument, NULL, OPT_CHECK},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static const char help[] =
	"Usage: rmemfs-server [-c FILE] [--memory-dir DIR] [--export NAME:SIZE]...\n"
	"                     [--key FILE | --insecure] [--listen TRANSPORT:ADDRESS]...\n"
	"                     [--restore DIR]... [--log-level LEVEL] [--check-config]\n"
	"                     [--version] [--help]\n"
	"       rmemfs-server --check DIR\n"
	"Serves this machine's memory to rmemfs clients.\n"
	"\n"
	"  -c, --config FILE            read FILE instead of " SERVER_CONFIG_PATH "\n"
	"      --memory-dir DIR         directory of regions and metadata, on tmpfs\n"
	"                               (default /dev/shm/rmemfs)\n"
	"      --export NAME:SIZE       a volume to serve, e.g. data:64GiB (default default:1GiB)\n"
	"      --key FILE               the exports of --export are for clients with a key in FILE\n"
	"      --insecure               the exports of --export are for anybody, without a key\n"
	"      --listen TRANSPORT:ADDR  verbs:HOST[:PORT], tcp:HOST[:PORT] or shm:/PATH\n"
	"                               (default shm:/run/rmemfs/server.sock alone)\n"
	"      --restore DIR            make an export from the snapshot in DIR before serving it;\n"
	"                               the memory directory must have no files yet\n"
	"      --log-level LEVEL        error, warning, notice, info or debug (default info)\n"
	"      --check-config           show the effects of a start on this machine, name each\n"
	"                               problem, and exit: status 0 if a start would succeed\n"
	"      --check DIR              check a stopped server's memory directory and exit: status\n"
	"                               0 clean, 1 problems, 2 could not be checked\n"
	"  -V, --version                print the version and exit\n"
	"  -h, --help                   print this and exit\n"
	"\n"
	"These options override the configuration. --export, --listen and --restore may be\n"
	"repeated; give the others once. --export and --listen replace all exports and addresses\n"
	"of the configuration.\n";

/* The options, kept until the file has been read; then they are applied. */
struct arguments {
	const char *config_path, *memory_dir, *log_level;
	const char *key; /* a file */
	const char **exports, **listen;
	const char **restore;
	size_t nexports, nlisten, nrestore;
	bool insecure, check_config;
	const char *check; /* a directory */
};

static enum options_result server_options_refuse(int err, const char *why)
{
	log_complaint("rmemfs-server", why);
	refusal_tell_systemd(err, why);
	return refusal_status(err) == SERVER_REFUSED ? OPTIONS_WRONG : OPTIONS_UNRESOLVED;
}

__attribute__((format(printf, 1, 2))) static enum options_result complain(const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return server_options_refuse(-EINVAL, text);
}

static enum options_result take_once(const char **value, const char *option)
{
	if (*value)
		return complain("option '%s': given twice", option);
	if (optarg[0] == '\0')
		return complain("option '%s': must not be empty", option);
	*value = optarg;
	return OPTIONS_RUN;
}

/* If --check was given, it decides the exit status, even if its value is wrong. */
static enum options_result take_check(struct arguments *args)
{
	enum options_result result = take_once(&args->check, "--check");

	if (!args->check)
		args->check = "";
	return result;
}

static enum options_result take_option(int opt, char **argv, struct arguments *args)
{
	char why[256];

	switch (opt) {
	case 'c':
		return take_once(&args->config_path, "-c");
	case OPT_MEMORY_DIR:
		return take_once(&args->memory_dir, "--memory-dir");
	case OPT_LOG_LEVEL:
		return take_once(&args->log_level, "--log-level");
	case OPT_EXPORT:
		args->exports[args->nexports++] = optarg;
		return OPTIONS_RUN;
	case OPT_KEY:
		return take_once(&args->key, "--key");
	case OPT_INSECURE:
		args->insecure = true;
		return OPTIONS_RUN;
	case OPT_LISTEN:
		args->listen[args->nlisten++] = optarg;
		return OPTIONS_RUN;
	case OPT_CHECK_CONFIG:
		args->check_config = true;
		return OPTIONS_RUN;
	case OPT_RESTORE:
		if (!*optarg)
			return complain("option '--restore': must not be empty");
		args->restore[args->nrestore++] = optarg;
		return OPTIONS_RUN;
	case OPT_CHECK:
		return take_check(args);
	case 'V':
		printf("rmemfs-server %s (wire protocol %u)\n", RMEMFS_VERSION, wire_version());
		return OPTIONS_DONE;
	case 'h':
		fputs(help, stdout);
		return OPTIONS_DONE;
	default:
		if (optopt == OPT_CHECK)
			args->check = "";
		args_explain(argv, opt, long_options, why, sizeof(why));
		return complain("%s", why);
	}
}

/* Exports of the file have clients of their own. */
static enum options_result check_clients(const struct arguments *args)
{
	const char *option = args->key ? "--key" : "--insecure";

	if (args->key && args->insecure)
		return complain(
			"option '--key': takes no '--insecure' beside it, which lets anybody in");
	if ((args->key || args->insecure) && !args->nexports)
		return complain("option '%s': is about the exports of --export, and there is none; "
				"for those of the configuration see clients in rmemfs.conf(5)",
			option);
	return OPTIONS_RUN;
}

static enum options_result read_arguments(int argc, char **argv, struct arguments *args)
{
	enum options_result result = OPTIONS_RUN;
	int opt;

	opterr = 0;
	optind = 0;
	while (result == OPTIONS_RUN &&
		(opt = getopt_long(argc, argv, ":c:hV", long_options, NULL)) != -1)
		result = take_option(opt, argv, args);
	if (result != OPTIONS_RUN)
		return result;
	if (optind < argc)
		return complain("'%s': takes no operands; see --help", argv[optind]);
	return args->check ? OPTIONS_RUN : check_clients(args);
}

/* The default file may be missing. */
static int read_files(
	struct server_config *config, const struct arguments *args, char *why, size_t whylen)
{
	const char *path = args->config_path ? args->config_path : SERVER_CONFIG_PATH;
	int err = 0;

	if (args->config_path || access(path, F_OK) == 0 || errno != ENOENT)
		err = server_config_read(config, path, why, whylen);
	return err ? err : config_files_read(config, path, why, whylen);
}

static void print_files(const struct server_config *config)
{
	for (size_t i = 0; config->files.n && i < config->exports.n; i++) {
		const struct export_config *export = server_config_export(config, i);

		if (export->path)
			printf("%s:%u: export '%s'\n", export->path, config->exports.lines[i],
				export->name);
	}
}

/* Shows what would be served, so that a user notices when another file was meant. */
static void print_config(const struct server_config *config)
{
	char data[32], store[32];
	uint64_t bytes = 0;

	setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the order with lines on standard error */
	for (size_t i = 0; i < config->exports.n; i++)
		bytes += server_config_export(config, i)->size;
	size_format(bytes, data, sizeof(data));
	size_format(server_config_store_bytes(config), store, sizeof(store));
	printf("%s: %zu export%s, %s and %s of metadata in %s; listens on",
		config->path ? config->path : "no " SERVER_CONFIG_PATH " is there",
		config->exports.n, config->exports.n == 1 ? "" : "s", data, store,
		config->memory_dir);
	for (size_t i = 0; i < config->listen.n; i++)
		printf("%s %s", i ? "," : "", config->listen.v[i]);
	putchar('\n');
	print_files(config);
}

static int server_options_apply(
	struct server_config *config, const struct arguments *args, char *why, size_t whylen)
{
	int err = 0;

	if (args->memory_dir)
		err = server_config_set(
			config, "--memory-dir", "memory_dir", args->memory_dir, why, whylen);
	if (!err && args->log_level)
		err = server_config_set(
			config, "--log-level", "log_level", args->log_level, why, whylen);
	if (!err && args->nlisten)
		err = server_config_set_listen(config, args->listen, args->nlisten, why, whylen);
	if (!err && args->nexports)
		err = server_config_set_exports(config, args->exports, args->nexports, why, whylen);
	if (!err && (args->key || args->insecure))
		err = server_config_set_clients(config, args->key, why, whylen);
	for (size_t i = 0; !err && i < args->nrestore; i++)
		err = conf_add_string(&config->restore, args->restore[i], 0);
	return err;
}

/* The contents of a directory do not depend on the configuration. */
static enum options_result check_alone(const struct arguments *args)
{
	if (args->config_path || args->memory_dir || args->log_level || args->nexports ||
		args->nlisten || args->key || args->insecure || args->check_config)
		return complain("option '--check': takes no other option beside it");
	return OPTIONS_CHECK;
}

static int options_lists(struct arguments *args, int argc)
{
	*args = (struct arguments){
		.exports = calloc((size_t)argc, sizeof(*args->exports)),
		.listen = calloc((size_t)argc, sizeof(*args->listen)),
		.restore = calloc((size_t)argc, sizeof(*args->restore)),
	};
	return args->exports && args->listen && args->restore ? 0 : -ENOMEM;
}

static void options_lists_free(struct arguments *args)
{
	free(args->exports);
	free(args->listen);
	free(args->restore);
}

static int options_build(
	struct server_config *config, const struct arguments *args, char *why, size_t whylen)
{
	int err = read_files(config, args, why, whylen);

	if (!err)
		err = server_options_apply(config, args, why, whylen);
	if (!err)
		err = server_config_finish(config, why, whylen);
	return err;
}

static enum options_result parse(
	int argc, char **argv, struct arguments *args, struct server_config *config)
{
	enum options_result result = read_arguments(argc, argv, args);
	char why[512];
	int err;

	config->check = args->check;
	if (result == OPTIONS_RUN && args->check)
		return check_alone(args);
	if (result != OPTIONS_RUN)
		return result;
	err = options_build(config, args, why, sizeof(why));
	if (err)
		return server_options_refuse(err, why);
	if (!args->check_config)
		return OPTIONS_RUN;
	print_config(config);
	return OPTIONS_CHECK_CONFIG;
}

enum options_result server_options_parse(int argc, char **argv, struct server_config *config)
{
	struct arguments args;
	enum options_result result;

	config->argc = argc;
	config->argv = argv;
	if (options_lists(&args, argc))
		result = complain("out of memory");
	else
		result = parse(argc, argv, &args, config);
	options_lists_free(&args);
	return result;
}

/* getopt_long(3) moves operands behind options, and there are none: it reads the same again. */
int server_options_again(
	const struct server_config *running, struct server_config *config, char *why, size_t len)
{
	struct arguments args;
	int err = options_lists(&args, running->argc);

	if (err)
		snprintf(why, len, "out of memory");
	else if (read_arguments(running->argc, running->argv, &args) != OPTIONS_RUN)
		err = -EINVAL;
	else
		err = options_build(config, &args, why, len);
	options_lists_free(&args);
	return err;
}
