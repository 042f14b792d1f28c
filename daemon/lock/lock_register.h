/* lock_register.h - the server learns of the locks that a mount has kept by itself, before other
 * mounts are let in (conversion.h).
 *
 *     lock_register_all ...  nothing is granted from now on; LOCK messages, until it returns 0
 *     lock_register_end      the server has all; waits go on as waits at the server
 *
 * Nobody else is in, so the server grants each lock. If it refuses one, for want of room, the
 * handle that the lock was had by is of no use any more, as if the lock were lost with a session.
 * The log says so. A LOCK that is repeated, since the connection was lost or the server was killed,
 * changes nothing: its owner has the range.
 *
 * THREADS    Thread 0, while all requests are held.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCK_REGISTER_H
#define RMEMFS_DAEMON_LOCK_LOCK_REGISTER_H

struct fs;

/* Starts messages; it is called again when these are answered. Returns 0 if there was nothing to
 * tell any more. */
unsigned lock_register_all(struct fs *fs);
void lock_register_end(struct fs *fs);

#endif
