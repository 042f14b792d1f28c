/* local_locks.h - the locks of a mount that has its export alone (conversion.h), which answers them by
 * itself. It takes the server's part: the same messages, answers, order and limits (rpc.h, LOCK;
 * server/meta/lock_waits.h). lock_owner.h and lock_wait.h are in front of both.
 *
 *     SETLK -> local_locks_set            -> 0, -EAGAIN
 *     SETLKW -> local_locks_wait          -> 0, or -EINPROGRESS -> (something changed) tell ->
 *     local_locks_wait again ...
 *
 * A later wait is behind an earlier one for the same, for LOCK_PATIENCE_MS at most; a lock that is
 * tried for is behind nobody, nor is an owner with record locks of the inode.
 *
 * When others come, conversion.h has the server learn of all locks (lock_register.h). From then on
 * the table of an inode stands: nothing is granted. When the server knows all, waits leave the
 * table and go on as waits at the server. On the way back the mount keeps locks if there are none;
 * else the server goes on to have them.
 *
 * A mount that only reads asks the server also when it is alone: others that only read may be
 * beside it. local_locks_begin() says whether the mount keeps its locks. That changes only while no
 * request is under way.
 *
 * OWNERSHIP  A table belongs to its inode, which gets one with its first lock. A wait is part of a
 *            struct lock_wait, which keeps the inode.
 * THREADS    A table is under its inode's lock, as are the waits in it. Waits for record locks are
 *            also in a list of the mount, under locks.circles, which comes before the inode's lock:
 *            the search for a circle (local_circle.h) goes over several inodes, one after the
 *            other. tell() is called with the inode's lock held.
 * ERRORS     -EAGAIN: another owner has it. -EDEADLK: the holder of the lock waits for this owner.
 *            -ENOLCK: too many locks or waits, or no memory.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCAL_LOCKS_H
#define RMEMFS_DAEMON_LOCK_LOCAL_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "daemon/lock/locks.h"

struct fs;
struct inode;

/* Whether the mount keeps its locks by itself. */
bool local_locks_are_kept(const struct fs *fs);
/* No request is under way, and nobody has a lock, or all locks go: it does from now on, if it may.
 */
void local_locks_begin(struct fs *fs);
/* The same for a mount that another daemon has had. */
void local_locks_adopt(struct fs *fs, bool kept);
/* The server has all of them from now on. */
void local_locks_end(struct fs *fs);
/* Of an inode that goes; NULL: it had none. */
void local_locks_delete(struct local_locks *t);

/* A LOCK that doesn't wait, also LOCK_FREE. -EAGAIN with kind flock: the owner's own lock is gone,
 * as with flock(2). */
int local_locks_set(struct inode *inode, const struct rpc_lock *lock);
/* GETLK. */
void local_locks_find(
	struct inode *inode, const struct rpc_lock *lock, struct rpc_getlk_reply *found);
/* A LOCK that waits. */
void local_locks_wait_init(struct local_wait *wait, struct inode *inode,
	const struct rpc_lock *lock, void (*tell)(struct local_wait *wait));
/* It comes, perhaps again. -EINPROGRESS: tell() follows when it may be had, or is part of a circle.
 * -EREMOTE: the server has the locks. */
int local_locks_wait(struct local_wait *wait);
bool local_locks_has_wait(struct local_wait *wait);
/* Takes it back. False: it does not wait here, or not any more. */
bool local_locks_leave(struct local_wait *wait);
/* The time has come at which a wait is not behind others any more, perhaps. */
void local_locks_tick(struct inode *inode);

/* The owner's locks, by its number. */
bool local_locks_has_locked(const struct inode *inode, uint64_t owner);
void local_locks_free_locked(struct inode *inode, uint64_t owner, uint8_t kind);
/* All are lost with the session. Waits stay until they are taken back. */
void local_locks_forget_locked(struct inode *inode);

/* For lock_register.h: from now on nothing is granted. Then: the server has them; each wait leaves
 * the table, and is told to come. */
void local_locks_stand_locked(struct inode *inode);
void local_locks_leave_all(struct inode *inode);

/* ---- of a mount that moves to another daemon, or is revived ---------------------------------- */

/* A lock as it was described, or recorded, in place of what its owner has there. -ENOMEM. */
int local_locks_adopt_locked(struct inode *inode, const struct lock *lock);
/* It waits, behind all that were adopted before it. -ENOMEM. */
int local_locks_adopt_wait(struct local_wait *wait);

#endif
