/* mountpoint.h - the directory to mount on, and the mounts there are.
 *
 * THREADS    main.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_MOUNT_MOUNTPOINT_H
#define RMEMFS_DAEMON_MOUNT_MOUNTPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of a directory on which no rmemfs is mounted. replace: for root, one without
 * its daemon may be there, for mountpoint_drop_dead(). -ENOENT, -ENOTDIR, -EBUSY, -ENOTCONN. */
int mountpoint_resolve(
	const char *path, bool replace, char *out, size_t outlen, char *why, size_t whylen);

/* Removes a mount of ours whose daemon has died: it would be in the way of the next one. Until then
 * it keeps programs from writing into the directory below. Needs root's privilege. Without it, or
 * without such a mount, nothing happens. */
void mountpoint_drop_dead(const char *path);

/* Sets these flags of mount(2) at the mount at path and clears others. Those in kept (MS_NOSUID,
 * MS_NODEV) stay as they are. The mount's daemon, and so the server, then takes or refuses changes,
 * and keeps access times, accordingly (remount.h). Waits for the server until a signal comes.
 * -EBUSY: files are open for writing. -EINVAL: there is no mount of ours. */
int mountpoint_remount(
	const char *path, unsigned long flags, unsigned long kept, char *why, size_t whylen);

/* Sets these flags of mount(2) at the mount at path (absolute), which was just made: libfuse does
 * not know all of them. -EPERM: needs root's privilege. */
int mountpoint_set_flags(const char *path, unsigned long flags, char *why, size_t whylen);

/* The number of the kernel's FUSE connection that is mounted at path (absolute). -ENOENT. */
int mountpoint_connection(const char *path, unsigned *connection);

/* Enters another mount namespace; file stands for it, as /proc/PID/ns/mnt does. Called before any
 * thread is started. */
int mountpoint_enter_namespace(const char *file, char *why, size_t whylen);

/* Lets the kernel read kib KiB ahead on the filesystem mounted at path (absolute). Without the
 * right to change it, it stays at 128. */
void mountpoint_set_readahead(const char *path, unsigned kib);

#endif
