/* dirent.h - directory entries: one index, by a keyed hash of the name.
 *
 * An entry's cookie is its key: a hash of the name, and 8 bits that tell colliding names apart. The
 * entry keeps it for life, whatever entries come and go around it, so a directory can be read
 * across changes. A new name's cookie may lie anywhere, so reading ends even if each name is
 * changed meanwhile.
 *
 * WIDTH    A cookie is also the offset that telldir(3) returns. A 32-bit program without large
 *          files lists only entries whose offset is below 2^31. So the hash has 23 bits: cookies
 *          lie from 256 to INT32_MAX. Stores that were made when it had 55 keep that width, since
 *          keys can't change under open directories: theirs lie from 256 to INT64_MAX.
 * LOAD     Of ten million names in a directory about ten share the fullest hash, of a million about
 *          five. 23 and 8 bits are exhausted by 1.5 thousand million names of one directory. With
 *          22 and 9 it would be 1.7, with 24 and 7 it would be 1.3. A lookup compares the names
 *          that have the same hash. The hash's key is secret, but offsets tell a user the hash of
 *          each name that is made. So a user can search for 257 names with one hash, by as many
 *          tries. They only keep further names with that hash out of a directory that the user may
 *          change anyway.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed, but for -ENOENT where said.
 */
#ifndef RMEMFS_SERVER_RECORD_DIRENT_H
#define RMEMFS_SERVER_RECORD_DIRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "common/base/namehash.h"
#include "server/record/volume.h"

/* How the names of a store are hashed. */
struct dirent_hash {
	uint8_t key[NAMEHASH_KEY_BYTES];
	uint8_t bits; /* one of the two below; fewer in tests, so that names collide */
};
enum { DIRENT_HASH_BITS = 23, DIRENT_HASH_BITS_WIDE = 55 };

/* So many names of one directory may have the same hash. */
enum { DIRENT_COLLISION_BITS = 8, DIRENT_COLLISIONS = 1 << DIRENT_COLLISION_BITS };

struct dirent_entry {
	uint64_t cookie;
	uint64_t ino;
	uint8_t type;        /* DT_* */
	struct rpc_str name; /* in the store's map: valid until the next change */
};

/* A name's place in a directory. */
struct dirent_slot {
	uint64_t dir; /* inode key */
	uint64_t cookie;
	uint64_t ino; /* 0: no such entry, the slot is free */
	uint8_t type;
};

uint8_t dirent_type(uint32_t mode);

/* Whether both give a name the same cookies. */
bool dirent_same_hash(const struct dirent_hash *a, const struct dirent_hash *b);
/* Cookies are below 1 << this. */
unsigned dirent_cookie_bits(const struct dirent_hash *hash);

/* The first of the DIRENT_COLLISIONS cookies that an entry of this name may have. */
uint64_t dirent_first_cookie(const struct dirent_hash *hash, const struct rpc_str *name);
bool dirent_same_name(const struct rpc_str *a, const struct rpc_str *b);

/* The entry of the name, or where it can be added. -ENOSPC: 256 names with one hash. */
int dirent_find(struct volume *v, const struct dirent_hash *hash, uint64_t dir,
	const struct rpc_str *name, struct dirent_slot *slot);

/* Adds the entry, or replaces the inode that it names. */
int dirent_put(struct volume *v, const struct dirent_slot *slot, const struct rpc_str *name,
	uint64_t ino, uint8_t type);
int dirent_del(struct volume *v, const struct dirent_slot *slot);

/* The first entry beyond the cookie; -ENOENT: none. */
int dirent_next(struct volume *v, uint64_t dir, uint64_t cookie, struct dirent_entry *out);
int dirent_empty(struct volume *v, uint64_t dir, bool *empty);

int dirent_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct dirent_entry *out);

#endif
