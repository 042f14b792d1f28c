/* config_clients.h - the clients that an export is for, as its configuration names them.
 *
 * An entry is the name by which the server knows a holder of keys, and what that holder may do. Key
 * files and hosts are checked where they are read, in server/access.
 *
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_CONFIG_CONFIG_CLIENTS_H
#define RMEMFS_SERVER_CONFIG_CONFIG_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/conf/conf.h"
#include "common/rpc/squash.h"

enum { CLIENT_NAME_MAX = 32, CLIENT_SESSIONS_MAX = 256 };

/* The default of anonuid and anongid: the nobody and nogroup of most systems. */
enum { CLIENT_ANONYMOUS_ID = 65534 };

/* Root and the server's user have this name over shm. No entry has it. */
#define CLIENT_LOCAL "local"
/* The entry of --insecure. */
#define CLIENT_ANYBODY "anybody"

/* Each one includes those before it. */
enum access_level {
	ACCESS_NONE,
	ACCESS_STATUS,    /* to ask for the export's state */
	ACCESS_READ_ONLY, /* to mount it with ro */
	ACCESS_READ_WRITE
};

/* An element of clients. It has one of keys and insecure. */
struct export_client {
	char *name;
	char *keys; /* path of a file */
	struct conf_strings hosts;
	enum access_level access; /* ACCESS_NONE: not set, is read-write */
	uint64_t sessions; /* at this export, at a time; 0: not set, is CLIENT_SESSIONS_MAX */
	bool insecure;     /* needs no key */
	/* Its users, see common/rpc/squash.h. The ids are 0 where squash is SQUASH_NONE, and before
	 * config_clients_finish() also where they are not set. */
	enum squash_kind squash;
	uint64_t anonuid, anongid;
};

extern const struct conf_key config_clients_keys[];
/* "read-write", "read-only", "none": of local_access. */
extern const struct word config_clients_local_words[];

/* Fills in the defaults of the elements, and checks them together. path: of the configuration
 * file. */
int config_clients_finish(struct conf_groups *clients, const char *path, char *why, size_t whylen);

/* For exports of the command line, whose clients key describes. Adds the client that has the keys
 * in a file, and is named by it; with file NULL: anybody. Reasons begin with "--key: ". */
int config_clients_add(const struct conf_key *key, struct conf_groups *clients, const char *file,
	char *why, size_t whylen);

#endif
