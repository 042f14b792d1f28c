/* store_internal.h - the open store, for the files of this folder. */
#ifndef RMEMFS_SERVER_STORE_STORE_INTERNAL_H
#define RMEMFS_SERVER_STORE_STORE_INTERNAL_H

#include <lmdb.h>
#include <pthread.h>

#include "server/store/store.h"

/* LMDB's own tables: the list of free pages, and the names of ours. */
enum { FREE_TABLE = 0, MAIN_TABLE = 1, LMDB_META_PAGES = 2 };
enum { LMDB_PAGE_HEADER_BYTES = 16 };

struct store_view {
	struct store *store;
	pthread_mutex_t lock; /* guards what follows; held for one access */
	MDB_txn *txn;         /* NULL: taken away */
	MDB_cursor *cursor;   /* of cursor_table */
	enum store_table cursor_table;
};

struct store {
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi[STORE_TABLES];
	MDB_cursor *cursor[STORE_TABLES]; /* opened when first wanted in a transaction */
	uint64_t map_pages;
	bool read_only; /* the caller reports damage */
	void *locked;   /* our own mapping, which keeps the store's pages in memory */
	int failed;
	struct store_view *view; /* NULL: there is none */

	/* The damaged record that was logged last. */
	bool told;
	enum store_table told_table;
	struct store_key told_key;

	/* Of this transaction: pages that it can take, and the sum of the room that was asked for.
	 * exact: available counts the list of free pages too. */
	uint64_t available, planned;
	bool exact;
	int64_t *charged; /* see store_charge() */
};

/* Says in why that a file of that size has no room, and returns err. */
int store_refuse_room(const char *path, int fd, uint64_t bytes, int err, char *why, size_t whylen);
/* 0 or -errno for a result of LMDB. */
int store_errno(int rc);
/* The pages of one of LMDB's tables, within a transaction. */
uint64_t store_pages_of(struct store *s, MDB_dbi dbi);

#endif
