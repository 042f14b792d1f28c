/* config.h - what a mount is set to: the defaults, client.conf over them, mount options over that.
 *
 * OWNERSHIP  client_config_fini() frees what the others stored.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_CONFIG_H
#define RMEMFS_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "common/transport.h"

#define CLIENT_CONFIG_PATH RMEMFS_SYSCONFDIR "/client.conf"

struct client_config {
	uint64_t port;            /* 0: not given */
	uint64_t connect_timeout; /* seconds */
	uint64_t peer_timeout;    /* seconds */
	bool soft; /* operations end with EIO after timeo seconds without the server */
	uint64_t timeo;
	bool debug_io;
	uint64_t io_threads; /* 0: by the number of CPUs */
	uint64_t buffers;    /* data buffers of each I/O thread */
	uint64_t merge_pages;
	uint64_t spin_us; /* SPIN_AUTO: by the number of CPUs */
	char *transport_name, *log_level_name;

	/* From client_config_finish(). */
	bool auto_transport; /* else transport */
	enum transport_kind transport;
	enum log_level log_level;
};

#define SPIN_AUTO UINT64_MAX

void client_config_init(struct client_config *config);
void client_config_fini(struct client_config *config);

int client_config_read(struct client_config *config, const char *path, char *why, size_t whylen);

/* Whether name is a setting, which mount options may give as name=value. */
bool client_config_has(const char *name);
/* Sets one. -EINVAL: why says what the value must be, without naming the setting. */
int client_config_set(struct client_config *config, const char *name, const char *value, char *why,
	size_t whylen);

/* Checks the words and settles what is left to the number of CPUs. */
int client_config_finish(struct client_config *config, unsigned ncpus, char *why, size_t whylen);

#endif
