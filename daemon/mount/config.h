/* config.h - the settings of a mount: the defaults, client.conf over them, mount options over that.
 * Mount options are set by conf_set() with a key of client_config_keys.
 *
 * OWNERSHIP  client_config_fini() frees the memory that the others stored.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_MOUNT_CONFIG_H
#define RMEMFS_DAEMON_MOUNT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "common/base/log.h"
#include "common/transport/protection.h"
#include "common/transport/transport.h"

#define CLIENT_CONFIG_PATH RMEMFS_SYSCONFDIR "/client.conf"

struct client_config {
	char *key; /* path of the file with the mount's keys; NULL: none */
	enum protection protection;
	uint64_t port;            /* 0: not given */
	uint64_t connect_timeout; /* seconds */
	uint64_t peer_timeout;    /* seconds */
	bool soft; /* operations end with EIO after timeo seconds without the server */
	uint64_t timeo, interrupt_wait;
	bool exit_when_lost; /* the daemon ends when the session is lost */
	bool revive;         /* a killed daemon's successor goes on with the mount */
	bool low_latency;    /* the machine's CPUs are kept awake */
	bool exclusive;      /* no other mount has the export meanwhile */
	bool share;          /* by leases from the beginning on, not only when another one comes */
	bool debug_io;       /* a line for each request of the data path */
	uint64_t io_threads; /* 0: by the number of CPUs */
	uint64_t buffers;    /* data buffers of each I/O thread */
	uint64_t readahead;  /* bytes */
	uint64_t merge_pages;
	uint64_t spin_us;      /* SPIN_AUTO: as long as there are two CPUs for each reader */
	uint64_t spin_readers; /* set by client_config_finish() */
	int transport;         /* enum transport_kind, or TRANSPORT_AUTO */
	int cache;             /* enum cache_mode */
	int ack;               /* enum ack_mode */
	int names;             /* enum names_mode */
	enum log_level log_level;
};

#define TRANSPORT_AUTO (-1)
#define SPIN_AUTO      UINT64_MAX

/* The file's keys, each a mount option, too. */
extern const struct conf_key client_config_keys[];
/* The server's keys that are none of these. */
extern const struct conf_elsewhere client_config_elsewhere;

void client_config_init(struct client_config *config);
void client_config_fini(struct client_config *config);

int client_config_read(struct client_config *config, const char *path, char *why, size_t whylen);

/* Sets values that depend on the number of CPUs, or follow from another setting. */
void client_config_finish(struct client_config *config, unsigned ncpus);

#endif
