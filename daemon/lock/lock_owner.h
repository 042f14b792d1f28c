/* lock_owner.h - who may have locks of a file at a shared export, and what goes when he closes it.
 *
 * The kernel names an owner of record locks by the process's table of files, and one of flock(2),
 * or of an open file's record locks, by that file. When these are gone their places are soon
 * others', while what gives up their locks may still be on its way: RELEASE is not waited for, and
 * threads and channels overtake each other. So the server knows an owner by a number that is never
 * used again, and no lock that somebody gets is given up by what was sent for another. What it has
 * of the kernel's name (rpc.h) tells only who waits for whom.
 *
 * Of an owner is remembered that he may have locks, until he closes a handle of the file (FLUSH:
 * his record locks), or the handle that he has locked by is closed by all (RELEASE: flock(2), and
 * the record locks of an open file). So a close costs an RPC only where something was locked. He
 * who asks for one is remembered, too: the answer may come after a close.
 *
 * What is given up is leaving, until the server has answered. Who only tries comes after what was
 * leaving before him: he is not refused for what was closed already.
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

struct handle;
struct inode;
struct request;

/* Of an inode. */
struct inode_locks {
	struct list owners;  /* struct lock_owner */
	struct list leaving; /* struct lock_leaving, in the order they began */
};
void inode_locks_init(struct inode_locks *locks);
void inode_locks_fini(struct inode_locks *locks);

/* What GETLK or SETLK asks the server for, without a wait; owner 0: one that has no locks. Where it
 * may give its owner one, lock_owner_answered() follows, before he is told. -ENOLCK: no memory. */
int lock_owner_asks(const struct request *req, struct inode *inode, struct rpc_lock *lock);
/* got: he has the lock from now on. */
void lock_owner_answered(struct inode *inode, uint64_t number, bool got);

/* This was given up, which may have been all that its owner had. */
void lock_owner_freed(struct inode *inode, const struct rpc_lock *lock);
/* The session has ended, and with it all locks, and nobody asks for one: what they were had by is
 * of no use any more. Whether there is any such handle. */
bool lock_owners_forget_locked(struct inode *inode);

/* That was granted to nobody: it is given up. */
void lock_give_up(const struct request *req, struct inode *inode, const struct rpc_lock *lock);
/* FLUSH: the owner's record locks go. True: he has none. False: then(req, status) follows. */
bool lock_flush(struct request *req, void (*then)(struct request *req, int status));
/* RELEASE: what belongs to the handle goes. */
void lock_handle_closed(struct request *req, struct inode *inode, const struct handle *handle);

/* Something that may be in the way of others, and is wanted by nobody any more. */
struct lock_leaving {
	struct list link;    /* inode_locks.leaving */
	struct list waiters; /* struct waiter: who came after it, and before the next */
};
void lock_leaving_begin(struct inode *inode, struct lock_leaving *leaving);
void lock_leaving_end(struct inode *inode, struct lock_leaving *leaving);
/* True: nothing is leaving. False: then(req, status) follows when all that is now has left. */
bool lock_leaving_wait(struct request *req, void (*then)(struct request *req, int status));

#endif
