/* store_format.c - see store_format.h. */
#include "server/store/store_format.h"

#include <xxhash.h>

#include "common/base/util.h"

const char *const store_table_names[STORE_TABLES] = {
	[STORE_META] = "meta",
	[STORE_INODE] = "inode",
	[STORE_SPACE] = "space",
	[STORE_REAP] = "reap",
	[STORE_SYMLINK] = "symlink",
	[STORE_SESSION] = "session",
	[STORE_QUOTA] = "quota",
	[STORE_DIRENT] = "dirent",
	[STORE_EXTENT] = "extent",
	[STORE_ORPHAN] = "orphan",
	[STORE_REPLY] = "reply",
	[STORE_XATTR] = "xattr",
	[STORE_XVALUE] = "xvalue",
	[STORE_STAGE] = "stage",
	[STORE_HELD] = "held",
	[STORE_LEASE] = "lease",
	[STORE_LOCK] = "lock",
};

size_t store_key_bytes(enum store_table table)
{
	return table < STORE_PAIRS ? sizeof(uint64_t) : STORE_KEY_BYTES_MAX;
}

size_t store_key_pack(enum store_table table, const struct store_key *key, uint64_t buf[2])
{
	if (table < STORE_PAIRS) {
		buf[0] = key->hi;
	} else {
		buf[0] = htobe64(key->hi);
		buf[1] = htobe64(key->lo);
	}
	return store_key_bytes(table);
}

struct store_key store_key_unpack(enum store_table table, const void *data)
{
	uint64_t buf[2] = {0};

	memcpy(buf, data, store_key_bytes(table));
	if (table < STORE_PAIRS)
		return STORE_KEY(buf[0]);
	return STORE_KEY(be64toh(buf[0]), be64toh(buf[1]));
}

uint32_t store_sum(
	enum store_table table, const struct store_key *key, const void *data, size_t len)
{
	/* Odd multipliers, so that no part of the place is lost. */
	uint64_t seed = (key->hi ^ (uint64_t)table << 56) * UINT64_C(0x9e3779b97f4a7c15);

	if (table >= STORE_PAIRS)
		seed ^= key->lo * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (uint32_t)XXH3_64bits_withSeed(data, len, seed);
}

uint64_t store_hash(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

bool store_val_check(enum store_table table, const struct store_key *key, struct store_val *stored)
{
	uint32_t sum;

	if (stored->len < STORE_SUM_BYTES)
		return false;
	stored->len -= STORE_SUM_BYTES;
	memcpy(&sum, (const char *)stored->data + stored->len, STORE_SUM_BYTES);
	return sum == store_sum(table, key, stored->data, stored->len);
}
