/* lock_waits.h - the waits for locks, in the order in which they came.
 *
 *     LOCK in the way of another -> lock_waits_add -> (something changed, look) -> told ->
 *     the same LOCK again -> it has it, or waits on in its place
 *
 * Waits are in memory only: clients send theirs again to a server that was started anew. A wait
 * holds up nobody but its owner.
 *
 * A later wait for the same is behind an earlier one, but not for long. That ends LOCK_PATIENCE_MS
 * after it came, or after the earlier one was told to come. So a client that comes again and again
 * does not keep others out, and nobody waits for one that does not come. An order that nobody asked
 * for never makes two wait for each other. A LOCK that doesn't wait is behind nobody: it is refused
 * only for locks that others have. An owner with record locks of the inode is behind nobody,
 * either: the earlier ones may be waiting for it.
 *
 * The last step that closes a circle finds it. That is a wait that begins or comes again, or a lock
 * that goes to an owner that also waits, as threads of one process may. The waits of that owner
 * then come again, and one of them is refused.
 *
 * Changes here stay even if their batch is aborted: its requests are run again then. A wait that is
 * no longer needed tells its session in vain.
 *
 * A session has at most LOCK_WAITS_MAX. The time of a look grows with the waits of one inode times
 * its locks and waits. With 4,000 locked ranges of one file, and as many waits, it is 15 ms for
 * each change. With ten times as many it is a hundred times that. Waits for one range, or for whole
 * files, cost next to nothing. The search for a circle looks at no more than LOCK_SEARCH_MAX of
 * both.
 *
 * OWNERSHIP  Part of struct meta.
 * THREADS    The metadata thread.
 * ERRORS     The store failed, but for what is said.
 */
#ifndef RMEMFS_SERVER_META_LOCK_WAITS_H
#define RMEMFS_SERVER_META_LOCK_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "server/record/lock.h"

struct lock_inode;
struct lock_session;

struct lock_waiter {
	struct list of_inode, of_session;
	struct lock_inode *at;
	struct lock_session *by;
	struct lock want;
	uint64_t number; /* chosen by the session */
	int64_t came_ms;
	int64_t told_ms;  /* when it was told to come; 0: not since it was sent last */
	bool said;        /* a PING's answer has told the client so */
	bool again;       /* it is to come, to find out whether it can still end */
	uint64_t visited; /* by this search, the last one */
};

struct lock_waits {
	struct list inodes;   /* struct lock_inode: those that are waited for */
	struct list sessions; /* struct lock_session: those that wait */
	unsigned n;
	uint64_t searches;
	int64_t look_ms; /* when to look next, or before; INT64_MAX: after a change */
	int64_t patience_ms;
};

void lock_waits_init(struct lock_waits *ws);
void lock_waits_fini(struct lock_waits *ws);

/* NULL: there is no such wait. */
struct lock_waiter *lock_waits_find(
	struct lock_waits *ws, uint64_t key, uint64_t session, uint64_t number);
/* Adds a wait. One that is there keeps its place, and counts as not told. -ENOLCK: too many;
 * -ENOMEM. */
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

/* Whether this wait (NULL: one that comes now) is behind the waits of others. */
int lock_waits_behind(const struct lock_waits *ws, struct volume *v, uint64_t key,
	const struct lock *want, const struct lock_waiter *wait, bool *behind);

/* Whether the owner of a lock in the way waits for the owner of `want`, itself or through
 * others. */
int lock_waits_deadlock(struct lock_waits *ws, struct volume *v, uint64_t key,
	const struct lock *want, bool *deadlock);

/* The owner has got a record lock: owners that it waits for may now wait for it. */
int lock_waits_granted(struct lock_waits *ws, const struct lock *lock);

/* Locks of the inode may have been given up. */
void lock_waits_changed(struct lock_waits *ws, uint64_t key);

/* The session may do other things than before, so its locks mean something else to others (lock.h):
 * its waits are to come again. */
void lock_waits_ask_again(struct lock_waits *ws, uint64_t session);

/* In a transaction to read: finds the waits that may come now, and calls tell for the session of
 * each. */
int lock_waits_look(struct lock_waits *ws, void (*tell)(uint64_t session, void *arg), void *arg);
/* Whether lock_waits_look() has something to do now; else *next is when, in ms, or INT64_MAX. */
bool lock_waits_due(const struct lock_waits *ws, int64_t *next);

/* Calls fn for each wait of the session that has been told to come, until fn returns false: then
 * the others are first the next time. False: fn was never called for one of them. */
bool lock_waits_told(struct lock_waits *ws, uint64_t session,
	bool (*fn)(uint64_t ino, uint64_t number, void *arg), void *arg);

/* The answer that told the session of its waits may be lost: it is to be told again. */
void lock_waits_untold(struct lock_waits *ws, uint64_t session);

/* Whether another session waits for a lock of this one. */
int lock_waits_for(const struct lock_waits *ws, uint64_t session, bool *any);

#endif
