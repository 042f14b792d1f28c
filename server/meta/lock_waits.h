/* lock_waits.h - who waits for a lock, in the order they came.
 *
 *     LOCK in the way of another -> lock_waits_add -> (something changed, look) -> told ->
 *     the same LOCK again -> it has it, or waits on in its place
 *
 * Waits are in memory only: clients send theirs again to a server that was started anew. None of
 * them holds anything up but the one who waits.
 *
 * Who comes later and wants what one before him wants is behind him, but not for long: for
 * LOCK_PATIENCE_MS from when he came, or from when the one before him was told to come. So nobody
 * who comes again and again keeps others out, one who does not come is not waited for, and an order
 * that nobody asked for never makes two wait for each other. Who doesn't wait is behind nobody: he
 * is refused for locks that others have, and for nothing else. Nor is who has record locks of the
 * inode: those before him may be waiting for him.
 *
 * A circle is found by the last step that closes it: a wait that begins, or comes again, or a lock
 * that goes to one who also waits, as threads of one process may. His waits then come again, and
 * one of them is refused.
 *
 * What a batch changes here stays, even if it is aborted: its requests are run again then, and a
 * wait that nobody needs any more tells its session in vain.
 *
 * A session has at most LOCK_WAITS_MAX. A look takes time by the waits of one inode times its locks
 * and waits: where 4,000 ranges of one file are locked and as many are waited for it is 15 ms, each
 * time that one of them changes, and with ten times as many a hundred times that. Those of one
 * range, or of whole files, cost next to nothing. The search for a circle looks at no more than
 * LOCK_SEARCH_MAX of both.
 *
 * OWNERSHIP  struct meta's.
 * THREADS    The metadata thread.
 * ERRORS     The store failed, but for what is said.
 */
#ifndef RMEMFS_SERVER_META_LOCK_WAITS_H
#define RMEMFS_SERVER_META_LOCK_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "server/record/lock.h"

enum { LOCK_PATIENCE_MS = 1000, LOCK_WAITS_MAX = 4096, LOCK_SEARCH_MAX = 1 << 16 };

struct lock_inode;
struct lock_session;

struct lock_waiter {
	struct list of_inode, of_session;
	struct lock_inode *at;
	struct lock_session *by;
	struct lock want;
	uint64_t number; /* the session's own */
	int64_t came_ms;
	int64_t told_ms;  /* 0: not since it was sent last */
	bool said;        /* since he is told, by a PING */
	bool again;       /* he is to come, and look whether it can still end */
	uint64_t visited; /* by which search */
};

struct lock_waits {
	struct list inodes;   /* struct lock_inode: that are waited for */
	struct list sessions; /* struct lock_session: that wait */
	unsigned n;
	uint64_t searches;
	int64_t look_ms; /* when to look next, or before; INT64_MAX: when something has changed */
	int64_t patience_ms;
};

void lock_waits_init(struct lock_waits *ws);
void lock_waits_fini(struct lock_waits *ws);

/* NULL: it isn't there. */
struct lock_waiter *lock_waits_find(
	struct lock_waits *ws, uint64_t key, uint64_t session, uint64_t number);
/* Of one that is there: it keeps its place, and is not told any more. -ENOLCK: too many; -ENOMEM.
 */
int lock_waits_add(struct lock_waits *ws, struct volume *v, uint64_t key, const struct lock *want,
	uint64_t number);
void lock_waits_drop(struct lock_waits *ws, struct lock_waiter *wait);
void lock_waits_drop_session(struct lock_waits *ws, uint64_t session);

/* Calls fn for each that waits for the inode, in the order they came. */
void lock_waits_each(const struct lock_waits *ws, uint64_t key,
	void (*fn)(const struct lock_waiter *wait, void *arg), void *arg);

/* Calls fn for each inode of the volume that is waited for. */
struct lock_waited {
	uint64_t ino;
	unsigned waits;
	int64_t since_ms; /* of the one that waits longest */
};
void lock_waits_each_inode(const struct lock_waits *ws, const struct volume *v,
	void (*fn)(const struct lock_waited *waited, void *arg), void *arg);

/* Whether what this wait (NULL: one that comes now) wants is behind others' waits. */
int lock_waits_behind(const struct lock_waits *ws, struct volume *v, uint64_t key,
	const struct lock *want, const struct lock_waiter *wait, bool *behind);

/* Whether one who has what this one wants waits for him, himself or by others. */
int lock_waits_deadlock(struct lock_waits *ws, struct volume *v, uint64_t key,
	const struct lock *want, bool *deadlock);

/* The owner has got a record lock: what he waits for may now wait for him. */
int lock_waits_granted(struct lock_waits *ws, const struct lock *lock);

/* Somebody may have less of the inode than before. */
void lock_waits_changed(struct lock_waits *ws, uint64_t key);

/* What the session's locks are to others changes with what it may do (lock.h): its waits are to
 * come again. */
void lock_waits_ask_again(struct lock_waits *ws, uint64_t session);

/* In a transaction to read: finds who may come now, and calls tell for the session of each. */
int lock_waits_look(struct lock_waits *ws, void (*tell)(uint64_t session, void *arg), void *arg);
/* Whether that has something to do now; else *next is when, in ms, or INT64_MAX. */
bool lock_waits_due(const struct lock_waits *ws, int64_t *next);

/* Calls fn for each wait of the session that has been told to come, until it returns false: then
 * the others are first the next time. False: one of them is left that fn was never called for. */
bool lock_waits_told(struct lock_waits *ws, uint64_t session,
	bool (*fn)(uint64_t ino, uint64_t number, void *arg), void *arg);

/* What it was told of may be lost on its way. */
void lock_waits_untold(struct lock_waits *ws, uint64_t session);

/* Whether another one waits for what this session has. */
int lock_waits_for(const struct lock_waits *ws, uint64_t session, bool *any);

#endif
