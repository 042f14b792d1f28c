/* store_room.c - how much room the store has left for a transaction. */
#include <errno.h>
#include <string.h>

#include "common/base/util.h"
#include "server/store/store_internal.h"

/* With more transactions than this since a view was opened, its end is cheaper than counting the
 * pages that they hold. */
enum { VIEW_LIMBO_RECORDS = 4096 };

/* The oldest transaction whose pages may still be read; *viewed: by a view. */
static size_t oldest_read(struct store *s, bool *viewed)
{
	size_t oldest = mdb_txn_id(s->txn) - 1;

	*viewed = false;
	if (!s->view)
		return oldest;
	pthread_mutex_lock(&s->view->lock);
	*viewed = s->view->txn;
	if (*viewed)
		oldest = min_u64(oldest, mdb_txn_id(s->view->txn));
	pthread_mutex_unlock(&s->view->lock);
	return oldest;
}

static uint64_t pages_in_use(struct store *s)
{
	uint64_t n = LMDB_META_PAGES;

	n += store_pages_of(s, FREE_TABLE) + store_pages_of(s, MAIN_TABLE);
	for (unsigned i = 0; i < STORE_TABLES; i++)
		n += store_pages_of(s, s->dbi[i]);
	return n;
}

/* Pages that the last transaction freed may only be taken by the one after the next. Until then a
 * crash in the next one falls back to them. Pages that a view reads are not reused, either. The
 * list's records are {count, pages...} under the number of the transaction. */
static int count_limbo(MDB_cursor *c, size_t oldest, uint64_t max_records, uint64_t *n)
{
	MDB_val key, val;
	size_t id, count;

	*n = 0;
	for (int rc = mdb_cursor_get(c, &key, &val, MDB_LAST); rc == 0;
		rc = mdb_cursor_get(c, &key, &val, MDB_PREV)) {
		memcpy(&id, key.mv_data, sizeof(id));
		if (id < oldest)
			return 0;
		if (!max_records--)
			return -E2BIG;
		memcpy(&count, val.mv_data, sizeof(count));
		*n += count;
	}
	return 0;
}

/* LMDB shows the list to readers only. Before the transaction's first change a reader sees the same
 * list. */
static uint64_t pages_in_limbo(struct store *s)
{
	uint64_t n = s->map_pages;
	bool viewed;
	size_t oldest = oldest_read(s, &viewed);
	MDB_cursor *c;
	MDB_txn *txn;

	if (mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn) != 0)
		return n;
	if (mdb_cursor_open(txn, FREE_TABLE, &c) == 0) {
		if (count_limbo(c, oldest, viewed ? VIEW_LIMBO_RECORDS : UINT64_MAX, &n))
			n = s->map_pages;
		mdb_cursor_close(c);
	}
	mdb_txn_abort(txn);
	return n;
}

/* To be called before the transaction's first change only: after that, pages are on their way. */
static uint64_t pages_available(struct store *s)
{
	uint64_t taken = pages_in_use(s) + pages_in_limbo(s);

	return s->map_pages - min_u64(s->map_pages, taken);
}

int store_room(struct store *s, uint64_t npages, uint64_t reserve)
{
	if (s->planned + npages + reserve <= s->available) {
		s->planned += npages;
		return 0;
	}
	if (s->planned)
		return store_fail(s, -EAGAIN);
	if (!s->exact) {
		s->available = pages_available(s);
		s->exact = true;
	}
	if (npages + reserve > s->available && s->view) {
		store_view_drop(s->view);
		s->available = pages_available(s);
	}
	if (npages + reserve > s->available)
		return -ENOSPC;
	s->planned = npages;
	return 0;
}

bool store_has_room(const struct store *s, uint64_t npages, uint64_t reserve)
{
	return s->planned + npages + reserve <= s->available;
}

uint64_t store_version(const struct store *s)
{
	MDB_envinfo info;

	mdb_env_info(s->env, &info);
	return info.me_last_txnid;
}

void store_usage(struct store *s, struct store_usage *usage)
{
	bool own = !s->txn;

	usage->npages = s->map_pages;
	usage->used_pages = 0;
	if (own && store_begin_read(s) != 0)
		return;
	usage->used_pages = pages_in_use(s);
	if (own)
		store_abort(s);
}
