/* mountinfo.h - the mounts of a process's mount namespace, as /proc/PID/mountinfo lists them; see
 * proc_pid_mountinfo(5). Nothing touches the mounts themselves.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_COMMON_BASE_MOUNTINFO_H
#define RMEMFS_COMMON_BASE_MOUNTINFO_H

#include <stdbool.h>
#include <sys/types.h>

#define MOUNT_TYPE_OURS "fuse.rmemfs"

struct mount {
	unsigned minor; /* of the device number: FUSE's number of the connection */
	const char *dir, *type, *source;
	unsigned long flags;  /* MS_NOSUID and MS_NODEV, of this mount */
	bool spreads;         /* an unmount passes to other namespaces, or comes from one */
	bool read_only, sync; /* of the filesystem itself, whatever this mount has */
	uid_t uid;            /* FUSE: of the user that mounted it */
};

/* Calls fn for each mount, in the order of the list, as long as it returns true. The strings live
 * until fn returns. 0 or -errno of opening the file. */
int mountinfo_each(const char *file, bool (*fn)(const struct mount *mount, void *arg), void *arg);

/* The topmost mount at dir in this process's namespace. Its strings lie in the result, which the
 * caller frees. NULL: nothing is mounted there, or the list can't be read. */
char *mountinfo_find(const char *dir, struct mount *mount);

/* A copy, whose strings lie in the result: the caller frees it. NULL: no memory. */
char *mountinfo_copy(const struct mount *mount, struct mount *copy);

#endif
