/* xattr.c - see xattr.h.
 *
 * The record: length of the name 1, 1 if the value is long; the name; then the value. A long value
 * has instead: the first record of its parts 8, its length 4, its sum 8. The parts are records in a
 * row, all but the last of XATTR_PART_BYTES. The header: length of the names 4. */
#include "server/record/xattr.h"

#include <errno.h>
#include <linux/xattr.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/record/inode.h"
#include "server/store/store_format.h"

enum { LONG_BYTES = 20, PARTS_STEP = 256 };

/* Pages: of the paths to the header and to the record; of a path to the parts; then for each part.
 * A page holds two parts, and may be merged with its neighbours. */
enum { ROOM_RECORDS = 16, ROOM_PARTS = 8, ROOM_PART = 3 };

uint32_t xattr_flag(const struct rpc_str *name)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} flags[] = {
		{XATTR_NAME_POSIX_ACL_ACCESS, ATTR_ACL},
		{XATTR_NAME_POSIX_ACL_DEFAULT, ATTR_DEFAULT_ACL},
		{XATTR_NAME_CAPS, ATTR_CAPS},
	};

	for (size_t n = 0; n < ARRAY_SIZE(flags); n++) {
		if (name->len == strlen(flags[n].name) &&
			memcmp(name->s, flags[n].name, name->len) == 0)
			return flags[n].flag;
	}
	return 0;
}

static uint32_t parts_of(uint32_t len)
{
	return len > XATTR_INLINE_MAX ? (uint32_t)div_round_up(len, XATTR_PART_BYTES) : 0;
}

uint32_t xattr_nparts(const struct xattr *x)
{
	return x->exists && x->parts ? parts_of(x->len) : 0;
}

/* ---- finding --------------------------------------------------------------------------------- */

static int decode_long(struct wire_in *r, struct xattr *x)
{
	x->parts = wire_get_u64(r);
	x->len = wire_get_u32(r);
	x->sum = wire_get_u64(r);
	return r->truncated || wire_in_left(r) || x->parts == 0 || x->parts % PARTS_STEP ||
			       x->len <= XATTR_INLINE_MAX || x->len > XATTR_VALUE_MAX
		       ? -EBADMSG
		       : 0;
}

static int decode_inline(struct wire_in *r, struct xattr *x)
{
	if (r->truncated || wire_in_left(r) > XATTR_INLINE_MAX)
		return -EBADMSG;
	x->len = (uint32_t)wire_in_left(r);
	x->data = r->pos;
	x->sum = store_hash(x->data, x->len);
	return 0;
}

int xattr_decode(
	struct volume *v, struct store_key key, const struct store_val *val, struct xattr *x)
{
	struct wire_in r;
	uint8_t is_long;

	*x = (struct xattr){.cookie = key.lo, .exists = true};
	wire_in_init(&r, val->data, val->len);
	x->name.len = wire_get_u8(&r);
	is_long = wire_get_u8(&r);
	x->name.s = wire_get_ref(&r, x->name.len);
	if (!x->name.len || is_long > 1 || (is_long ? decode_long(&r, x) : decode_inline(&r, x)))
		return store_damaged(v->store, STORE_XATTR, key);
	return 0;
}

int xattr_find(struct volume *v, const struct dirent_hash *hash, const struct stored_inode *i,
	const struct rpc_str *name, struct xattr *x)
{
	uint64_t first = dirent_first_cookie(hash, name), unused = first;
	struct store_key key = {0};
	struct store_val val;
	int err = -ENOENT;

	if (i->attr.flags & ATTR_XATTRS)
		err = store_seek(v->store, STORE_XATTR, STORE_KEY(i->key, first), &key, &val);
	for (; !err && key.hi == i->key && key.lo < first + DIRENT_COLLISIONS;
		err = store_next(v->store, STORE_XATTR, &key, &val)) {
		err = xattr_decode(v, key, &val, x);
		if (err || dirent_same_name(&x->name, name))
			return err;
		if (key.lo == unused)
			unused++;
	}
	if (err && err != -ENOENT)
		return err;
	*x = (struct xattr){.cookie = unused};
	return unused < first + DIRENT_COLLISIONS ? 0 : -ENOSPC;
}

int xattr_next(struct volume *v, const struct stored_inode *i, uint64_t cookie, struct xattr *x)
{
	struct store_key key;
	struct store_val val;
	int err;

	if (!(i->attr.flags & ATTR_XATTRS) || cookie == UINT64_MAX)
		return -ENOENT;
	err = store_seek(v->store, STORE_XATTR, STORE_KEY(i->key, cookie + 1), &key, &val);
	if (!err && key.hi != i->key)
		err = -ENOENT;
	return err ? err : xattr_decode(v, key, &val, x);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Calls fn with each piece of a range of the value. */
static int each_piece(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	uint32_t offset, uint32_t len, bool (*fn)(const void *piece, size_t bytes, void *arg),
	void *arg)
{
	if (!x->parts) {
		fn((const char *)x->data + offset, len, arg);
		return 0;
	}
	while (len) {
		uint32_t part = offset / XATTR_PART_BYTES, from = offset % XATTR_PART_BYTES;
		uint32_t bytes = (uint32_t)min_u64(
			x->len - part * (uint32_t)XATTR_PART_BYTES, XATTR_PART_BYTES);
		struct store_key key = STORE_KEY(i->key, x->parts + part);
		struct store_val val;
		int err = store_get(v->store, STORE_XVALUE, key, &val);

		if (err == -ENOENT || (!err && val.len != bytes))
			return store_damaged(v->store, STORE_XVALUE, key);
		if (err)
			return err;
		bytes = (uint32_t)min_u64(bytes - from, len);
		if (!fn((const char *)val.data + from, bytes, arg))
			return 0;
		offset += bytes;
		len -= bytes;
	}
	return 0;
}

static bool copy_piece(const void *piece, size_t bytes, void *arg)
{
	wire_put(arg, piece, bytes);
	return true;
}

int xattr_read(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	uint32_t offset, void *buf, uint32_t len)
{
	struct wire_out w;

	wire_out_init(&w, buf, len);
	return each_piece(v, i, x, offset, len, copy_piece, &w);
}

struct comparison {
	struct wire_in with;
	bool same;
};

static bool compare_piece(const void *piece, size_t bytes, void *arg)
{
	struct comparison *cmp = arg;
	const void *other = wire_get_ref(&cmp->with, bytes);

	cmp->same = !bytes || (other && memcmp(piece, other, bytes) == 0);
	return cmp->same;
}

int xattr_equals(struct volume *v, const struct stored_inode *i, const struct xattr *x,
	const void *data, uint32_t len, bool *same)
{
	struct comparison cmp = {.same = true};
	int err;

	*same = false;
	if (!x->exists || x->len != len)
		return 0;
	wire_in_init(&cmp.with, data, len);
	err = each_piece(v, i, x, 0, len, compare_piece, &cmp);
	*same = !err && cmp.same;
	return err;
}

/* ---- the header ------------------------------------------------------------------------------ */

int xattr_names_len(struct volume *v, const struct stored_inode *i, uint32_t *len)
{
	struct store_key key = STORE_KEY(i->key, XATTR_HEADER);
	struct store_val val;
	struct wire_in r;
	int err;

	*len = 0;
	if (!(i->attr.flags & ATTR_XATTRS))
		return 0;
	err = store_get(v->store, STORE_XATTR, key, &val);
	if (err && err != -ENOENT)
		return err;
	wire_in_init(&r, val.data, err ? 0 : val.len);
	*len = wire_get_u32(&r);
	if (r.truncated || wire_in_left(&r) || *len > XATTR_NAMES_MAX)
		return store_damaged(v->store, STORE_XATTR, key);
	return 0;
}

/* No names: no header. */
static int set_names_len(struct volume *v, struct stored_inode *i, uint32_t len)
{
	struct store_key key = STORE_KEY(i->key, XATTR_HEADER);
	uint8_t buf[sizeof(len)];
	struct wire_out w;

	if (!len) {
		i->attr.flags &= ~(uint32_t)ATTR_XATTRS;
		return store_del(v->store, STORE_XATTR, key);
	}
	i->attr.flags |= ATTR_XATTRS;
	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u32(&w, len);
	return store_put(v->store, STORE_XATTR, key, buf, sizeof(buf));
}

static int xattr_add_name(struct volume *v, struct stored_inode *i, const struct rpc_str *name)
{
	uint32_t len;
	int err = xattr_names_len(v, i, &len);

	i->attr.flags |= xattr_flag(name);
	return err ? err : set_names_len(v, i, len + name->len + 1);
}

static int xattr_remove_name(struct volume *v, struct stored_inode *i, const struct rpc_str *name)
{
	uint32_t len;
	int err = xattr_names_len(v, i, &len);

	if (!err && len < name->len + 1u)
		err = store_damaged(v->store, STORE_XATTR, STORE_KEY(i->key, XATTR_HEADER));
	i->attr.flags &= ~xattr_flag(name);
	return err ? err : set_names_len(v, i, len - (name->len + 1u));
}

/* ---- changing -------------------------------------------------------------------------------- */

uint64_t xattr_room(const struct xattr *x, uint32_t len)
{
	uint64_t nparts = xattr_nparts(x) + parts_of(len);

	return ROOM_RECORDS + (nparts ? ROOM_PARTS + ROOM_PART * nparts : 0);
}

/* Where the parts of a new long value can begin. */
static int place_parts(struct volume *v, const struct stored_inode *i, uint64_t *parts)
{
	struct store_key key;
	int err =
		store_seek_back(v->store, STORE_XVALUE, STORE_KEY(i->key, UINT64_MAX), &key, NULL);
	bool none = err == -ENOENT || (!err && key.hi != i->key);

	if (err && !none)
		return err;
	*parts = none ? PARTS_STEP : (key.lo / PARTS_STEP + 1) * PARTS_STEP;
	return 0;
}

static int put_parts(struct volume *v, const struct stored_inode *i, uint64_t parts,
	const void *data, uint32_t len)
{
	int err = 0;

	for (uint32_t at = 0; !err && at < len; at += XATTR_PART_BYTES)
		err = store_append(v->store, STORE_XVALUE, STORE_KEY(i->key, parts++),
			(const char *)data + at, min_u64(len - at, XATTR_PART_BYTES));
	return err;
}

static int del_parts(
	struct volume *v, const struct stored_inode *i, const struct xattr *x, uint32_t from)
{
	int err = 0;

	for (uint32_t n = from; !err && n < xattr_nparts(x); n++) {
		struct store_key key = STORE_KEY(i->key, x->parts + n);

		err = store_del(v->store, STORE_XVALUE, key);
		if (err == -ENOENT)
			err = store_damaged(v->store, STORE_XVALUE, key);
	}
	return err;
}

static int put_record(struct volume *v, const struct stored_inode *i, uint64_t cookie,
	uint64_t parts, const struct rpc_str *name, const void *data, uint32_t len)
{
	uint8_t buf[2 + NAME_BYTES_MAX + XATTR_INLINE_MAX];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u8(&w, (uint8_t)name->len);
	wire_put_u8(&w, parts != 0);
	wire_put(&w, name->s, name->len);
	if (parts) {
		wire_put_u64(&w, parts);
		wire_put_u32(&w, len);
		wire_put_u64(&w, store_hash(data, len));
	} else {
		wire_put(&w, data, len);
	}
	return store_put(v->store, STORE_XATTR, STORE_KEY(i->key, cookie), buf, wire_out_len(&w));
}

int xattr_put(struct volume *v, struct stored_inode *i, const struct xattr *x,
	const struct rpc_str *name, const void *data, uint32_t len)
{
	uint32_t nparts = parts_of(len);
	uint64_t parts = nparts ? x->parts : 0;
	int err = x->exists ? 0 : xattr_add_name(v, i, name);

	if (!err && nparts && !parts)
		err = place_parts(v, i, &parts);
	if (!err)
		err = del_parts(v, i, x, nparts);
	if (!err && nparts)
		err = put_parts(v, i, parts, data, len);
	return err ? err : put_record(v, i, x->cookie, parts, name, data, len);
}

int xattr_del(
	struct volume *v, struct stored_inode *i, const struct xattr *x, const struct rpc_str *name)
{
	int err = del_parts(v, i, x, 0);

	if (!err)
		err = store_del(v->store, STORE_XATTR, STORE_KEY(i->key, x->cookie));
	return err ? err : xattr_remove_name(v, i, name);
}

static int free_table(struct volume *v, const struct stored_inode *i, enum store_table table,
	unsigned *budget, bool *done)
{
	struct store_key key;
	int err;

	for (err = store_seek(v->store, table, STORE_KEY(i->key), &key, NULL);
		!err && key.hi == i->key && *budget;
		err = store_seek(v->store, table, STORE_KEY(i->key), &key, NULL)) {
		err = store_del(v->store, table, key);
		if (err)
			return err;
		--*budget;
	}
	if (err && err != -ENOENT)
		return err;
	*done = err == -ENOENT || key.hi != i->key;
	return 0;
}

int xattr_free(struct volume *v, const struct stored_inode *i, unsigned *budget, bool *done)
{
	int err;

	*done = true;
	if (!(i->attr.flags & ATTR_XATTRS))
		return 0;
	err = free_table(v, i, STORE_XVALUE, budget, done);
	return err || !*done ? err : free_table(v, i, STORE_XATTR, budget, done);
}
