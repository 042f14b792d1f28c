/* mountpoint.h - the directory to mount on, and the mounts there are.
 *
 * THREADS    main.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_MOUNT_MOUNTPOINT_H
#define RMEMFS_DAEMON_MOUNT_MOUNTPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of a directory on which no rmemfs is mounted. -ENOENT, -ENOTDIR, -EBUSY. */
int mountpoint_resolve(const char *path, char *out, size_t outlen, char *why, size_t whylen);

/* Takes a mount of ours away whose daemon has died: it would be in the way of the next one. Root's
 * privilege; without it, or without such a mount, nothing happens. */
void mountpoint_drop_dead(const char *path);

/* Gives the mount at path these flags of mount(2), and takes others away, but for those in kept
 * (MS_NOSUID, MS_NODEV), which stay as they are there; has its daemon, and so
 * the server, take changes or refuse them, and keep access times, accordingly (remount.h). Waits
 * for the server, until a signal comes. -EBUSY: files are open for writing. -EINVAL: there is no
 * mount of ours. */
int mountpoint_remount(
	const char *path, unsigned long flags, unsigned long kept, char *why, size_t whylen);

/* Gives the mount at path (absolute), which was just made, these flags of mount(2): libfuse does
 * not know all of them. -EPERM: root's privilege. */
int mountpoint_set_flags(const char *path, unsigned long flags, char *why, size_t whylen);

/* The number of the kernel's FUSE connection that is mounted at path (absolute). -ENOENT. */
int mountpoint_connection(const char *path, unsigned *connection);

/* Goes on in another mount namespace: file stands for it, as /proc/PID/ns/mnt does. Before any
 * thread is started. */
int mountpoint_enter_namespace(const char *file, char *why, size_t whylen);

/* Lets the kernel read kib ahead on the filesystem mounted at path (absolute); it begins with 128.
 * Where we may not, it stays at that. */
void mountpoint_set_readahead(const char *path, unsigned kib);

#endif
