/* dirent.h - directory entries: one index, by a keyed hash of the name.
 *
 * An entry's cookie is its key: 55 bits of hash and 8 that tell colliding names apart. It stays for
 * the entry's life, whatever comes and goes around it, so a directory may be read across changes.
 * A new name's may lie anywhere, so reading comes to an end though each name is changed meanwhile.
 * Cookies lie from 256 to INT64_MAX.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed, but for -ENOENT where said.
 */
#ifndef RMEMFS_SERVER_DIRENT_H
#define RMEMFS_SERVER_DIRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc.h"
#include "common/namehash.h"
#include "server/volume.h"

/* How the names of a store are hashed. */
struct dirent_hash {
	uint8_t key[NAMEHASH_KEY_BYTES];
	uint64_t mask; /* DIRENT_HASH_MASK; tests make names collide by a smaller one */
};
#define DIRENT_HASH_MASK ((UINT64_C(1) << 55) - 1)

/* Names with one hash that a directory may have. */
enum { DIRENT_COLLISIONS = 256 };

struct dirent_entry {
	uint64_t cookie;
	uint64_t ino;
	uint8_t type;        /* DT_* */
	struct rpc_str name; /* in the store's map: until the next change */
};

/* A name's place in a directory. */
struct dirent_slot {
	uint64_t dir; /* inode key */
	uint64_t cookie;
	uint64_t ino; /* 0: no such entry, the slot is free */
	uint8_t type;
};

uint8_t dirent_type(uint32_t mode);

/* The first of the DIRENT_COLLISIONS cookies that an entry of this name may have. */
uint64_t dirent_first_cookie(const struct dirent_hash *hash, const struct rpc_str *name);
bool dirent_same_name(const struct rpc_str *a, const struct rpc_str *b);

/* The entry of the name, or where it can be added. -ENOSPC: 256 names with one hash. */
int dirent_find(struct volume *v, const struct dirent_hash *hash, uint64_t dir,
	const struct rpc_str *name, struct dirent_slot *slot);

/* Adds the entry, or replaces what it names. */
int dirent_put(struct volume *v, const struct dirent_slot *slot, const struct rpc_str *name,
	uint64_t ino, uint8_t type);
int dirent_del(struct volume *v, const struct dirent_slot *slot);

/* The first entry beyond the cookie; -ENOENT: none. */
int dirent_next(struct volume *v, uint64_t dir, uint64_t cookie, struct dirent_entry *out);
int dirent_empty(struct volume *v, uint64_t dir, bool *empty);

int dirent_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct dirent_entry *out);

#endif
