/* rmemfs_metrics.c - the state of this machine's mounts, and of its server: for Prometheus and the
 * like, which ask anew each time, and as a page for people, which has the last minutes, too. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/service.h"
#include "common/conf/args.h"
#include "common/transport/address.h"
#include "daemon/ctl/configured.h"
#include "daemon/metrics/observe.h"
#include "daemon/metrics/openmetrics.h"
#include "daemon/metrics/page.h"
#include "daemon/metrics/sampler.h"
#include "daemon/metrics/web.h"

#define DEFAULT_LISTEN "127.0.0.1:9470"

/* Peers may ask at any rate: the daemons are asked once in that time. */
enum { FRESH_MS = 1000 };

struct metrics_options {
	const char *listen;  /* NULL: DEFAULT_LISTEN */
	const char *server;  /* NULL: the default socket, if it is there */
	unsigned interval_s; /* of the page's samples */
	bool details, once;
};

static const struct option long_options[] = {
	{"listen", required_argument, NULL, 'l'},
	{"server", required_argument, NULL, 's'},
	{"interval", required_argument, NULL, 'i'},
	{"details", no_argument, NULL, 'd'},
	{"once", no_argument, NULL, 'o'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* ---- metrics --------------------------------------------------------------------------------- */

/* Mounts that this user may not ask about are left out: they are not down. hidden: how many. */
static json_t *allowed_mounts(const json_t *list, unsigned *hidden)
{
	json_t *allowed = json_array(), *mount;
	size_t i;

	*hidden = 0;
	json_array_foreach(list, i, mount)
	{
		if (json_is_true(json_object_get(mount, "allowed")))
			json_array_append(allowed, mount);
		else
			++*hidden;
	}
	return allowed;
}

struct metrics_text {
	FILE *out;
	bool details;
};

static void write_metrics(const struct observation *seen, void *arg)
{
	const struct metrics_text *text = arg;
	unsigned hidden;
	json_t *mounts = allowed_mounts(seen->mounts, &hidden);
	const struct observed observed = {.mounts = mounts,
		.server = seen->server,
		.hidden = hidden,
		.missing = configured_count(seen->missing, "mount"),
		.server_wanted = seen->server_there || configured_count(seen->missing, "server"),
		.details = text->details};

	openmetrics_write(text->out, &observed);
	json_decref(mounts);
}

/* ---- what is served -------------------------------------------------------------------------- */

struct service {
	struct metrics_options options;
	struct observer observer;
	struct sampler *sampler;
	char host[HOST_NAME_MAX + 1];
};

/* A stream's text, when it has ended. */
static char *end_text(FILE *out, char **text)
{
	if (fclose(out) == 0)
		return *text;
	free(*text);
	return NULL;
}

static char *make_metrics(void *arg, size_t *len)
{
	struct service *service = arg;
	char *made = NULL;
	struct metrics_text text = {open_memstream(&made, len), service->options.details};

	if (!text.out)
		return NULL;
	observe(&service->observer, FRESH_MS, write_metrics, &text);
	return end_text(text.out, &made);
}

struct page_text {
	const struct service *service;
	FILE *out;
	bool still;
};

static void write_page(const struct sample *last, void *arg)
{
	const struct page_text *text = arg;
	const struct page page = {.host = text->service->host,
		.now_ms = now_ms(),
		.interval_s = text->service->options.interval_s,
		.still = text->still,
		.details = text->service->options.details,
		.last = last};

	page_write(text->out, &page);
}

static char *make_page(struct service *service, bool still, size_t *len)
{
	char *made = NULL;
	struct page_text text = {service, open_memstream(&made, len), still};

	if (!text.out)
		return NULL;
	sampler_look(service->sampler, write_page, &text);
	return end_text(text.out, &made);
}

static char *make_live_page(void *arg, size_t *len)
{
	return make_page(arg, false, len);
}

static char *make_still_page(void *arg, size_t *len)
{
	return make_page(arg, true, len);
}

/* ---- the command line ------------------------------------------------------------------------ */

static int print_help(void)
{
	printf("Usage: rmemfs-metrics [OPTION]...\n"
	       "Serves the state of this machine's mounts of rmemfs, and of its server: a page\n"
	       "for a browser at http://" DEFAULT_LISTEN "/, OpenMetrics at /metrics.\n\n"
	       "      --listen WHERE   HOST:PORT, [ADDRESS]:PORT or unix:/PATH\n"
	       "      --server SOCKET  the server's socket (default: " RMEMFS_DEFAULT_SOCKET ",\n"
	       "                       if it is there)\n"
	       "      --interval SECONDS\n"
	       "                       of the page's figures, 1 to 60 (5); it has the last 120\n"
	       "      --details        with places and sources of mounts, and names of clients;\n"
	       "                       needs --listen or --once\n"
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

static bool read_interval(const char *text, unsigned *seconds)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*seconds = (unsigned)n;
	return *text >= '0' && *text <= '9' && !*end && n >= 1 && n <= SAMPLER_MAX_S;
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
		case 'i':
			if (!read_interval(optarg, &options->interval_s))
				return metrics_wrong("option '--interval': must be a number of "
						     "seconds, 1 to 60");
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

static void wait_for_end(void)
{
	sigset_t signals;
	int signo;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	while (sigwait(&signals, &signo) != 0)
		continue;
}

/* Before there are threads. */
static void set_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

static int serve(struct service *service)
{
	const struct web_page pages[] = {{"/", PAGE_TYPE, page_policy, make_live_page, service},
		{"/still", PAGE_TYPE, page_policy, make_still_page, service},
		{"/metrics", OPENMETRICS_TYPE, NULL, make_metrics, service}, {0}};
	const struct metrics_options *options = &service->options;
	const char *where = options->listen ? options->listen : DEFAULT_LISTEN;
	struct web *web;
	char why[512];
	int status = EXIT_SUCCESS;

	set_signals();
	gethostname(service->host, sizeof(service->host) - 1);
	service->sampler = sampler_start(&service->observer, options->interval_s, options->details);
	if (!service->sampler)
		return metrics_wrong("no memory, or no more threads");
	web = web_start(where, pages, why, sizeof(why));
	if (web) {
		log_notice("listening on %s", where);
		service_ready();
		wait_for_end();
		service_stopping("stopping");
		web_stop(web);
	} else {
		status = metrics_wrong(why);
	}
	/* A daemon that stands still holds up no end. */
	if (!sampler_stop(service->sampler))
		_exit(status);
	observe_end(&service->observer);
	return status;
}

static int print_once(struct service *service)
{
	struct metrics_text text = {stdout, service->options.details};

	observe(&service->observer, 0, write_metrics, &text);
	observe_end(&service->observer);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct service service = {.options = {.interval_s = SAMPLER_S}};
	int status;

	service_open();
	log_init("rmemfs-metrics", LOG_LEVEL_NOTICE);
	status = read_options(argc, argv, &service.options);
	if (status >= 0)
		return status;
	service.observer = (struct observer)OBSERVER_INIT(service.options.server);
	return service.options.once ? print_once(&service) : serve(&service);
}
