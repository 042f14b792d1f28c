/* options.c - flags of rmemfs-server; those that name exports or addresses replace the file's. */
#include "server/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "common/util.h"

enum { OPT_MEMORY_DIR = 256, OPT_EXPORT, OPT_LISTEN, OPT_CHECK, OPT_VERSION, OPT_HELP };

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"memory-dir", required_argument, NULL, OPT_MEMORY_DIR},
	{"export", required_argument, NULL, OPT_EXPORT},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static const char help[] =
	"Usage: rmemfs-server [-c FILE] [--memory-dir DIR] [--export NAME:SIZE]...\n"
	"                     [--listen TRANSPORT:ADDRESS]... [--check-config] [--version] [--help]\n"
	"Serves this machine's memory to rmemfs clients.\n"
	"\n"
	"  -c, --config FILE            configuration, instead of " SERVER_CONFIG_PATH "\n"
	"      --memory-dir DIR         where regions and metadata live: on tmpfs\n"
	"                               (default /dev/shm/rmemfs)\n"
	"      --export NAME:SIZE       a volume to serve, e.g. data:64GiB (default default:1GiB)\n"
	"      --listen TRANSPORT:ADDR  verbs:HOST[:PORT], tcp:HOST[:PORT] or shm:/PATH\n"
	"                               (default shm:/run/rmemfs/server.sock and tcp:127.0.0.1:7470)\n"
	"      --check-config           check the configuration and exit\n"
	"      --version                print the version and exit\n"
	"      --help                   print this and exit\n"
	"\n"
	"--export and --listen may be repeated; they replace those of the configuration.\n";

/* What the command line names is applied after the file has been read. */
struct arguments {
	const char *config_path, *memory_dir;
	const char **exports, **listen;
	size_t nexports, nlisten;
	bool check;
};

static enum options_result read_arguments(int argc, char **argv, struct arguments *args)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "c:", long_options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			args->config_path = optarg;
			break;
		case OPT_MEMORY_DIR:
			args->memory_dir = optarg;
			break;
		case OPT_EXPORT:
			args->exports[args->nexports++] = optarg;
			break;
		case OPT_LISTEN:
			args->listen[args->nlisten++] = optarg;
			break;
		case OPT_CHECK:
			args->check = true;
			break;
		case OPT_VERSION:
			puts("rmemfs-server " RMEMFS_VERSION);
			return OPTIONS_DONE;
		case OPT_HELP:
			fputs(help, stdout);
			return OPTIONS_DONE;
		default:
			fputs("Try 'rmemfs-server --help'.\n", stderr);
			return OPTIONS_WRONG;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "rmemfs-server: unexpected argument '%s'\n", argv[optind]);
		return OPTIONS_WRONG;
	}
	return OPTIONS_RUN;
}

static int read_file(
	struct server_config *config, const struct arguments *args, char *why, size_t whylen)
{
	/* The usual file need not be there. */
	if (!args->config_path && access(SERVER_CONFIG_PATH, F_OK) != 0 && errno == ENOENT)
		return 0;
	return server_config_read(
		config, args->config_path ? args->config_path : SERVER_CONFIG_PATH, why, whylen);
}

static int apply(
	struct server_config *config, const struct arguments *args, char *why, size_t whylen)
{
	char reason[256] = "out of memory";
	int err = 0;

	if (args->memory_dir)
		err = server_config_set_memory_dir(config, args->memory_dir);
	if (args->nexports)
		server_config_clear_exports(config);
	if (args->nlisten)
		server_config_clear_listen(config);
	for (size_t i = 0; !err && i < args->nlisten; i++)
		err = server_config_add_listen(config, args->listen[i]);
	for (size_t i = 0; !err && i < args->nexports; i++)
		err = server_config_add_export(config, args->exports[i], reason, sizeof(reason));
	if (err)
		snprintf(why, whylen, "--export: %s", reason);
	return err;
}

static enum options_result complain(const char *why)
{
	fprintf(stderr, "rmemfs-server: %s\n", why);
	return OPTIONS_WRONG;
}

enum options_result options_parse(int argc, char **argv, struct server_config *config)
{
	autofree const char **exports = calloc((size_t)argc, sizeof(*exports));
	autofree const char **listen = calloc((size_t)argc, sizeof(*listen));
	struct arguments args = {.exports = exports, .listen = listen};
	enum options_result result;
	char why[512] = "";

	if (!exports || !listen)
		return complain("out of memory");
	result = read_arguments(argc, argv, &args);
	if (result != OPTIONS_RUN)
		return result;
	if (read_file(config, &args, why, sizeof(why)) || apply(config, &args, why, sizeof(why)) ||
		server_config_finish(config, why, sizeof(why)))
		return complain(why);
	return args.check ? OPTIONS_DONE : OPTIONS_RUN;
}
