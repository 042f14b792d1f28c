/* options.h - the command line of rmemfs-server. */
#ifndef RMEMFS_SERVER_CONFIG_OPTIONS_H
#define RMEMFS_SERVER_CONFIG_OPTIONS_H

#include <stdbool.h>

#include "server/config/config.h"

enum options_result {
	OPTIONS_RUN,          /* config is complete */
	OPTIONS_DONE,         /* --help, --version: said what was asked, exit 0 */
	OPTIONS_CHECK_CONFIG, /* config is complete, and said; it is to be held against the machine
			       */
	OPTIONS_CHECK,        /* config.check is a directory; nothing else was read */
	/* The reason is on standard error, and systemd has it. */
	OPTIONS_WRONG,
	OPTIONS_UNRESOLVED, /* a name in `listen` has no address now */
};

/* Reads the command line and the configuration that it names into config, which was initialised. */
enum options_result server_options_parse(int argc, char **argv, struct server_config *config);

#endif
