/* mountpoint.h - the directory to mount on, and the mounts there are.
 *
 * THREADS    main.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_MOUNTPOINT_H
#define RMEMFS_DAEMON_MOUNTPOINT_H

#include <stddef.h>

/* The absolute path of a directory on which no rmemfs is mounted. -ENOENT, -ENOTDIR, -EBUSY. */
int mountpoint_resolve(const char *path, char *out, size_t outlen, char *why, size_t whylen);

/* Lets the kernel read kib ahead on the filesystem mounted at path (absolute); it begins with 128.
 * Where we may not, it stays at that. */
void mountpoint_set_readahead(const char *path, unsigned kib);

#endif
