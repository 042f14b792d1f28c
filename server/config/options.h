/* options.h - the command line of rmemfs-server. */
#ifndef RMEMFS_SERVER_CONFIG_OPTIONS_H
#define RMEMFS_SERVER_CONFIG_OPTIONS_H

#include <stdbool.h>

#include "server/config/config.h"

enum options_result {
	OPTIONS_RUN,  /* config is complete */
	OPTIONS_DONE, /* --help or --version: the text was printed; exit 0 */
	/* config is complete and was printed; the caller checks it against the machine. */
	OPTIONS_CHECK_CONFIG,
	OPTIONS_CHECK, /* config.check is a directory; nothing else was read */
	/* The reason is on standard error, and systemd was told. */
	OPTIONS_WRONG,
	OPTIONS_UNRESOLVED, /* a name in `listen` has no address now */
};

/* Reads the command line, and the configuration that it names, into an initialised config. */
enum options_result server_options_parse(int argc, char **argv, struct server_config *config);

/* Reads the configuration anew, as the command line of the running server names it, into an
 * initialised config. 0 or -errno with a line in why. Nothing is printed. */
int server_options_again(
	const struct server_config *running, struct server_config *config, char *why, size_t len);

#endif
