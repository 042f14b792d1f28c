/* check_inodes.c - every inode's attributes, links and extents agree with the other records. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/record/reaper.h"
#include "server/record/inode_record.h"
#include "server/record/reap_record.h"
#include "server/store/store_format.h"

/* ---- attributes ------------------------------------------------------------------------------ */

static bool mode_is_possible(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return !(mode & ~(uint32_t)(S_IFMT | 07777));
	default:
		return false;
	}
}

static void check_attributes(struct check *c, const struct stored_inode *i)
{
	const struct attr *a = &i->attr;

	if (!mode_is_possible(a->mode))
		check_problem(
			c, "inode %" PRIu64 " has mode %" PRIo32 ": impossible", a->ino, a->mode);
	if (a->size > INT64_MAX)
		check_problem(
			c, "inode %" PRIu64 " has size %" PRIu64 ": impossible", a->ino, a->size);
	if (!S_ISREG(a->mode) && i->nextents)
		check_problem(c, "inode %" PRIu64 " has extents and is no regular file", a->ino);
	if (!a->ino || a->ino >= c->v->now.next_ino)
		check_problem(c, "inode %" PRIu64 " has a number that was not given out", a->ino);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void check_kept(struct check *c, const struct stored_inode *i)
{
	bool kept = check_list_has(&c->kept, i->attr.ino);

	if (i->flags & INODE_DEAD) {
		if (i->attr.nlink)
			check_problem(c, "inode %" PRIu64 " is dead and has links", i->attr.ino);
		if (!(i->flags & INODE_REAPING))
			check_problem(
				c, "inode %" PRIu64 " is dead and not to be reaped", i->attr.ino);
	} else if (!i->attr.nlink && !kept) {
		check_problem(
			c, "inode %" PRIu64 " has no links and no session keeps it", i->attr.ino);
	}
}

static int check_inodes_check_directory(
	struct check *c, const struct stored_inode *i, uint64_t names)
{
	uint64_t ino = i->attr.ino;
	int err;

	if (ino == ROOT_INO && i->parent != ROOT_INO)
		check_problem(c, "the root directory's parent is %" PRIu64, i->parent);
	if (names != (ino != ROOT_INO))
		check_problem(c, "directory %" PRIu64 " has %" PRIu64 " names", ino, names);
	err = check_list_add(&c->dirs, ino);
	return err ? err : check_list_add(&c->parents, i->parent);
}

static int check_links(struct check *c, const struct stored_inode *i)
{
	uint64_t ino = i->attr.ino, names = check_list_count(&c->named, ino), links = names;
	int err = 0;

	if (inode_is_dir(i) && i->attr.nlink) {
		links = 2 + check_list_count(&c->subdirs, ino);
		err = check_inodes_check_directory(c, i, names);
	} else if (ino == ROOT_INO) {
		check_problem(c, "the root is no directory, or was removed");
	}
	/* Names of a dead inode are a problem that is reported already. */
	if (!(i->flags & INODE_DEAD) && i->attr.nlink != links)
		check_problem(c, "inode %" PRIu64 " says %" PRIu32 " links, and has %" PRIu64, ino,
			i->attr.nlink, links);
	check_kept(c, i);
	return err;
}

/* ---- extents --------------------------------------------------------------------------------- */

/* The sums over an inode's extents. */
struct sums {
	uint64_t end; /* of the last extent seen: the next one must not begin before it */
	uint64_t nextents, npages, hidden;
};

static void add_extent(
	struct check *c, const struct stored_inode *i, const struct extent *e, struct sums *sums)
{
	if (e->fpage < sums->end)
		check_problem(c, "inode %" PRIu64 ": extents overlap at page %" PRIu64, i->attr.ino,
			e->fpage);
	if (!range_within(e->fpage, e->npages, (uint64_t)INT64_MAX / PAGE_BYTES + 1))
		check_problem(c,
			"inode %" PRIu64 ": the extent at page %" PRIu64
			" lies beyond the end of any file",
			i->attr.ino, e->fpage);
	sums->end = e->fpage + e->npages;
	check_mark_file(c, page_run_of(e), i->attr.ino);
	if (e->fpage >= i->cut) {
		sums->hidden += e->npages;
		return;
	}
	sums->nextents++;
	sums->npages += e->npages;
}

/* A dead inode's pages all count as hidden. */
static void bury(const struct stored_inode *i, struct sums *sums)
{
	if (!(i->flags & INODE_DEAD))
		return;
	sums->hidden += sums->npages;
	sums->npages = 0;
}

static int sum_extents(struct check *c, const struct stored_inode *i, struct sums *sums)
{
	struct stored_inode whole = *i;
	struct extent e;
	uint64_t from = 0;
	int err;

	if (i->flags & INODE_DEAD)
		whole.cut = NO_CUT; /* the cut does not hide the extents of the record's head */
	for (uint32_t n = 0; n < inode_nhead(i); n++)
		add_extent(c, &whole, &i->head[n], sums);
	while (!(err = extents_stored_at(c->v, i, from, &e))) {
		add_extent(c, i, &e, sums);
		from = e.fpage + 1;
	}
	bury(i, sums);
	return err == -ENOENT ? 0 : err;
}

/* Loads the place where the file was cut, and how many of its pages are still to be freed. */
static int load_cut(struct check *c, struct stored_inode *i, struct reap_record *record)
{
	int err;

	*record = (struct reap_record){.cut = NO_CUT};
	if (!(i->flags & INODE_REAPING))
		return 0;
	err = reap_record_load(c->v, i->key, record);
	if (err == -EBADMSG) {
		check_problem(c,
			"inode %" PRIu64
			" is to be reaped, and there is no record of where it was cut",
			i->attr.ino);
		*record = (struct reap_record){.cut = NO_CUT};
		err = 0;
	}
	i->cut = record->cut;
	if (!err && i->flags & INODE_DEAD && i->cut)
		check_problem(c, "inode %" PRIu64 " is dead and not to be reaped from its start",
			i->attr.ino);
	return err;
}

static int check_extents(struct check *c, struct stored_inode *i)
{
	struct reap_record record;
	struct sums sums = {0};
	int err = load_cut(c, i, &record);

	if (!err)
		err = sum_extents(c, i, &sums);
	if (err)
		return err;
	if (sums.nextents != i->nextents || sums.npages != i->attr.npages)
		check_problem(c,
			"inode %" PRIu64 " says %" PRIu32 " extents of %" PRIu64
			" pages, and has %" PRIu64 " of %" PRIu64,
			i->attr.ino, i->nextents, i->attr.npages, sums.nextents, sums.npages);
	if (sums.hidden != record.npages)
		check_problem(c,
			"inode %" PRIu64 ": %" PRIu64
			" pages are to be reaped, and it has %" PRIu64,
			i->attr.ino, record.npages, sums.hidden);
	c->reap_pages += record.npages;
	c->reap_files += (i->flags & INODE_REAPING) != 0;
	return 0;
}

/* ---- targets --------------------------------------------------------------------------------- */

static int check_target(struct check *c, const struct stored_inode *i)
{
	struct store_val val;
	int err;

	if (!S_ISLNK(i->attr.mode))
		return 0;
	err = store_get(c->m->store, STORE_SYMLINK, STORE_KEY(i->key), &val);
	if (err == -ENOENT || err == -EBADMSG) {
		check_problem(c, "symlink %" PRIu64 " has no target%s", i->attr.ino,
			err == -EBADMSG ? " that can be read" : "");
		return 0;
	}
	if (!err && (val.len != i->attr.size || !val.len || val.len > SYMLINK_BYTES_MAX))
		check_problem(c, "symlink %" PRIu64 " says %" PRIu64 " bytes, and has %zu",
			i->attr.ino, i->attr.size, val.len);
	return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int check_inode(struct check *c, struct store_key key, const struct store_val *val)
{
	struct stored_inode i;
	int err;

	err = inode_record_decode(c->v, key, val, &i);
	c->inodes += err || i.counted.inodes;
	if (!err)
		err = check_count_inode(c, &i);
	if (err)
		return err;
	check_attributes(c, &i);
	err = check_extents(c, &i);
	if (!err)
		err = check_target(c, &i);
	if (!err)
		err = check_xattrs(c, &i);
	return err ? err : check_links(c, &i);
}

/* A record in the table must belong to an inode that has such records. */
static int check_inodes_check_owner(struct check *c, enum store_table table, uint64_t ino)
{
	struct store_key key = STORE_KEY(inode_key(c->v, ino));
	struct store_val val;
	struct stored_inode i;
	int err = store_get(c->m->store, STORE_INODE, key, &val);

	if (!err)
		err = inode_record_decode(c->v, key, &val, &i);
	if (err == -ENOENT)
		check_problem(c, "table %s has records of inode %" PRIu64 ", which is not there",
			store_table_names[table], ino);
	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	if (table == STORE_SYMLINK && !S_ISLNK(i.attr.mode))
		check_problem(c, "inode %" PRIu64 " has a target and is no symlink", ino);
	if ((table == STORE_XATTR || table == STORE_XVALUE) && !(i.attr.flags & ATTR_XATTRS))
		check_problem(c, "inode %" PRIu64 " has records in table %s, and does not say so",
			ino, store_table_names[table]);
	if (table == STORE_REAP && !(i.flags & INODE_REAPING))
		check_problem(c,
			"inode %" PRIu64 " has a record of where it was cut, and does not say so",
			ino);
	return 0;
}

static int check_owners(struct check *c, enum store_table table)
{
	uint64_t from = inode_key(c->v, 0);
	struct store_key key;
	int err;

	while (!(err = store_seek(c->m->store, table, STORE_KEY(from), &key, NULL)) &&
		key.hi >> INO_BITS == c->v->id) {
		err = check_inodes_check_owner(c, table, ino_of_key(key.hi));
		if (err)
			return err;
		from = key.hi + 1;
	}
	return err == -ENOENT ? 0 : err;
}

static int check_root(struct check *c)
{
	struct store_val val;
	int err = store_get(c->m->store, STORE_INODE, STORE_KEY(inode_key(c->v, ROOT_INO)), &val);

	if (err == -ENOENT)
		check_problem(c, "there is no root directory");
	return err == -ENOENT || err == -EBADMSG ? 0 : err;
}

int check_inodes(struct check *c)
{
	int err;

	check_progress(c, "inodes");
	err = check_root(c);
	if (!err)
		err = check_each_of_volume(c, STORE_INODE, check_inode);
	if (!err)
		err = check_owners(c, STORE_SYMLINK);
	if (!err)
		err = check_owners(c, STORE_REAP);
	if (!err)
		err = check_owners(c, STORE_XATTR);
	if (!err)
		err = check_owners(c, STORE_XVALUE);
	return err ? err : check_owners(c, STORE_EXTENT);
}
