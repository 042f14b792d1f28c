/* rmemfsctl.c - the admin tool: what a server is doing, and whether what it left is whole. */
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/ctl_args.h"
#include "daemon/ctl_check.h"
#include "daemon/ctl_client.h"
#include "daemon/ctl_json.h"
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

static void print_tables(enum ctl_command command, json_t *root)
{
	ctl_json_clean(root);
	switch (command) {
	case CTL_LEASES:
		ctl_print_leases(root);
		break;
	case CTL_WHO:
		ctl_print_who(root);
		break;
	case CTL_QUOTA:
		ctl_print_quotas(root);
		break;
	default:
		ctl_print_status(root);
		break;
	}
}

static int print(const struct ctl_args *args, const char *text)
{
	json_t *root = ctl_json_read(text);
	int err = 0;

	if (!root) {
		log_error("%s: the server's answer is malformed", args->operands[CTL_HOST]);
		return EXIT_FAILURE;
	}
	if (args->json)
		err = ctl_json_print(root);
	else
		print_tables(args->command, root);
	json_decref(root);
	return !err && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int show(const struct ctl_args *args)
{
	const char *where = args->operands[CTL_HOST];
	autofree char *text = NULL;
	char why[256];

	if (fetch(args, &text, why, sizeof(why))) {
		log_error("%s: %s", where, why);
		return EXIT_FAILURE;
	}
	return print(args, text);
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
