/* access_table.h - the clients of all exports, with their keys: made from the configuration, and
 * replaced whole by a reload.
 *
 * A table is never changed after it was made. It copies all that it needs of the configuration.
 *
 * OWNERSHIP  References are counted. access_table_new() gives the first, access_table_put() takes
 *            one back. The last one frees the table, and overwrites its keys.
 * THREADS    Any thread may read a table that it has a reference to, and count references.
 * ERRORS     0 or -errno with a line in why that has file and line, or option.
 */
#ifndef RMEMFS_SERVER_ACCESS_ACCESS_TABLE_H
#define RMEMFS_SERVER_ACCESS_ACCESS_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/auth/auth_key.h"
#include "common/auth/auth_key_file.h"
#include "server/access/hosts.h"
#include "server/config/config.h"

/* A key that a channel has proven. It has no secret, so that channels may keep it. The fingerprint
 * tells the key from a later one of the same id. */
struct access_proof {
	char id[AUTH_KEY_ID_MAX + 1];
	char fingerprint[AUTH_KEY_FINGERPRINT_BYTES];
};

struct access_key {
	const struct auth_key *secret;
	struct access_proof proof; /* of a channel that has shown that it knows the secret */
};

struct access_file {
	char *path;
	struct auth_key_file keys;
};

struct access_client {
	char name[CLIENT_NAME_MAX + 1];
	enum access_level level;
	unsigned sessions;
	struct squash squash;           /* of its users */
	const struct access_file *file; /* NULL: insecure, needs no key */
	struct host *hosts;
	size_t nhosts; /* 0: from any address */
};

struct access_export {
	char *name;
	enum protection protection;
	struct access_client *clients;
	size_t n;
};

struct access_table {
	atomic_uint references;
	enum access_level local; /* over shm, for root and this user */
	struct access_export *exports;
	size_t nexports;
	struct access_file *files; /* each path once */
	size_t nfiles;
	struct access_key *keys; /* of all files, by id */
	size_t nkeys;
};

/* Exports of an earlier table that the configuration has no more, and that keep their clients. */
struct access_kept {
	const struct access_table *before;
	const char *const *names; /* [n] */
	size_t n;
};

/* Reads the key files. config: finished. An id with other bytes in two files is refused, since a
 * client names its key by the id. kept may be NULL; a key file of theirs that can't be read any
 * more counts as empty. */
int access_table_new(const struct server_config *config, const struct access_kept *kept,
	struct access_table **out, char *why, size_t whylen);
struct access_table *access_table_get(struct access_table *table);
/* table may be NULL. */
void access_table_put(struct access_table *table);

/* The export, or the key, of that name; or NULL. The text need not end with a NUL. They live as
 * long as the table. */
const struct access_export *access_table_export(
	const struct access_table *table, const char *name, size_t len);
const struct access_key *access_table_key(
	const struct access_table *table, const char *id, size_t len);
/* Whether the client's file has a key of this id. */
bool access_table_has(const struct access_client *client, const char *id);

#endif
