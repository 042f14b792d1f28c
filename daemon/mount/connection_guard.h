/* connection_guard.h - a process that ends the kernel's connection when the daemon is killed.
 *
 * The kernel itself does so when the connection's last descriptor is closed, which is when the
 * daemon's last thread has ended. But a thread may be in the kernel, to have pages dropped or a
 * name asked for anew (notifier.h), or to unmount. It may wait there for a page or a directory that
 * another process has locked, and that process may wait for our answer. When the threads that
 * answer are gone, neither wait would ever end. So the daemon has a child that does nothing else.
 * The kernel tells the child that the daemon is being killed, and the child aborts the connection.
 * That ends all these waits.
 *
 * It also removes the socket that the daemon can't remove any more (admin/control.h).
 *
 * The kernel tells this as soon as the thread that made the child has ended, whatever other threads
 * do. So this is a thread of its own, which is never in the kernel for long.
 *
 * Where a successor can go on with the mount (recover.h), the child gives it time:
 * connection_guard_ keep(). If the daemon does not end, since a thread of it waits as said above,
 * or if no successor has taken the mount's record in GUARD_SUCCESSOR_MS, the child aborts the
 * connection as ever.
 *
 * If both are killed at once, as a whole control group is, nothing ends the waits: the unit kills
 * the daemon alone.
 *
 * The child's name is (rmemfs-guard). ps(1) shows the daemon's process number behind it.
 *
 * OWNERSHIP  The child has nothing open of the daemon, and ends with it, however that ends.
 * THREADS    main.
 */
#ifndef RMEMFS_DAEMON_MOUNT_CONNECTION_GUARD_H
#define RMEMFS_DAEMON_MOUNT_CONNECTION_GUARD_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

enum {
	GUARD_END_MS = 2000,        /* for a daemon that was killed, to end, unless it dumps core */
	GUARD_SUCCESSOR_MS = 30000, /* then for a successor to take the record */
};

struct survivor {
	pthread_t maker;
	sem_t made, end;
	pid_t child; /* -errno: there is none */
	int fd;      /* to the child */
	int its_fd;
};

/* Called before devices are opened, which a fork would break, and before other threads start.
 * -errno: there is no child; the calls below are harmless then. */
int connection_guard_start(struct survivor *s);
/* There is a connection; its number is the minor number of the mount's device. socket: of the
 * daemon, to be removed when it is killed; NULL: there is none yet. A second call tells the socket.
 * connection 0: another process is to have the connection, and the end of this one is not to end
 * it. -errno: the connection can't be aborted. */
struct socket_id; /* common/base/mount_socket.h */
int connection_guard_watch(struct survivor *s, unsigned connection, const struct socket_id *socket);
/* The connection is left to a successor when the daemon is killed. record: its descriptor
 * (record/record.h). Until connection_guard_watch() says that there is no connection. */
int connection_guard_keep(struct survivor *s, unsigned connection, int record);
/* Aborts a connection now, in this process. */
int connection_guard_abort(unsigned connection);
/* The connection has ended, or there was none. Waits for the child. */
void connection_guard_stop(struct survivor *s);

#endif
