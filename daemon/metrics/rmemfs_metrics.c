/* rmemfs_metrics.c - the state of this machine's mounts, and of its server, for Prometheus and the
 * like. It asks the daemons anew for each scrape, and keeps nothing. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "common/conf/args.h"
#include "common/transport/address.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/mount_ask.h"
#include "daemon/metrics/openmetrics.h"
#include "daemon/metrics/web.h"

#define DEFAULT_LISTEN "127.0.0.1:9470"

enum { MOUNT_MS = 1000, SERVER_MS = 2000, FRESH_MS = 1000 };

struct metrics_options {
	const char *listen; /* NULL: DEFAULT_LISTEN */
	const char *server; /* NULL: the default socket, if it is there */
	bool details, once;
};

static const struct option long_options[] = {
	{"listen", required_argument, NULL, 'l'},
	{"server", required_argument, NULL, 's'},
	{"details", no_argument, NULL, 'd'},
	{"once", no_argument, NULL, 'o'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* ---- the text -------------------------------------------------------------------------------- */

static json_t *ask_server(const char *socket)
{
	static struct log_ratelimit limit;
	int64_t round_trip_ns;
	char why[256];
	char *text;
	json_t *root;

	if (ctl_fetch_status(socket, NULL, SERVER_MS, &text, &round_trip_ns, why, sizeof(why))) {
		if (log_ratelimit_ok(&limit, 60000))
			log_warning("%s: %s", socket, why);
		return NULL;
	}
	root = ctl_json_read(text);
	free(text);
	return root;
}

/* Mounts that this user may not ask about are left out: they are not down. hidden: how many. */
static json_t *list_mounts(unsigned *hidden)
{
	json_t *list;

	if (ctl_list_own_mounts(MOUNT_MS, &list))
		return json_array();
	for (size_t i = json_array_size(list); i-- > 0;) {
		if (json_is_true(json_object_get(json_array_get(list, i), "allowed")))
			continue;
		++*hidden;
		json_array_remove(list, i);
	}
	return list;
}

static void write_metrics(FILE *out, const struct metrics_options *options)
{
	const char *socket = options->server ? options->server : RMEMFS_DEFAULT_SOCKET;
	struct observed seen = {.details = options->details};
	json_t *mounts = list_mounts(&seen.hidden), *server = NULL;
	struct stat st;

	seen.server_wanted = options->server || stat(socket, &st) == 0;
	if (seen.server_wanted)
		server = ask_server(socket);
	seen.mounts = mounts;
	seen.server = server;
	openmetrics_write(out, &seen);
	json_decref(mounts);
	json_decref(server);
}

static char *make_text(const struct metrics_options *options, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	if (!out)
		return NULL;
	write_metrics(out, options);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Peers may ask at any rate. So a text is used for a second, and the daemons are asked once in that
 * time. Called by one thread. */
static char *make_metrics(void *arg, size_t *len)
{
	static char *text;
	static size_t text_len;
	static int64_t made_ms;
	char *copy;

	if (!text || now_ms() - made_ms >= FRESH_MS) {
		free(text);
		text = make_text(arg, &text_len);
		made_ms = now_ms();
	}
	copy = text ? malloc(text_len + 1) : NULL;
	if (copy)
		memcpy(copy, text, text_len + 1);
	*len = text_len;
	return copy;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int print_help(void)
{
	printf("Usage: rmemfs-metrics [OPTION]...\n"
	       "Serves the state of this machine's mounts of rmemfs, and of its server, as\n"
	       "OpenMetrics at http://" DEFAULT_LISTEN "/metrics.\n\n"
	       "      --listen WHERE   HOST:PORT, [ADDRESS]:PORT or unix:/PATH\n"
	       "      --server SOCKET  the server's socket (default: " RMEMFS_DEFAULT_SOCKET ",\n"
	       "                       if it is there)\n"
	       "      --details        with places and sources of mounts; needs --listen or\n"
	       "                       --once\n"
	       "      --once           print the metrics, and exit\n"
	       "  -V, --version        print the version and exit\n"
	       "  -h, --help           print this and exit\n");
	return EXIT_SUCCESS;
}

static int metrics_wrong(const char *why)
{
	log_complaint("rmemfs-metrics", why);
	return EXIT_FAILURE;
}

/* -1: the options are to be used. Otherwise the exit status. */
static int read_options(int argc, char **argv, struct metrics_options *options)
{
	char why[256];
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 'l':
			options->listen = optarg;
			break;
		case 's':
			options->server = optarg;
			break;
		case 'd':
			options->details = true;
			break;
		case 'o':
			options->once = true;
			break;
		case 'V':
			puts("rmemfs-metrics " RMEMFS_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			return print_help();
		default:
			args_explain(argv, opt, long_options, why, sizeof(why));
			return metrics_wrong(why);
		}
	}
	if (argv[optind]) {
		snprintf(why, sizeof(why), "%s: there are no operands; see --help", argv[optind]);
		return metrics_wrong(why);
	}
	/* Everybody on this machine can read the default address. */
	if (options->details && !options->listen && !options->once)
		return metrics_wrong("option '--details': tells where mounts are: name the address "
				     "or a unix:/PATH by --listen");
	return -1;
}

/* ---- running --------------------------------------------------------------------------------- */

static int serve(struct metrics_options *options)
{
	const struct web_page pages[] = {
		{"/metrics", OPENMETRICS_TYPE, make_metrics, options}, {0}};
	const char *where = options->listen ? options->listen : DEFAULT_LISTEN;
	struct web *web;
	sigset_t signals;
	char why[512];
	int signo;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	web = web_start(where, pages, why, sizeof(why));
	if (!web)
		return metrics_wrong(why);
	log_notice("listening on %s", where);
	service_ready();
	while (sigwait(&signals, &signo) != 0)
		continue;
	service_stopping("stopping");
	web_stop(web);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct metrics_options options = {0};
	int status;

	service_open();
	log_init("rmemfs-metrics", LOG_LEVEL_NOTICE);
	status = read_options(argc, argv, &options);
	if (status >= 0)
		return status;
	if (!options.once)
		return serve(&options);
	write_metrics(stdout, &options);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
