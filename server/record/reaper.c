/* reaper.c - see reaper.h. */
#include "server/record/reaper.h"

#include <errno.h>

#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/record/inode.h"
#include "server/record/reap_record.h"
#include "server/record/xattr.h"

int reaper_inode_later(struct volume *v, struct stored_inode *i)
{
	struct reap_record record = {0};
	int err = i->flags & INODE_REAPING ? reap_record_load(v, i->key, &record) : 0;

	if (err)
		return err;
	record.cut = 0;
	record.npages += i->attr.npages;
	i->flags |= INODE_REAPING | INODE_DEAD;
	i->nextents = inode_nhead(i);
	i->attr.npages = 0;
	err = reap_record_save(v, i->key, &record);
	return err ? err : inode_save(v, i);
}

int reaper_inode(struct volume *v, struct stored_inode *i)
{
	int err;

	if (i->nextents > INLINE_EXTENTS || i->flags & INODE_REAPING || i->attr.flags & ATTR_XATTRS)
		return reaper_inode_later(v, i);
	err = extents_cut(v, i, 0);
	return err ? err : inode_delete(v, i);
}

static int reaper_finish(struct volume *v, struct stored_inode *i)
{
	int err = store_del(v->store, STORE_REAP, STORE_KEY(i->key));

	if (err)
		return err;
	v->now.reap_files--;
	if (i->flags & INODE_DEAD)
		return inode_delete(v, i);
	i->flags &= (uint8_t)~INODE_REAPING;
	return inode_save(v, i);
}

/* The extents that a dead inode has in its record. */
static int free_head(struct volume *v, struct stored_inode *i, uint64_t *freed)
{
	for (; i->nextents; i->nextents--) {
		const struct extent *e = &i->head[i->nextents - 1];
		int err = space_release(&v->space, page_run_of(e));

		if (err)
			return err;
		*freed += e->npages;
	}
	return inode_save(v, i);
}

/* Frees up to *budget extents and records of attributes of one file. */
static int reap_file(struct volume *v, uint64_t key, unsigned *budget, uint64_t *finished)
{
	struct reap_record record;
	struct stored_inode inode;
	uint64_t freed = 0, more = 0;
	bool done;
	int err = inode_load_any(v, ino_of_key(key), &inode);

	if (err)
		return err == -ESTALE ? store_damaged(v->store, STORE_REAP, STORE_KEY(key)) : err;
	err = reap_record_load(v, key, &record);
	if (!err && (inode.flags & INODE_DEAD) && inode.nextents)
		err = free_head(v, &inode, &freed);
	if (!err)
		err = extents_free_hidden(v, &inode, budget, &more, &done);
	if (err)
		return err;
	freed += more;
	if (freed > record.npages || (done && freed != record.npages))
		return store_damaged(v->store, STORE_REAP, STORE_KEY(key));
	v->now.reap_pages -= freed;
	record.npages -= freed;
	if (done && inode.flags & INODE_DEAD) {
		err = xattr_free(v, &inode, budget, &done);
		if (err)
			return err;
	}
	if (!done)
		return reap_record_put(v, key, &record);
	++*finished;
	return reaper_finish(v, &inode);
}

/* The next file from reap_from on. *again: there was none, so the walk began anew at the first
 * file. */
static int next_file(struct volume *v, struct store_key *key, bool *again)
{
	struct store_key start = STORE_KEY(max_u64(v->reap_from, inode_key(v, 0)));
	int err = store_seek(v->store, STORE_REAP, start, key, NULL);

	if (!err && key->hi >> INO_BITS != v->id)
		err = -ENOENT;
	if (err != -ENOENT || !v->reap_from)
		return err;
	*again = true;
	v->reap_from = 0;
	return next_file(v, key, again);
}

/* The reaper passes over a file that it fails with: the caller aborts the transaction, and the next
 * step begins behind it. When it has come round to the file again with nothing done, it rests. */
static int reaper_failed(struct volume *v, uint64_t key, bool again, int err)
{
	v->reap_from = key + 1;
	return again ? retry_note(&v->reap_retry, err) : err;
}

int reaper_step(struct volume *v, unsigned nextents, bool *more, uint64_t *finished)
{
	bool again = false, done = false;
	struct store_key key;
	int err = 0;

	while (nextents) {
		err = next_file(v, &key, &again);
		if (err || (again && done))
			break;
		err = reap_file(v, key.hi, &nextents, finished);
		if (err)
			return reaper_failed(v, key.hi, again, err);
		done = true;
		if (again)
			retry_note(&v->reap_retry, 0);
		if (nextents) /* a file counts too */
			nextents--;
	}
	if (err && err != -ENOENT)
		return err;
	*more = nextents == 0;
	return 0;
}

int reaper_open(struct volume *v)
{
	struct store_key key, start = STORE_KEY(inode_key(v, 0));
	struct reap_record record;
	struct store_val val;
	int err = store_seek(v->store, STORE_REAP, start, &key, &val);

	v->now.reap_files = v->now.reap_pages = 0;
	while (!err && key.hi >> INO_BITS == v->id) {
		err = reap_record_decode(v, key.hi, &val, &record);
		v->now.reap_files++;
		v->now.reap_pages += record.npages;
		if (!err)
			err = store_next(v->store, STORE_REAP, &key, &val);
	}
	return err == -ENOENT ? 0 : err;
}
