/* lock.h - a lock of flock(2) or fcntl(2), and what a new one makes of those that its owner has. The
 * server keeps the locks of all sessions by it (server/record/lock.h), and a mount that has its
 * export alone keeps its own (daemon/lock/local_locks.h).
 *
 * A lock belongs to an owner, which its session names: a process, or an open file. Owners of two
 * sessions are never the same. The locks of a session and an inode are sorted by kind, owner and
 * start. Two locks of one owner and type never touch: they are joined.
 *
 * Pure: no I/O, no memory of its own.
 */
#ifndef RMEMFS_COMMON_RPC_LOCK_H
#define RMEMFS_COMMON_RPC_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rpc/rpc_requests.h"

/* At most: locks of one session and inode, and of one session; waits of one session. The search for
 * a circle looks at so many locks and waits. */
enum {
	LOCKS_MAX = 4096,
	SESSION_LOCKS_MAX = 1 << 18,
	LOCK_WAITS_MAX = 4096,
	LOCK_SEARCH_MAX = 1 << 16
};

/* For so long a wait that came later is behind an earlier one. */
enum { LOCK_PATIENCE_MS = 1000 };

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

/* A process is a different owner of record locks in each file (rpc.h), but waits as one. */
static inline bool lock_same_process(const struct lock *a, const struct lock *b)
{
	return a->session == b->session && a->kind == b->kind && a->kind == LOCK_KIND_POSIX &&
	       lock_process(a->owner) == lock_process(b->owner);
}

/* Whether two owners' locks overlap, and at least one is exclusive. */
static inline bool lock_conflict(const struct lock *a, const struct lock *b)
{
	return a->kind == b->kind && !lock_same_owner(a, b) && a->start <= b->end &&
	       b->start <= a->end && a->type != LOCK_FREE && b->type != LOCK_FREE &&
	       (a->type == LOCK_EXCLUSIVE || b->type == LOCK_EXCLUSIVE);
}

/* The order of a session's locks of an inode. */
bool lock_is_before(const struct lock *a, const struct lock *b);

/* Gives the owner the range as this type, or frees it, with v[0..n), the locks that a session has
 * of an inode. The result is in out, which has room for n + 2, and whose number is returned. */
size_t lock_set_range(struct lock *out, const struct lock *v, size_t n, const struct lock *lock);

#endif
