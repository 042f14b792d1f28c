/* inode.c - see inode.h.
 *
 * The record, little-endian: flags 1 (ATTR_* in the upper half), mode 4, nlink 4, uid 4, gid 4,
 * size 8, npages 8, atime 8, mtime 8, ctime 8, btime 8, device or parent 8, nextents 4; then
 * extents of fpage 8, npages 4, page 4, region 2. A regular file has room for one extent from the
 * start: most get one, and pages of records that never grow stay full. */
#include "server/record/inode.h"

#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"
#include "server/record/reaper.h"

enum {
	FIXED_BYTES = 77,
	ATTR_FLAGS_SHIFT = 4,
	EXTENT_BYTES = 18,
	INODE_BYTES_MAX = FIXED_BYTES + INLINE_EXTENTS * EXTENT_BYTES,
};

static uint32_t extent_slots(const struct stored_inode *i)
{
	uint32_t n = inode_nhead(i);

	return n == 0 && S_ISREG(i->attr.mode) ? 1 : n;
}

static size_t encode(const struct stored_inode *i, uint8_t buf[INODE_BYTES_MAX])
{
	const struct attr *a = &i->attr;
	struct wire_out w;

	wire_out_init(&w, buf, INODE_BYTES_MAX);
	wire_put_u8(&w, (uint8_t)(i->flags | a->flags << ATTR_FLAGS_SHIFT));
	wire_put_u32(&w, a->mode);
	wire_put_u32(&w, a->nlink);
	wire_put_u32(&w, a->uid);
	wire_put_u32(&w, a->gid);
	wire_put_u64(&w, a->size);
	wire_put_u64(&w, a->npages);
	wire_put_u64(&w, (uint64_t)a->atime);
	wire_put_u64(&w, (uint64_t)a->mtime);
	wire_put_u64(&w, (uint64_t)a->ctime);
	wire_put_u64(&w, (uint64_t)a->btime);
	wire_put_u64(&w, inode_is_dir(i) ? i->parent : a->rdev);
	wire_put_u32(&w, i->nextents);
	for (uint32_t n = 0; n < extent_slots(i); n++) {
		const struct extent *e = &i->head[n];

		wire_put_u64(&w, e->fpage);
		wire_put_u32(&w, e->npages);
		wire_put_u32(&w, e->page);
		wire_put_u16(&w, e->region);
	}
	return wire_out_len(&w);
}

static void decode_extents(struct stored_inode *i, struct wire_in *r)
{
	for (uint32_t n = 0; n < extent_slots(i); n++) {
		struct extent *e = &i->head[n];

		e->fpage = wire_get_u64(r);
		e->npages = wire_get_u32(r);
		e->page = wire_get_u32(r);
		e->region = wire_get_u16(r);
	}
}

int inode_decode(
	struct volume *v, struct store_key key, const struct store_val *val, struct stored_inode *i)
{
	struct attr *a = &i->attr;
	struct wire_in r;
	uint64_t aux;
	uint8_t flags;

	*i = (struct stored_inode){.key = key.hi, .cut = NO_CUT};
	wire_in_init(&r, val->data, val->len);
	flags = wire_get_u8(&r);
	i->flags = flags & INODE_FLAGS_ALL;
	a->flags = flags >> ATTR_FLAGS_SHIFT;
	a->ino = ino_of_key(key.hi);
	a->generation = v->generation;
	a->mode = wire_get_u32(&r);
	a->nlink = wire_get_u32(&r);
	a->uid = wire_get_u32(&r);
	a->gid = wire_get_u32(&r);
	a->size = wire_get_u64(&r);
	a->npages = wire_get_u64(&r);
	a->atime = (int64_t)wire_get_u64(&r);
	a->mtime = (int64_t)wire_get_u64(&r);
	a->ctime = (int64_t)wire_get_u64(&r);
	a->btime = (int64_t)wire_get_u64(&r);
	aux = wire_get_u64(&r);
	if (inode_is_dir(i))
		i->parent = aux;
	else
		a->rdev = (uint32_t)aux;
	i->nextents = wire_get_u32(&r);
	decode_extents(i, &r);
	if (r.truncated || wire_in_left(&r))
		return store_damaged(v->store, STORE_INODE, key);
	i->counted = inode_share(i);
	return 0;
}

struct inode_glance inode_glance(const struct store_val *val)
{
	struct inode_glance g;
	struct wire_in r;

	wire_in_init(&r, val->data, val->len);
	g.flags = wire_get_u8(&r) & INODE_FLAGS_ALL;
	g.mode = wire_get_u32(&r);
	g.nlink = wire_get_u32(&r);
	return g;
}

int inode_load_any(struct volume *v, uint64_t ino, struct stored_inode *out)
{
	struct store_key key = STORE_KEY(inode_key(v, ino));
	struct reap_record reap;
	struct store_val val;
	int err;

	if (ino == 0 || ino >> INO_BITS)
		return -ESTALE;
	err = store_get(v->store, STORE_INODE, key, &val);
	if (err)
		return err == -ENOENT ? -ESTALE : err;
	err = inode_decode(v, key, &val, out);
	if (err || !(out->flags & INODE_REAPING))
		return err;
	err = reaper_load(v, out->key, &reap);
	out->cut = reap.cut;
	return err;
}

int inode_load(struct volume *v, uint64_t ino, struct stored_inode *out)
{
	int err = inode_load_any(v, ino, out);

	return !err && (out->flags & INODE_DEAD) ? -ESTALE : err;
}

int inode_load_dir(struct volume *v, uint64_t ino, struct stored_inode *out)
{
	int err = inode_load(v, ino, out);

	if (!err && !inode_is_dir(out))
		err = -ENOTDIR;
	if (!err && out->attr.nlink == 0)
		err = -ENOENT;
	return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct quota_share inode_share(const struct stored_inode *i)
{
	bool dead = i->flags & INODE_DEAD;

	return (struct quota_share){
		.uid = i->attr.uid,
		.gid = i->attr.gid,
		.npages = dead ? 0 : i->attr.npages,
		.inodes = dead ? 0 : 1,
	};
}

static int inode_count(
	struct volume *v, const struct quota_share *from, const struct quota_share *to)
{
	int err = quota_charge(v, from, to);

	if (!err)
		v->now.inodes += to->inodes - from->inodes;
	return err;
}

int inode_save(struct volume *v, struct stored_inode *i)
{
	struct quota_share share = inode_share(i);
	uint8_t buf[INODE_BYTES_MAX];
	int err = inode_count(v, &i->counted, &share);

	i->counted = share;
	if (err)
		return err;
	return store_put(v->store, STORE_INODE, STORE_KEY(i->key), buf, encode(i, buf));
}

void inode_init(struct volume *v, struct stored_inode *i, uint32_t mode, uint32_t uid, uint32_t gid,
	int64_t now)
{
	uint64_t ino = v->now.next_ino++;

	*i = (struct stored_inode){
		.key = inode_key(v, ino),
		.cut = NO_CUT,
		.attr =
			{
				.ino = ino,
				.generation = v->generation,
				.mode = mode,
				.nlink = S_ISDIR(mode) ? 2 : 1,
				.uid = uid,
				.gid = gid,
				.size = S_ISDIR(mode) ? PAGE_BYTES : 0,
				.atime = now,
				.mtime = now,
				.ctime = now,
				.btime = now,
			},
	};
}

int inode_add(struct volume *v, struct stored_inode *i)
{
	uint8_t buf[INODE_BYTES_MAX];
	int err;

	i->counted = inode_share(i);
	err = inode_count(v, &(struct quota_share){0}, &i->counted);
	if (err)
		return err;
	return store_append(v->store, STORE_INODE, STORE_KEY(i->key), buf, encode(i, buf));
}

int inode_delete(struct volume *v, const struct stored_inode *i)
{
	const struct quota_share gone = {.uid = i->counted.uid, .gid = i->counted.gid};
	int err = store_del(v->store, STORE_INODE, STORE_KEY(i->key));

	if (!err && S_ISLNK(i->attr.mode))
		err = store_del(v->store, STORE_SYMLINK, STORE_KEY(i->key));
	if (!err)
		err = inode_count(v, &i->counted, &gone);
	return err == -ENOENT ? store_damaged(v->store, STORE_INODE, STORE_KEY(i->key)) : err;
}
