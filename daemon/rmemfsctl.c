/* rmemfsctl.c - the admin tool: what a server is doing, and whether what it left is whole. */
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/ctl_args.h"
#include "daemon/ctl_check.h"
#include "daemon/ctl_client.h"
#include "daemon/ctl_print.h"
#include "daemon/ctl_snapshot.h"

enum { TIMEOUT_MS = 5000 };

static int fetch(const struct ctl_args *args, char **text, char *why, size_t whylen)
{
	const char *where = args->operands[CTL_HOST];

	if (args->command == CTL_WHO)
		return ctl_fetch_who(where, TIMEOUT_MS, args->operands[CTL_EXPORT],
			args->operands[CTL_PATH], text, why, whylen);
	return ctl_fetch_status(where, TIMEOUT_MS, text, why, whylen);
}

static int print(const struct ctl_args *args, const char *text)
{
	switch (args->command) {
	case CTL_LEASES:
		return ctl_print_leases(text);
	case CTL_WHO:
		return ctl_print_who(text);
	case CTL_QUOTA:
		return ctl_print_quotas(text);
	default:
		return ctl_print_status(text);
	}
}

static int show(const struct ctl_args *args)
{
	const char *where = args->operands[CTL_HOST];
	autofree char *text = NULL;
	char why[256];

	if (fetch(args, &text, why, sizeof(why))) {
		fprintf(stderr, "rmemfsctl: %s: %s\n", where, why);
		return EXIT_FAILURE;
	}
	if (args->json) {
		puts(text);
	} else if (print(args, text)) {
		fprintf(stderr, "rmemfsctl: %s: the server's answer is malformed\n", where);
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct ctl_args args;
	int status;

	log_init_command("rmemfsctl", LOG_LEVEL_ERROR);
	status = ctl_args_read(argc, argv, &args);
	if (status >= 0)
		return status;
	switch (args.command) {
	case CTL_CHECK:
		return ctl_check(args.operands[CTL_DIR]);
	case CTL_SNAPSHOT:
		return ctl_snapshot(
			args.operands[CTL_HOST], args.operands[CTL_EXPORT], args.operands[CTL_DIR]);
	default:
		return show(&args);
	}
}
