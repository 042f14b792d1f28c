/* connection_guard.h - a process that ends the kernel's connection when the daemon is killed.
 *
 * The kernel does so itself when the last descriptor of the connection is closed, which is when the
 * daemon's last thread has ended. But a thread that is in the kernel, to have pages dropped or a
 * name asked for anew (notifier.h), or to unmount, may wait there for a page or a directory that
 * somebody has locked who waits for an answer of ours. When the threads that answer are gone,
 * neither would ever end. So a child of the daemon, which does nothing else, is told by the kernel
 * that the daemon is being killed, and aborts the connection: all who wait are told so.
 *
 * The kernel tells that as soon as the thread has ended that has made the child, whatever the
 * others do. So it is one of its own, which is never in the kernel for long.
 *
 * Who kills both at once, as by a whole control group, has neither: the unit kills the daemon
 * alone.
 *
 * OWNERSHIP  The child has nothing open of the daemon, and ends with it, however that ends.
 * THREADS    main.
 */
#ifndef RMEMFS_DAEMON_MOUNT_CONNECTION_GUARD_H
#define RMEMFS_DAEMON_MOUNT_CONNECTION_GUARD_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

struct survivor {
	pthread_t maker;
	sem_t made, end;
	pid_t child; /* -errno: there is none */
	int fd;      /* to it */
	int its_fd;
};

/* Before devices are opened, which a fork would break, and other threads started. -errno: there is
 * none; what follows is harmless then. */
int connection_guard_start(struct survivor *s);
/* There is a connection; its number is the minor one of the mount's device. -errno: it can't be
 * aborted. */
int connection_guard_watch(struct survivor *s, unsigned connection);
/* The connection has ended, or there was none. Waits for the child. */
void connection_guard_stop(struct survivor *s);

#endif
