/* inode.c - see inode.h.
 *
 * The record, little-endian, lengths in bytes: flags 1 (ATTR_* in the upper half), mode 4, nlink 4,
 * uid 4, gid 4, size 8, npages 8. Then atime 8, mtime 8, ctime 8, btime 8, device or parent 8,
 * nextents 4. Then extents of fpage 8, npages 4, page 4, region 2. A regular file has room for one
 * extent from the start: most get one, and pages of records that never grow stay full. */
#include "server/record/inode.h"

#include <errno.h>

#include "common/base/util.h"
#include "server/record/inode_record.h"
#include "server/record/reap_record.h"

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
	err = inode_record_decode(v, key, &val, out);
	if (err || !(out->flags & INODE_REAPING))
		return err;
	err = reap_record_load(v, out->key, &reap);
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
	uint8_t buf[INODE_RECORD_BYTES_MAX];
	int err = inode_count(v, &i->counted, &share);

	i->counted = share;
	if (err)
		return err;
	return store_put(
		v->store, STORE_INODE, STORE_KEY(i->key), buf, inode_record_encode(i, buf));
}

void inode_init_lent(struct volume *v, struct stored_inode *i, uint64_t ino, uint32_t mode,
	uint32_t uid, uint32_t gid, int64_t now)
{
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

void inode_init(struct volume *v, struct stored_inode *i, uint32_t mode, uint32_t uid, uint32_t gid,
	int64_t now)
{
	inode_init_lent(v, i, v->now.next_ino++, mode, uid, gid, now);
}

int inode_add(struct volume *v, struct stored_inode *i)
{
	uint8_t buf[INODE_RECORD_BYTES_MAX];
	int err;

	i->counted = inode_share(i);
	err = inode_count(v, &(struct quota_share){0}, &i->counted);
	if (err)
		return err;
	return store_add(
		v->store, STORE_INODE, STORE_KEY(i->key), buf, inode_record_encode(i, buf));
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
