/* args.h - the command line of rmemfsctl: its commands, and the operands of each. */
#ifndef RMEMFS_DAEMON_CTL_ARGS_H
#define RMEMFS_DAEMON_CTL_ARGS_H

#include <stdbool.h>

enum ctl_command {
	CTL_STATUS,
	CTL_MOUNTS,
	CTL_LOG,
	CTL_UPGRADE,
	CTL_ABORT,
	CTL_EVICT,
	CTL_LEASES,
	CTL_WHO,
	CTL_QUOTA,
	CTL_CHECK,
	CTL_SNAPSHOT,
	CTL_RELOAD,
	CTL_EXPORTS,
	CTL_KEYGEN,
	CTL_KEYCHECK,
	CTL_DOCTOR,
	CTL_HEALTH,
	CTL_REPORT,
	CTL_TOP,
	CTL_COMMANDS
};
/* CTL_SERVER is a HOST without a default. */
enum ctl_operand {
	CTL_HOST,
	CTL_EXPORT,
	CTL_DIR,
	CTL_PATH,
	CTL_NAME,
	CTL_FILE,
	CTL_MOUNTPOINT,
	CTL_TARGET,
	CTL_LEVEL,
	CTL_SESSION,
	CTL_SERVER,
	CTL_ACTION, /* "list", "add", "remove", "resize": what to do with an export */
	CTL_SIZE,
	CTL_OPERANDS
};

/* Exit statuses of CTL_DOCTOR. Wrong usage ends as failures do. */
enum { CTL_DOCTOR_WELL, CTL_DOCTOR_WARNINGS, CTL_DOCTOR_FAILURES };

/* Exit statuses of CTL_HEALTH, as plugins of monitoring have them. Wrong usage is unknown. */
enum { CTL_HEALTH_OK, CTL_HEALTH_WARNING, CTL_HEALTH_CRITICAL, CTL_HEALTH_UNKNOWN };

struct ctl_args {
	enum ctl_command command;
	/* They point into argv and are not empty. NULL: the command does not take it, or it was
	 * left out; CTL_HOST is always there. */
	const char *operands[CTL_OPERANDS];
	bool json, once;
	const char *key_file;  /* NULL: none */
	unsigned snapshot_max; /* hours; 0: not given */
	bool has_host;         /* --host was given */
	const char *config;    /* the server's configuration; NULL: the installed one */
	bool yes;              /* --yes was given: the loss is meant */
};

/* -1: the command in args is to be run. Otherwise the exit status: help or the version was printed,
 * or standard error has one line about the mistake, with the command's usage. */
int ctl_args_read(int argc, char **argv, struct ctl_args *args);

#endif
