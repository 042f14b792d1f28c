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

static int show_status(const struct ctl_args *args)
{
	const char *where = args->operands[CTL_HOST];
	autofree char *text = NULL;
	char why[256];

	if (ctl_fetch_status(where, TIMEOUT_MS, &text, why, sizeof(why))) {
		fprintf(stderr, "rmemfsctl: %s: %s\n", where, why);
		return EXIT_FAILURE;
	}
	if (args->json) {
		puts(text);
	} else if (args->command == CTL_QUOTA ? ctl_print_quotas(text) : ctl_print_status(text)) {
		fprintf(stderr, "rmemfsctl: %s: the server's answer is malformed\n", where);
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct ctl_args args;
	int status;

	log_init("rmemfsctl", LOG_LEVEL_ERROR);
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
		return show_status(&args);
	}
}
