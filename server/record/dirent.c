/* dirent.c - see dirent.h. The record: ino 8, type 1, then the name. */
#include "server/record/dirent.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/base/crash_point.h"
#include "common/rpc/wire.h"

_Static_assert(DIRENT_HASH_BITS + DIRENT_COLLISION_BITS == 31, "cookies fit a 32-bit off_t");
_Static_assert(DIRENT_HASH_BITS_WIDE + DIRENT_COLLISION_BITS == 63, "cookies fit a 64-bit off_t");

enum { FIXED_BYTES = 9, DIRENT_BYTES_MAX = FIXED_BYTES + NAME_BYTES_MAX };

uint8_t dirent_type(uint32_t mode)
{
	return (uint8_t)IFTODT(mode);
}

uint64_t dirent_first_cookie(const struct dirent_hash *hash, const struct rpc_str *name)
{
	uint64_t mask = (UINT64_C(1) << hash->bits) - 1;
	uint64_t h = namehash(hash->key, name->s, name->len) & mask;

	return (h ? h : 1) << DIRENT_COLLISION_BITS;
}

bool dirent_same_hash(const struct dirent_hash *a, const struct dirent_hash *b)
{
	return a->bits == b->bits && memcmp(a->key, b->key, NAMEHASH_KEY_BYTES) == 0;
}

unsigned dirent_cookie_bits(const struct dirent_hash *hash)
{
	return hash->bits + DIRENT_COLLISION_BITS;
}

int dirent_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct dirent_entry *out)
{
	struct wire_in r;

	wire_in_init(&r, val->data, val->len);
	out->cookie = key.lo;
	out->ino = wire_get_u64(&r);
	out->type = wire_get_u8(&r);
	if (r.truncated || !wire_in_left(&r) || wire_in_left(&r) > NAME_BYTES_MAX) {
		store_damaged(v->store, STORE_DIRENT, key);
		return -EBADMSG;
	}
	out->name = (struct rpc_str){(const char *)r.pos, (uint16_t)wire_in_left(&r)};
	return 0;
}

bool dirent_same_name(const struct rpc_str *a, const struct rpc_str *b)
{
	return a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
}

int dirent_find(struct volume *v, const struct dirent_hash *hash, uint64_t dir,
	const struct rpc_str *name, struct dirent_slot *slot)
{
	uint64_t first = dirent_first_cookie(hash, name), unused = first;
	struct store_key key = STORE_KEY(dir, first);
	struct store_val val;
	struct dirent_entry e;
	int err = store_seek(v->store, STORE_DIRENT, key, &key, NULL);

	/* The entry that ends the loop has another hash. Only its key matters, so its value is not
	 * read. */
	for (; !err && key.hi == dir && key.lo < first + DIRENT_COLLISIONS;
		err = store_next(v->store, STORE_DIRENT, &key, NULL)) {
		err = store_here(v->store, STORE_DIRENT, &val);
		if (!err)
			err = dirent_decode(v, key, &val, &e);
		if (err)
			return err;
		if (dirent_same_name(&e.name, name)) {
			*slot = (struct dirent_slot){dir, e.cookie, e.ino, e.type};
			return 0;
		}
		if (key.lo == unused)
			unused++;
	}
	if (err && err != -ENOENT)
		return err;
	*slot = (struct dirent_slot){.dir = dir, .cookie = unused};
	return unused < first + DIRENT_COLLISIONS ? 0 : -ENOSPC;
}

int dirent_put(struct volume *v, const struct dirent_slot *slot, const struct rpc_str *name,
	uint64_t ino, uint8_t type)
{
	uint8_t buf[DIRENT_BYTES_MAX];
	struct wire_out w;
	int err;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, ino);
	wire_put_u8(&w, type);
	wire_put(&w, name->s, name->len);
	err = store_put(
		v->store, STORE_DIRENT, STORE_KEY(slot->dir, slot->cookie), buf, wire_out_len(&w));
	CRASH_POINT("name.changed");
	return err;
}

int dirent_del(struct volume *v, const struct dirent_slot *slot)
{
	int err = store_del(v->store, STORE_DIRENT, STORE_KEY(slot->dir, slot->cookie));

	CRASH_POINT("name.changed");
	return err;
}

int dirent_next(struct volume *v, uint64_t dir, uint64_t cookie, struct dirent_entry *out)
{
	struct store_key key;
	struct store_val val;
	int err;

	if (cookie == UINT64_MAX)
		return -ENOENT;
	err = store_seek(v->store, STORE_DIRENT, STORE_KEY(dir, cookie + 1), &key, &val);
	if (!err && key.hi != dir)
		err = -ENOENT;
	return err ? err : dirent_decode(v, key, &val, out);
}

int dirent_empty(struct volume *v, uint64_t dir, bool *empty)
{
	struct dirent_entry e;
	int err = dirent_next(v, dir, 0, &e);

	*empty = err == -ENOENT;
	return *empty ? 0 : err;
}
