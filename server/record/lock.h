/* lock.h - the locks of flock(2) and fcntl(2) that sessions of a shared export have, as they are
 * stored.
 *
 * common/rpc/lock.h has what a lock is. A record is of one inode and one session, and has all their
 * locks.
 *
 * If a session may only read (ATTACH_READ_ONLY), its exclusive locks are weak. A weak lock keeps
 * out other sessions that only read, and other owners of its own session, but no session that may
 * write. So flock(1) works on a read-only mount, and such a mount holds up no writer by it: both
 * have their lock then. The weak lock itself waits for all locks of others. A shared lock is the
 * same for all sessions: an exclusive one waits until its owner has done reading.
 *
 *     had \ wanted by     reads: shared  exclusive   writes: shared  exclusive
 *     reads:  shared              beside waits               beside  waits
 *     reads:  exclusive (weak)    waits  waits               beside  beside
 *     writes: shared              beside waits               beside  waits
 *     writes: exclusive           waits  waits               waits   waits
 *
 * A lock stays weak or strong when its session is remounted, until its owner takes it anew. When a
 * mount becomes `rw`, others may have locks beside its weak ones, so these can't become strong.
 * When it becomes `ro`, its locks stay strong.
 *
 * A record may outlive its inode. A locked file is open, so its session gives up its locks, as with
 * any other file.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   -ENOENT: there is none. Others: the store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_LOCK_H
#define RMEMFS_SERVER_RECORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/util.h"
#include "common/rpc/lock.h"
#include "server/record/volume.h"

enum { LOCK_BYTES = 30 };

/* Whether `want` must wait for `had`: a lock that is held, or one that is waited for and came
 * before. */
static inline bool lock_in_way(const struct lock *had, const struct lock *want)
{
	bool weak = had->type == LOCK_EXCLUSIVE && had->read_only && !want->read_only &&
		    had->session != want->session;

	return !weak && lock_conflict(had, want);
}

/* Calls fn for each lock of an inode, until it returns false. fn may read the store. */
int lock_each(
	struct volume *v, uint64_t key, bool (*fn)(const struct lock *lock, void *arg), void *arg);

/* Finds a lock that `want` must wait for. */
int lock_find_conflict(struct volume *v, uint64_t key, const struct lock *want, struct lock *found);
/* Whether the owner has any lock of this kind. */
int lock_owner_has(struct volume *v, uint64_t key, const struct lock *owner, bool *has);
/* The session's locks of an inode, to be freed by the caller; none: NULL. -ENOMEM. */
int lock_of_session(
	struct volume *v, uint64_t key, uint64_t session, struct lock **locks, size_t *n);

/* Gives the owner the range as this type. -ENOLCK: the session would have more locks than LOCKS_MAX
 * of this inode, or than `limit` of all. An unlock may split a lock, and so reach twice `limit`. A
 * change that adds no lock is never refused so. -ENOMEM. */
int lock_set(struct volume *v, uint64_t key, const struct lock *lock, uint32_t limit);
/* Whether lock_set() may make more locks of it. */
int lock_grows(struct volume *v, uint64_t key, const struct lock *lock, bool *grows);
/* Store pages that lock_set() may touch. */
enum { LOCK_ROOM_PAGES = 2 * (LOCKS_MAX * LOCK_BYTES / PAGE_BYTES + 2) };

/* Gives up all locks of a record whose session has ended. */
int lock_end(struct volume *v, struct store_key at);

/* The key of the first record at or after an inode's key and a session's number. */
int lock_next(struct volume *v, uint64_t key, uint64_t session, struct store_key *found);

/* The locks of a record, to be freed by the caller; at least one, in order. */
int lock_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct lock **locks, size_t *n);

/* Counts the locks when the volume is opened. */
int lock_open(struct volume *v);

#endif
