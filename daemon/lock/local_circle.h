/* local_circle.h - processes that wait for each other's record locks, on a mount that keeps its locks
 * by itself (local_locks.h). As at the server, the last step that closes a circle finds it: a wait
 * that begins or comes again, or a lock that goes to a process that also waits.
 *
 * The search goes from a wait to those that have locks in its way, and on to their waits, one inode
 * after the other. No wait comes or goes meanwhile, since locks.circles is held; locks may. So a
 * circle of processes that do nothing but wait is always found. Between threads of one process that
 * take and give up locks one may be found that was just being opened.
 *
 * THREADS    Any; no inode's lock is held.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCAL_CIRCLE_H
#define RMEMFS_DAEMON_LOCK_LOCAL_CIRCLE_H

#include <stdbool.h>

#include "daemon/lock/locks.h"

/* With locks.circles held: whether an owner of a lock in the way of this wait waits for the wait's
 * own process, itself or through others. */
bool local_circle_is_closed(struct locks *locks, struct local_wait *wait);
/* The owner has got this lock: if that closes a circle, its waits are told to come, and one of them
 * is refused. */
void local_circle_granted(struct locks *locks, const struct lock *lock);

#endif
