/* config.h - the server's settings: its configuration file, and the command line, which overrides
 * it.
 *
 * OWNERSHIP  server_config_fini() frees what the other functions stored.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_CONFIG_CONFIG_H
#define RMEMFS_SERVER_CONFIG_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "common/base/log.h"
#include "common/transport/protection.h"
#include "common/transport/transport.h"
#include "server/config/config_clients.h"
#include "server/config/config_quotas.h"
#include "server/base/numa.h"

#define SERVER_CONFIG_PATH RMEMFS_SYSCONFDIR "/server.conf"

enum huge_pages { HUGE_PAGES_NEVER, HUGE_PAGES_ADVISE, HUGE_PAGES_ALWAYS };

struct export_config {
	char *name;
	/* The file that has it, borrowed; NULL: the command line, or the default. */
	const char *path;
	uint64_t size;              /* bytes of data: whole pages */
	uint64_t inodes;            /* limit; 0: as many as fit */
	uint64_t metadata;          /* share of the store, in bytes; 0: its part by size */
	uint64_t share;             /* the same; 0: all. Set by server_config_finish() */
	struct conf_groups quotas;  /* struct quota_config */
	struct quota_limit *limits; /* [quotas.n]; set by server_config_finish() */
	struct conf_groups clients; /* struct export_client */
	enum protection protection; /* over tcp and verbs */
};

struct server_config {
	int argc; /* the command line, for a reload; set by server_options_parse() */
	char **argv;
	char *memory_dir;
	struct conf_strings listen;
	struct conf_groups exports; /* struct export_config */
	bool built_in;              /* nobody has named any: the only one is the default; set by
				     * server_config_finish() */
	uint64_t region_size;
	uint64_t lease_time;   /* seconds */
	uint64_t lease_limit;  /* leases that a client may keep */
	uint64_t peer_timeout; /* seconds */
	uint64_t io_threads;
	uint64_t metadata_reserve; /* bytes; 0: see server_config_store_bytes() */
	enum huge_pages huge_pages;
	uint64_t numa_node;     /* NUMA_AUTO: the node of the RDMA device */
	struct numa_place numa; /* set by server_config_finish() */
	char *snapshot_dir;
	bool snapshot_on_stop, restore_on_start;
	/* For root and the server's user over shm, at every export. */
	enum access_level local_access;
	enum log_level log_level;

	const char *check;           /* the directory of --check, or NULL; borrowed */
	struct conf_strings restore; /* --restore: snapshots' directories; no key of the file */
	const char *path;          /* the file that server_config_read() read; borrowed; or NULL */
	struct conf_strings files; /* of exports.d, see config_files.h */
	/* Names of exports with a mark of removal; line: enum removal_mark. See config_files.h. */
	struct conf_strings marks;
	/* [listen.n]; set by server_config_finish(), which puts sockets last. */
	struct transport_address *addresses;
};

#define NUMA_AUTO UINT64_MAX

/* The keys of the file. */
extern const struct conf_key server_config_keys[];
enum { SERVER_CONFIG_KEYS_MAX = 32 };

void server_config_init(struct server_config *config);
void server_config_fini(struct server_config *config);

int server_config_read(struct server_config *config, const char *path, char *why, size_t whylen);

/* For the command line, which overrides the file. Reasons name the option: "--listen: ...". */
int server_config_set_exports(struct server_config *config, const char *const *names_sizes,
	size_t n, char *why, size_t whylen);
/* Each export, all of which are of the command line, is for the holder of the keys in a file; with
 * file NULL: for anybody. */
int server_config_set_clients(
	struct server_config *config, const char *file, char *why, size_t whylen);
int server_config_set_listen(struct server_config *config, const char *const *addresses, size_t n,
	char *why, size_t whylen);
/* option: the option that gave the text. key: its name in the file. */
int server_config_set(struct server_config *config, const char *option, const char *key,
	const char *text, char *why, size_t whylen);

/* Fills in the defaults, and checks everything together. Resolves addresses. */
int server_config_finish(struct server_config *config, char *why, size_t whylen);

static inline const struct export_config *server_config_export(
	const struct server_config *config, size_t i)
{
	return (const struct export_config *)config->exports.v + i;
}

/* The export of that name, or NULL. */
const struct export_config *server_config_find(
	const struct server_config *config, const char *name);

static inline const struct export_client *server_config_client(
	const struct export_config *export, size_t i)
{
	return (const struct export_client *)export->clients.v + i;
}

/* Takes the export out, if it is there, and sets the others' shares of the metadata anew. */
int server_config_drop(struct server_config *config, const char *name, char *why, size_t whylen);

/* The size of the store, in bytes: by default a sixteenth of the data, at least 64 MiB, and at
 * least 4 MiB for each export. */
uint64_t server_config_store_bytes(const struct server_config *config);

#endif
