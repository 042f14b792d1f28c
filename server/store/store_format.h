/* store_format.h - how records lie in the store: the tables' names and keys, and the sum that each
 * value ends with.
 *
 * THREADS  Any: pure functions.
 */
#ifndef RMEMFS_SERVER_STORE_STORE_FORMAT_H
#define RMEMFS_SERVER_STORE_STORE_FORMAT_H

#include "server/store/store.h"

/* The superblock, record 0 of STORE_META, begins with the magic and the version (u32). */
#define STORE_MAGIC "rmemfsM"
enum {
	STORE_MAGIC_BYTES = sizeof(STORE_MAGIC),
	STORE_VERSION = 5,
	/* Names are hashed to DIRENT_HASH_BITS_WIDE. All else is the same, but for one thing: a
	 * former server can't read a lock that a read-only session has taken (lock.c). */
	STORE_VERSION_WIDE = 4,
	STORE_VERSION_NO_SUMS = 1,
};

enum {
	STORE_SUM_BYTES = 4,
	STORE_KEY_BYTES_MAX = 16,
};

extern const char *const store_table_names[STORE_TABLES];

/* How a key of the table is stored: tables below STORE_PAIRS have hi as a native integer. The
 * others have both halves big-endian, so that bytes are in the keys' order. Returns the key's
 * length. */
size_t store_key_bytes(enum store_table table);
size_t store_key_pack(enum store_table table, const struct store_key *key, uint64_t buf[2]);
struct store_key store_key_unpack(enum store_table table, const void *data);

/* The sum of a value and its place: a value that is right in another place is wrong here. */
uint32_t store_sum(
	enum store_table table, const struct store_key *key, const void *data, size_t len);
/* A hash of bytes that have no place. */
uint64_t store_hash(const void *data, size_t len);
/* Takes the sum off a stored value; false: it is not the value that was stored. */
bool store_val_check(enum store_table table, const struct store_key *key, struct store_val *stored);

#endif
