/* store.h - the server's records in LMDB: tables of small keys, one write transaction a batch.
 *
 * There are no nested transactions, so one must never run out of the store's pages half way. An
 * operation asks store_room() for its worst case before its first change.
 *
 * OWNERSHIP  Values that are found point into the map. They are valid until the next change or the
 *            end of the transaction.
 * THREADS    One thread. No other process may have the store open (the directory is locked).
 * ERRORS     0 or -errno, with LMDB's own errors made errnos: -ENOENT no such record, -ENOSPC the
 *            map is full, -EBADMSG damaged. All but -ENOENT also make store_failed() true: then the
 *            transaction can only be aborted. Each value is stored with a sum, which each read
 *            checks: no damaged value is ever found.
 */
#ifndef RMEMFS_SERVER_STORE_STORE_H
#define RMEMFS_SERVER_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

enum store_table {
	STORE_META,                 /* 0: the superblock; export id: its record */
	STORE_INODE,                /* inode key */
	STORE_SPACE,                /* page key: a run of pages that are in no file */
	STORE_REAP,                 /* inode key: pages of it that are to be freed */
	STORE_SYMLINK,              /* inode key: the target */
	STORE_SESSION,              /* session id */
	STORE_QUOTA,                /* export, user or group, id: its usage */
	STORE_PAIRS,                /* from here on keys have both halves */
	STORE_DIRENT = STORE_PAIRS, /* inode key of the directory, cookie */
	STORE_EXTENT,               /* inode key, first page within the file */
	STORE_ORPHAN,               /* session, inode key: unlinked, kept open */
	STORE_REPLY,                /* session, slot */
	STORE_XATTR,                /* inode key, cookie of the name */
	STORE_XVALUE,               /* inode key, part of a long value */
	STORE_STAGE,                /* session, part of a value that is on its way */
	STORE_HELD,                 /* session, user or group and id: reserved of a quota */
	STORE_LEASE,                /* inode key, session */
	STORE_LOCK,                 /* inode key, session */
	STORE_TABLES,
};

/* Ordered by hi, then lo. */
struct store_key {
	uint64_t hi, lo;
};
#define STORE_KEY(...) ((struct store_key){__VA_ARGS__})

struct store_val {
	const void *data;
	size_t len;
};

/* Opens or makes the store at path. bytes are allocated and mapped, or more if the store was larger
 * before. *is_new: it has no records yet. -ENOSPC: the memory is not there; -EBADMSG,
 * -EPROTONOSUPPORT: see store_verify.h, and nothing was changed. */
int store_open(const char *path, uint64_t bytes, struct store **out, bool *is_new, char *why,
	size_t whylen);
/* Opens a store that nobody has open, only to be read: nothing is changed, allocated or logged.
 * -ENOENT: there is none, or one that was never written to. */
int store_open_read(const char *path, struct store **out, char *why, size_t whylen);
void store_close(struct store *s);

/* ---- growth: more room, while the store is open ---- */

/* A growth that store_grow_prepare() has made ready. */
struct store_growth {
	uint64_t bytes; /* 0: nothing */
	void *locked;
};
/* Allocates the file up to `bytes`, and keeps it in memory, while transactions go on; any thread,
 * one at a time. Nothing is to do if the store has so much. -ENOSPC: the memory is not there; why
 * names needed and free. -ECANCELED: the caller's task is (task.h). */
int store_grow_prepare(
	struct store *s, uint64_t bytes, struct store_growth *growth, char *why, size_t whylen);
/* Whether there is a view: store_grow() would fail. */
bool store_is_viewed(const struct store *s);
/* Outside transactions. -EBUSY: there is a view, and nothing has changed. After any other error the
 * store can't be used any more, not even to close it. */
int store_grow(struct store *s, struct store_growth *growth);
/* Gives back what was prepared. */
void store_grow_cancel(struct store *s, struct store_growth *growth);

/* ---- transactions ---------------------------------------------------------------------------- */

int store_begin(struct store *s);
int store_begin_read(struct store *s);
int store_commit(struct store *s);
void store_abort(struct store *s); /* also ends a read transaction */
bool store_in_transaction(const struct store *s);

/* The error that spoilt the transaction, or 0. */
int store_failed(const struct store *s);
/* Spoils the transaction: something else than the store failed half way. Returns err. */
int store_fail(struct store *s, int err);
/* Notes that a record is damaged; returns -EBADMSG. */
int store_damaged(struct store *s, enum store_table table, struct store_key key);

/* Whether an operation may touch up to npages pages and leave `reserve` for what must always be
 * possible. -ENOSPC: no. If earlier operations of the same transaction may be the reason, the
 * transaction fails with -EAGAIN instead, so that the operation runs again alone. */
int store_room(struct store *s, uint64_t npages, uint64_t reserve);
/* After store_room() refused: would it leave so much? */
bool store_has_room(const struct store *s, uint64_t npages, uint64_t reserve);

/* Grows with each transaction that has changed something. Pages that one transaction gives up can
 * be used by the next but one. */
uint64_t store_version(const struct store *s);

struct store_usage {
	uint64_t npages, used_pages;
};
void store_usage(struct store *s, struct store_usage *usage);

/* ---- whose pages ----------------------------------------------------------------------------- */

/* From now on until the transaction ends, what puts and deletes take of the tables' pages, or give
 * back, is added to *pages. NULL, as at the begin of each transaction: it counts to nobody.
 * STORE_META never counts. A page has records of several owners where their keys meet. It counts to
 * the one whose change made or freed it. */
void store_charge(struct store *s, int64_t *pages);
/* Counts all these pages anew, within a transaction: each to the owner of its first record. The
 * pages of branches go with the others. owner returns a counter that is added to, or NULL. Reads
 * keys only: no value is checked. */
typedef int64_t *store_owner_fn(enum store_table table, struct store_key key, void *arg);
int store_count_pages(struct store *s, store_owner_fn *owner, void *arg);

/* ---- a view ---------------------------------------------------------------------------------- */

/* The records as they were last committed, for another thread to read while transactions go on.
 * Pages that these give up stay in use while the view is open. When that would leave a transaction
 * without room, the view is taken away. One at a time; opened outside transactions, and closed by
 * the same thread. */
struct store_view;
int store_view_open(struct store *s, struct store_view **out);
void store_view_close(struct store_view *v);

/* Any thread: the reader is done, or the view is taken away. No more reads succeed. */
void store_view_drop(struct store_view *v);
/* The first record at or after the key; its value, without its sum, is copied to buf[len].
 * -ENOENT: none; -ESTALE: the view was taken away; -EMSGSIZE; -EBADMSG. */
int store_view_seek(struct store_view *v, enum store_table table, struct store_key key,
	struct store_key *found, void *buf, size_t buflen, size_t *len);

/* ---- records --------------------------------------------------------------------------------- */

int store_get(struct store *s, enum store_table table, struct store_key key, struct store_val *val);
/* Adds or replaces. */
int store_put(struct store *s, enum store_table table, struct store_key key, const void *data,
	size_t len);
/* As store_put(), but packs pages full where keys grow. */
int store_append(struct store *s, enum store_table table, struct store_key key, const void *data,
	size_t len);
/* The same for a new record: one that is there already is damage. */
int store_add(struct store *s, enum store_table table, struct store_key key, const void *data,
	size_t len);
int store_del(struct store *s, enum store_table table, struct store_key key);

/* Each table has one position, which is valid until the table is changed. store_seek() finds the
 * first record at or after the key, store_seek_back() the last one at or before it. found and val
 * may be NULL. -ENOENT: none. */
int store_seek(struct store *s, enum store_table table, struct store_key key,
	struct store_key *found, struct store_val *val);
int store_seek_back(struct store *s, enum store_table table, struct store_key key,
	struct store_key *found, struct store_val *val);
int store_next(
	struct store *s, enum store_table table, struct store_key *found, struct store_val *val);
/* The value of the record that was found last. */
int store_here(struct store *s, enum store_table table, struct store_val *val);

#endif
