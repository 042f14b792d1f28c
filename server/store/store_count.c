/* store_count.c - which pages of the tables count to whom. */
#include <lmdb.h>

#include "common/base/util.h"
#include "server/store/store_format.h"
#include "server/store/store_internal.h"

void store_charge(struct store *s, int64_t *pages)
{
	s->charged = pages;
}

uint64_t store_pages_of(struct store *s, MDB_dbi dbi)
{
	MDB_stat stat;

	if (mdb_stat(s->txn, dbi, &stat) != 0)
		return 0;
	return stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
}

/* ---- counting anew --------------------------------------------------------------------------- */

/* A walk through the records of one table. LMDB's keys point into their leaf pages, and a value
 * that is not in its leaf has pages of its own. */
struct count {
	store_owner_fn *owner;
	void *arg;
	enum store_table table;
	uint64_t leaf, nleafs;         /* where the walk is; pages so far */
	uint64_t nbranches, all_leafs; /* of the table */
};

static uint64_t page_at(const void *p)
{
	return (uintptr_t)p / PAGE_BYTES;
}

/* The header of the first of these pages comes before the value. */
static uint64_t pages_of_large(size_t len)
{
	return div_round_up(len + LMDB_PAGE_HEADER_BYTES, PAGE_BYTES);
}

/* Each leaf page comes with its part of the branch pages, so that these are counted once in all. */
static uint64_t pages_with_leaf(struct count *c)
{
	uint64_t before = c->nleafs * c->nbranches / c->all_leafs;

	c->nleafs++;
	return 1 + c->nleafs * c->nbranches / c->all_leafs - before;
}

static void count_record(struct count *c, const MDB_val *key, const MDB_val *val)
{
	uint64_t npages = 0;
	int64_t *counter;

	if (page_at(key->mv_data) != c->leaf) {
		c->leaf = page_at(key->mv_data);
		npages += pages_with_leaf(c);
	}
	if (page_at(val->mv_data) != c->leaf)
		npages += pages_of_large(val->mv_size);
	if (!npages)
		return;
	counter = c->owner(c->table, store_key_unpack(c->table, key->mv_data), c->arg);
	if (counter)
		*counter += (int64_t)npages;
}

static int count_table(struct store *s, enum store_table table, store_owner_fn *owner, void *arg)
{
	struct count c = {.owner = owner, .arg = arg, .table = table};
	MDB_cursor *cursor;
	MDB_val key, val;
	MDB_stat stat;
	int rc = mdb_stat(s->txn, s->dbi[table], &stat);

	if (rc)
		return store_errno(rc);
	c.nbranches = stat.ms_branch_pages;
	c.all_leafs = max_u64(1, stat.ms_leaf_pages);
	rc = mdb_cursor_open(s->txn, s->dbi[table], &cursor);
	if (rc)
		return store_errno(rc);
	while ((rc = mdb_cursor_get(cursor, &key, &val, MDB_NEXT)) == 0)
		count_record(&c, &key, &val);
	mdb_cursor_close(cursor);
	return rc == MDB_NOTFOUND ? 0 : store_errno(rc);
}

int store_count_pages(struct store *s, store_owner_fn *owner, void *arg)
{
	int err = 0;

	for (unsigned i = 0; !err && i < STORE_TABLES; i++)
		if (i != STORE_META)
			err = count_table(s, (enum store_table)i, owner, arg);
	return err;
}
