/* local_notes.h - the locks of local_locks.h in the record of a mount that can be revived (record.h).
 *
 * Each lock has an entry. A change writes the entries of the new locks, and only then gives back
 * those of the old ones. So a daemon that is killed amid a change leaves the locks from before,
 * those from after, or both. The kernel sends the request again, since it has not been answered.
 * Between requests the record has exactly the table's locks.
 *
 * THREADS    Under the inode's lock.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCAL_NOTES_H
#define RMEMFS_DAEMON_LOCK_LOCAL_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/lock/locks.h"

/* Room for as many notes as the table is about to have room for. False: no memory. */
bool local_notes_make_room(const struct inode *inode, struct local_locks *t, size_t room);
/* The table's locks are about to become the n in t->spare. */
void local_notes_change_locked(const struct inode *inode, struct local_locks *t, size_t n);
/* The server has all of them, or they are lost. */
void local_notes_end_locked(const struct inode *inode, struct local_locks *t);

#endif
