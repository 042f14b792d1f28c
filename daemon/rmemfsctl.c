/* rmemfsctl.c - the admin tool: what a server is doing. */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/ctl_client.h"
#include "daemon/ctl_print.h"

enum { TIMEOUT_MS = 5000, OPT_JSON = 256, OPT_VERSION, OPT_HELP };

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static const char help[] =
	"Usage: rmemfsctl status [HOST] [--json]\n"
	"Shows what a server is doing: exports, sessions, counters.\n"
	"\n"
	"  HOST       the path of a local server's socket (default " RMEMFS_DEFAULT_SOCKET "),\n"
	"             HOST[:PORT], HOST:/EXPORT, or verbs:HOST[:PORT]\n"
	"  --json     print the server's answer as it is\n"
	"  --version  print the version and exit\n"
	"  --help     print this and exit\n";

struct arguments {
	const char *command, *where;
	bool json;
};

static int wrong(const char *why, const char *what)
{
	fprintf(stderr, "rmemfsctl: %s%s%s; try 'rmemfsctl --help'\n", why, what ? " " : "",
		what ? what : "");
	return EXIT_FAILURE;
}

/* -1: go on; else the exit status. */
static int read_arguments(int argc, char **argv, struct arguments *args)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_JSON:
			args->json = true;
			break;
		case OPT_VERSION:
			puts("rmemfsctl " RMEMFS_VERSION);
			return EXIT_SUCCESS;
		case OPT_HELP:
			fputs(help, stdout);
			return EXIT_SUCCESS;
		default:
			return EXIT_FAILURE;
		}
	}
	if (optind < argc)
		args->command = argv[optind++];
	if (optind < argc)
		args->where = argv[optind++];
	if (optind < argc)
		return wrong("unexpected argument", argv[optind]);
	if (!args->command)
		return wrong("no command given", NULL);
	if (strcmp(args->command, "status") != 0)
		return wrong("unknown command", args->command);
	return -1;
}

static int show_status(const struct arguments *args)
{
	autofree char *text = NULL;
	char why[256];

	if (ctl_fetch_status(args->where, TIMEOUT_MS, &text, why, sizeof(why))) {
		fprintf(stderr, "rmemfsctl: %s: %s\n", args->where, why);
		return EXIT_FAILURE;
	}
	if (args->json) {
		puts(text);
	} else if (ctl_print_status(text)) {
		fprintf(stderr, "rmemfsctl: %s: the server's answer is malformed\n", args->where);
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct arguments args = {.where = RMEMFS_DEFAULT_SOCKET};
	int status;

	log_init("rmemfsctl", LOG_LEVEL_ERROR);
	status = read_arguments(argc, argv, &args);
	return status >= 0 ? status : show_status(&args);
}
