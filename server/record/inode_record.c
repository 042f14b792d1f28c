/* inode_record.c - see inode_record.h.
 *
 * The record is little-endian:
 *     flags 1 (ATTR_* in the upper half), mode 4, nlink 4, uid 4, gid 4, size 8, npages 8, atime 8,
 *     mtime 8, ctime 8, btime 8, device or parent 8, nextents 4.
 * Then come extents of fpage 8, npages 4, page 4, region 2 bytes. A regular file has room for one
 * extent from the start: most get one, and pages of records that never grow stay full. */
#include "server/record/inode_record.h"

#include "common/rpc/wire.h"

enum { ATTR_FLAGS_SHIFT = 4 };

static uint32_t extent_slots(const struct stored_inode *i)
{
	uint32_t n = inode_nhead(i);

	return n == 0 && S_ISREG(i->attr.mode) ? 1 : n;
}

size_t inode_record_encode(const struct stored_inode *i, uint8_t buf[INODE_RECORD_BYTES_MAX])
{
	const struct attr *a = &i->attr;
	struct wire_out w;

	wire_out_init(&w, buf, INODE_RECORD_BYTES_MAX);
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

int inode_record_decode(
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

struct inode_glance inode_record_glance(const struct store_val *val)
{
	struct inode_glance g;
	struct wire_in r;

	wire_in_init(&r, val->data, val->len);
	g.flags = wire_get_u8(&r) & INODE_FLAGS_ALL;
	g.mode = wire_get_u32(&r);
	g.nlink = wire_get_u32(&r);
	return g;
}
