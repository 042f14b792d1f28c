/* rmemfsctl.c - the admin tool: what a server is doing, and whether what it left is whole. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/args.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/ctl_check.h"
#include "daemon/ctl_client.h"
#include "daemon/ctl_print.h"
#include "daemon/ctl_snapshot.h"

enum { TIMEOUT_MS = 5000, OPT_JSON = 256 };

static const struct option long_options[] = {
	{"json", no_argument, NULL, OPT_JSON},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static const char help[] =
	"Usage: rmemfsctl status [HOST] [--json]\n"
	"       rmemfsctl quota [HOST]\n"
	"       rmemfsctl check DIR\n"
	"       rmemfsctl snapshot EXPORT DIR [HOST]\n"
	"       rmemfsctl --version | --help\n"
	"Shows what a server is doing: exports, sessions, counters; what users and groups have of their\n"
	"quotas. Checks what a stopped one left. Writes an export as it is now to a new directory on\n"
	"the server's machine, while it is in use.\n"
	"\n"
	"  HOST           the path of a local server's socket (default " RMEMFS_DEFAULT_SOCKET
	"),\n"
	"                 HOST[:PORT] or tcp:HOST[:PORT] (port 7470), verbs:HOST[:PORT], shm:/PATH,\n"
	"                 or a mount's source: HOST:/EXPORT\n"
	"  DIR            a stopped server's memory directory, on this machine; of snapshot: a new\n"
	"                 directory on a disk\n"
	"      --json     print the server's answer as it is\n"
	"  -V, --version  print the version and exit\n"
	"  -h, --help     print this and exit\n"
	"\n"
	"check exits with 0: clean, 1: there are problems, 2: it could not be checked.\n";

struct arguments {
	const char *command;      /* "status", "quota", "check" or "snapshot" */
	const char *operand;      /* HOST or DIR; NULL: none */
	const char *export, *dir; /* snapshot */
	bool json;
	int wrong; /* exit status of wrong usage */
};

__attribute__((format(printf, 2, 3))) static int wrong(
	const struct arguments *args, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	log_complaint("rmemfsctl", text);
	return args->wrong;
}

static bool is_check(const struct arguments *args)
{
	return strcmp(args->command, "check") == 0;
}

static bool is_quota(const struct arguments *args)
{
	return strcmp(args->command, "quota") == 0;
}

static bool is_snapshot(const struct arguments *args)
{
	return strcmp(args->command, "snapshot") == 0;
}

static int check_snapshot(const struct arguments *args)
{
	if (!args->export || !args->dir)
		return wrong(args, "snapshot takes an export and a directory: EXPORT DIR");
	if (!args->export[0] || !args->dir[0])
		return wrong(args, "EXPORT and DIR must not be empty");
	if (args->json)
		return wrong(args, "option '--json': has no meaning for snapshot");
	return -1;
}

/* -1: go on; else the exit status. */
static int check_arguments(const struct arguments *args)
{
	if (strcmp(args->command, "status") != 0 && !is_quota(args) && !is_check(args) &&
		!is_snapshot(args)) {
		char quoted[WORD_QUOTED_BYTES];

		return wrong(args, "command %s: unknown; must be status, quota, check or snapshot",
			word_quote(args->command, quoted));
	}
	if (args->operand && args->operand[0] == '\0')
		return wrong(args, "%s must not be empty", is_check(args) ? "DIR" : "HOST");
	if (is_snapshot(args))
		return check_snapshot(args);
	if (is_check(args) && !args->operand)
		return wrong(args, "DIR is missing: a stopped server's memory directory");
	if (is_check(args) && args->json)
		return wrong(args, "option '--json': has no meaning for check");
	if (is_quota(args) && args->json)
		return wrong(args, "option '--json': has no meaning for quota; see status");
	return -1;
}

static int read_operands(int argc, char **argv, struct arguments *args)
{
	char quoted[WORD_QUOTED_BYTES];
	int status;

	if (optind >= argc)
		return wrong(
			args, "a command is missing: status, quota, check or snapshot; see --help");
	args->command = argv[optind++];
	if (is_snapshot(args) && optind < argc)
		args->export = argv[optind++];
	if (is_snapshot(args) && optind < argc)
		args->dir = argv[optind++];
	if (optind < argc)
		args->operand = argv[optind++];
	status = check_arguments(args);
	if (status < 0 && optind < argc)
		return wrong(args, "%s: one operand too many; see --help",
			word_quote(argv[optind], quoted));
	return status;
}

static int read_arguments(int argc, char **argv, struct arguments *args)
{
	bool check = argc > 1 && strcmp(argv[1], "check") == 0;
	char why[256];
	int opt;

	args->wrong = check ? CTL_CHECK_IMPOSSIBLE : EXIT_FAILURE;
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
			return wrong(args, "%s", why);
		}
	}
	return read_operands(argc, argv, args);
}

static int show_status(const struct arguments *args)
{
	const char *where = args->operand ? args->operand : RMEMFS_DEFAULT_SOCKET;
	autofree char *text = NULL;
	char why[256];

	if (ctl_fetch_status(where, TIMEOUT_MS, &text, why, sizeof(why))) {
		fprintf(stderr, "rmemfsctl: %s: %s\n", where, why);
		return EXIT_FAILURE;
	}
	if (args->json) {
		puts(text);
	} else if (is_quota(args) ? ctl_print_quotas(text) : ctl_print_status(text)) {
		fprintf(stderr, "rmemfsctl: %s: the server's answer is malformed\n", where);
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct arguments args = {.command = "status"};
	int status;

	log_init("rmemfsctl", LOG_LEVEL_ERROR);
	status = read_arguments(argc, argv, &args);
	if (status >= 0)
		return status;
	if (is_snapshot(&args))
		return ctl_snapshot(
			args.operand ? args.operand : RMEMFS_DEFAULT_SOCKET, args.export, args.dir);
	return is_check(&args) ? ctl_check(args.operand) : show_status(&args);
}
