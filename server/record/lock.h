/* lock.h - the locks of flock(2) and fcntl(2) that sessions of a shared export have, as they are
 * stored.
 *
 * A lock belongs to an owner, which its session names: a process, or an open file. Owners of two
 * sessions are never the same. A record is of one inode and one session, and has all their locks,
 * sorted by kind, owner and start; what one owner has touches nothing of the same type of his own.
 *
 * An exclusive lock that a session has taken while it may only read (ATTACH_READ_ONLY) is weak: it
 * keeps out other sessions that only read, and owners of its own session, and no session that may
 * write. So flock(1) works on a read-only mount, and such a mount holds up no writer by it: both
 * have their lock then. The weak lock itself waits for all that others have. A shared lock is the
 * same of all sessions: it makes those wait that want an exclusive one, for as long as its owner
 * reads.
 *
 *     had \ wanted by     reads: shared  exclusive   writes: shared  exclusive
 *     reads:  shared              beside waits               beside  waits
 *     reads:  exclusive (weak)    waits  waits               beside  beside
 *     writes: shared              beside waits               beside  waits
 *     writes: exclusive           waits  waits               waits   waits
 *
 * What a lock is stays so where its session is remounted, until its owner takes it anew: a mount
 * that becomes `rw` may find others beside what it had, and can't be given that alone; one that
 * becomes `ro` keeps what it had.
 *
 * A record may outlive its inode: a file that is locked is open, so that its session gives up what
 * it has, as with any other.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   -ENOENT: there is none. Others: the store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_LOCK_H
#define RMEMFS_SERVER_RECORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "server/record/volume.h"

/* Of one session and inode, and of one session. */
enum { LOCKS_MAX = 4096, SESSION_LOCKS_MAX = 1 << 18, LOCK_BYTES = 30 };

struct lock {
	uint64_t session, owner;
	uint64_t start, end; /* inclusive */
	uint32_t pid;
	uint8_t kind, type; /* enum lock_kind, enum lock_type */
	bool read_only;     /* its session could only read when it asked for it */
};

static inline bool lock_same_owner(const struct lock *a, const struct lock *b)
{
	return a->session == b->session && a->owner == b->owner && a->kind == b->kind;
}

/* One process is another owner of record locks in each file (rpc.h), and waits as one. */
static inline bool lock_same_process(const struct lock *a, const struct lock *b)
{
	return a->session == b->session && a->kind == b->kind && a->kind == LOCK_KIND_POSIX &&
	       lock_process(a->owner) == lock_process(b->owner);
}

/* Whether two owners want the same, and one of them alone. */
static inline bool lock_conflict(const struct lock *a, const struct lock *b)
{
	return a->kind == b->kind && !lock_same_owner(a, b) && a->start <= b->end &&
	       b->start <= a->end && a->type != LOCK_FREE && b->type != LOCK_FREE &&
	       (a->type == LOCK_EXCLUSIVE || b->type == LOCK_EXCLUSIVE);
}

/* Whether `want` can't be had beside a lock that is had, or is wanted by who came before. */
static inline bool lock_in_way(const struct lock *had, const struct lock *want)
{
	bool weak = had->type == LOCK_EXCLUSIVE && had->read_only && !want->read_only &&
		    had->session != want->session;

	return !weak && lock_conflict(had, want);
}

/* Calls fn for each lock of an inode, until it returns false. fn may read the store. */
int lock_each(
	struct volume *v, uint64_t key, bool (*fn)(const struct lock *lock, void *arg), void *arg);

/* A lock that `want` can't be had beside. */
int lock_find_conflict(struct volume *v, uint64_t key, const struct lock *want, struct lock *found);
/* Whether the owner has any lock of this kind. */
int lock_owner_has(struct volume *v, uint64_t key, const struct lock *owner, bool *has);
/* What a session has, to be freed by the caller; none: NULL. -ENOMEM. */
int lock_of_session(
	struct volume *v, uint64_t key, uint64_t session, struct lock **locks, size_t *n);

/* The owner has the range as this type from now on. -ENOLCK: more of them than one inode may have,
 * or than `limit`, of all of the session; twice that where one that is had is split by giving up
 * what lies within; -ENOMEM. What makes no more of them is never refused so. */
int lock_set(struct volume *v, uint64_t key, const struct lock *lock, uint32_t limit);
/* Whether that can make more of them. */
int lock_grows(struct volume *v, uint64_t key, const struct lock *lock, bool *grows);
/* Store pages that it may touch. */
enum { LOCK_ROOM_PAGES = 2 * (LOCKS_MAX * LOCK_BYTES / PAGE_BYTES + 2) };

/* All locks of a record, whose session has ended, are given up. */
int lock_end(struct volume *v, struct store_key at);

/* The key of the first record at or after an inode's key and a session's number. */
int lock_next(struct volume *v, uint64_t key, uint64_t session, struct store_key *found);

/* The locks of a record, to be freed by the caller; at least one, in order. */
int lock_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct lock **locks, size_t *n);

/* Counts what there is when the volume is opened. */
int lock_open(struct volume *v);

#endif
