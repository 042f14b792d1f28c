/* lock_owner.h - the owners that may have locks of a file at a shared export, and the locks that go
 * at a close.
 *
 * The kernel names an owner of record locks by the process's table of files, and an owner of
 * flock(2) or of an open file's record locks by that file. When these are gone, the kernel soon
 * uses the names for others. A message that gives up their locks may still be on its way then:
 * nobody waits for RELEASE, and threads and channels overtake each other. So the server knows an
 * owner by a number that is never used again, and a late message gives up no other owner's lock.
 * The server uses the kernel's name (rpc.h) only to find waits in a circle.
 *
 * This client remembers that an owner may have locks. It forgets that for record locks when the
 * owner closes a handle of the file (FLUSH). For flock(2) and the record locks of an open file it
 * forgets that when all have closed the handle that was locked by (RELEASE). So a close costs an
 * RPC only where something was locked. An owner that asks for a lock is remembered, too: the answer
 * may come after a close.
 *
 * A lock that is given up is leaving until the server has answered. A try for a lock comes after
 * what was leaving before it: a lock that was closed already does not refuse it.
 *
 * OWNERSHIP  Owners, and what is leaving, belong to the inode; each that is leaving keeps it.
 * THREADS    All is under the inode's lock, which these functions take.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCK_OWNER_H
#define RMEMFS_DAEMON_LOCK_LOCK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "daemon/lock/locks.h"

struct fs;
struct handle;
struct inode;
struct request;

void inode_locks_init(struct inode_locks *locks);
void inode_locks_fini(struct inode_locks *locks);

/* The LOCK message of a GETLK or SETLK, without a wait; owner 0: one that has no locks. If it may
 * give its owner a lock, lock_owner_answered() follows before the caller is told. -ENOLCK: no
 * memory. */
int lock_owner_asks(const struct request *req, struct inode *inode, struct rpc_lock *lock);
/* got: the owner has the lock from now on. */
void lock_owner_answered(struct inode *inode, uint64_t number, bool got);

/* The lock was given up, which may have been all that its owner had. */
void lock_owner_freed(struct inode *inode, const struct rpc_lock *lock);
/* The session has ended, and all locks with it; nobody asks for one. Handles that locks were had by
 * are of no use any more. Returns whether there is such a handle. */
bool lock_owners_forget_locked(struct inode *inode);

/* The server has refused a lock of this owner, which the mount has had (lock_register.h): the
 * handle that it was had by is of no use any more. */
void lock_owner_lost_locked(struct inode *inode, uint64_t number);

/* Whether any owner of the mount may have a lock, or asks for one. No request is under way. */
bool lock_owners_any(struct fs *fs);

/* Whether that owner of record locks, by the kernel's name, may have some. */
bool lock_owner_has_records(struct inode *inode, uint64_t kernel);

/* Gives up a lock that was granted to nobody. */
void lock_give_up(const struct request *req, struct inode *inode, const struct rpc_lock *lock);
/* FLUSH: gives up the owner's record locks. True: it has none. False: then(req, status) follows. */
bool lock_flush(struct request *req, void (*then)(struct request *req, int status));
/* RELEASE: gives up the locks that belong to the handle. */
void lock_handle_closed(struct request *req, struct inode *inode, const struct handle *handle);

/* ---- of a mount that moves to another daemon (handover/sharing.h) ---------------------------- */

struct lock_owner_kept {
	uint64_t number, kernel;
	uint64_t handle; /* its number, by which it locked last; 0: that is closed */
	uint8_t kind;
	bool has, freed;
};
/* Room for n of them in v. Returns their number, which may be greater. */
unsigned lock_owners_describe_locked(
	const struct inode *inode, struct lock_owner_kept *v, unsigned n);
/* Before the threads run; the inode has its handles. -ENOMEM; -EINVAL: it makes no sense. */
int lock_owner_adopt_locked(struct inode *inode, const struct lock_owner_kept *kept);
/* The owner of a lock of a killed daemon (record.h), by the kernel's names. -ENOENT: the handle was
 * closed, and the lock with it. -ENOMEM. */
int lock_owner_revive_locked(
	struct inode *inode, const struct lock_owner_kept *recorded, uint64_t *number);
/* An adopted owner waits for a lock, as after lock_owner_asks(). -EINVAL: there is none of that
 * number. */
int lock_owner_waits_locked(struct inode *inode, uint64_t number);

/* A lock that nobody wants any more, but that may still be in the way of others. */
struct lock_leaving {
	struct list link;    /* inode_locks.leaving */
	struct list waiters; /* struct waiter: those that came after it, and before the next */
};
void lock_leaving_begin(struct inode *inode, struct lock_leaving *leaving);
void lock_leaving_end(struct inode *inode, struct lock_leaving *leaving);
/* True: nothing is leaving. False: then(req, status) follows when all that is leaving now has
 * left. */
bool lock_leaving_wait(struct request *req, void (*then)(struct request *req, int status));

#endif
