/* args.h - what rmemfsctl is asked to do: its commands, and what each of them takes. */
#ifndef RMEMFS_DAEMON_CTL_ARGS_H
#define RMEMFS_DAEMON_CTL_ARGS_H

#include <stdbool.h>

enum ctl_command { CTL_STATUS, CTL_LEASES, CTL_WHO, CTL_QUOTA, CTL_CHECK, CTL_SNAPSHOT };
enum ctl_operand { CTL_HOST, CTL_EXPORT, CTL_DIR, CTL_PATH, CTL_OPERANDS };

struct ctl_args {
	enum ctl_command command;
	/* Of argv, and not empty. NULL: the command does not take it; CTL_HOST is always there. */
	const char *operands[CTL_OPERANDS];
	bool json;
};

/* -1: do what args say. Else the exit status: help or the version was printed, or one line on
 * standard error says what is wrong, with the command's usage. */
int ctl_args_read(int argc, char **argv, struct ctl_args *args);

#endif
