/* locks.h - what a mount has of locks: the waits of all its threads, the numbers by which the server
 * knows waits and owners, and what an inode has.
 *
 * THREADS    locks.lock guards the waits, and locks.circles those for record locks that the mount
 *            keeps by itself (local_locks.h). Fields that are said to be atomic are so. Those of
 *            an inode are under its lock.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCKS_H
#define RMEMFS_DAEMON_LOCK_LOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/rpc/lock.h"

struct handle;
struct inode;
struct record_lock;

struct locks {
	pthread_mutex_t lock;
	struct list waits; /* struct lock_wait */
	uint64_t number;   /* atomic: of the last wait, or owner */

	/* local_locks.h's. */
	atomic_bool local;        /* the mount keeps its locks by itself */
	_Atomic uint64_t nlocal;  /* such locks */
	atomic_uint nlocal_waits; /* waits for them */
	pthread_mutex_t circles;
	struct list record_waits;  /* struct local_wait: those for record locks */
	atomic_uint nrecord_waits; /* their number */
	uint64_t searches;         /* under circles */
	/* Of a search, by local_wait.found: waits that it has not looked at yet. Empty otherwise.
	 */
	struct list found;
};

/* lock_owner.h's. */
struct lock_owner {
	struct list link;      /* inode_locks.owners */
	uint64_t number;       /* the server's name for it */
	uint64_t kernel;       /* the kernel's name, for record locks */
	struct handle *handle; /* the handle by which it locked last; NULL: that is closed */
	uint8_t kind;
	bool has;        /* it has locks, or may have some */
	bool freed;      /* it gave up all locks, and has got none since */
	unsigned nasked; /* answers on their way that may give it one */
};

/* Of an inode. */
struct inode_locks {
	struct list owners;        /* struct lock_owner */
	struct list leaving;       /* struct lock_leaving, in the order they began */
	struct local_locks *local; /* NULL: it never had any */
};

struct lock_note {
	struct record_lock *entry; /* NULL: there was no room */
	bool kept;                 /* it is the new lock's, too */
};

/* The locks of an inode that the mount keeps by itself. */
struct local_locks {
	struct lock *v, *spare; /* sorted; the other half of changes */
	/* Of a mount that has a record (record.h): where each of v and of spare is there. */
	struct lock_note *notes, *spare_notes;
	size_t n, room;
	struct list waits;  /* struct local_wait, in the order they came */
	bool stands;        /* the server is learning of the locks: nothing is granted */
	size_t nregistered; /* those that it was told of */
	/* When a wait is not behind another one any more; INT64_MAX: after a change. */
	_Atomic int64_t look_ms;
};

/* A wait for one of them; part of a struct lock_wait. */
struct local_wait {
	struct list of_inode; /* local_locks.waits */
	struct list of_mount; /* locks.record_waits */
	struct list found;    /* of the search */
	struct inode *inode;
	struct lock want;
	bool waits;      /* it is in the table */
	bool again;      /* it is to come, to find out whether it can still end */
	int64_t came_ms; /* first */
	int64_t told_ms; /* when it was told to come; 0: not since it came last */
	uint64_t visited;
	void (*tell)(struct local_wait *wait);
};

static inline void local_wait_tell_locked(struct local_wait *wait)
{
	wait->told_ms = now_ms();
	wait->tell(wait);
}

/* A number that the mount has not used before; not 0. */
static inline uint64_t locks_number(struct locks *locks)
{
	return __atomic_add_fetch(&locks->number, 1, __ATOMIC_RELAXED);
}

#endif
