/* rmemfsctl.c - the admin tool: what a server is doing. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/args.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/ctl_client.h"
#include "daemon/ctl_print.h"

enum { TIMEOUT_MS = 5000, OPT_JSON = 256 };

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static const char help[] =
	"Usage: rmemfsctl status [HOST] [--json]\n"
	"       rmemfsctl --version | --help\n"
	"Shows what a server is doing: exports, sessions, counters.\n"
	"\n"
	"  HOST           the path of a local server's socket (default " RMEMFS_DEFAULT_SOCKET
	"),\n"
	"                 HOST[:PORT] or tcp:HOST[:PORT] (port 7470), verbs:HOST[:PORT], shm:/PATH,\n"
	"                 or a mount's source: HOST:/EXPORT\n"
	"      --json     print the server's answer as it is\n"
	"  -V, --version  print the version and exit\n"
	"  -h, --help     print this and exit\n";

struct arguments {
	const char *where;
	bool json;
};

__attribute__((format(printf, 1, 2))) static int wrong(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_complaint("rmemfsctl", text);
	return EXIT_FAILURE;
}

/* -1: go on; else the exit status. */
static int read_operands(int argc, char **argv, struct arguments *args)
{
	char quoted[WORD_QUOTED_BYTES];

	if (optind == argc)
		return wrong("a command is missing: status; see --help");
	if (strcmp(argv[optind], "status") != 0)
		return wrong(
			"command %s: unknown; must be status", word_quote(argv[optind], quoted));
	if (++optind < argc)
		args->where = argv[optind++];
	if (optind < argc)
		return wrong(
			"%s: one operand too many; see --help", word_quote(argv[optind], quoted));
	if (args->where[0] == '\0')
		return wrong("HOST must not be empty");
	return -1;
}

static int read_arguments(int argc, char **argv, struct arguments *args)
{
	char why[256];
	int opt;

	opterr = 0;
	optind = 0;
	while ((opt = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_JSON:
			args->json = true;
			break;
		case 'V':
			puts("rmemfsctl " RMEMFS_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(help, stdout);
			return EXIT_SUCCESS;
		default:
			args_explain(argv, opt, long_options, why, sizeof(why));
			return wrong("%s", why);
		}
	}
	return read_operands(argc, argv, args);
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
