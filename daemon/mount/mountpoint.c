#include "daemon/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/base/log.h"
#include "common/base/mountinfo.h"
#include "common/base/util.h"
#include "daemon/fuse/decode.h"

static bool mountpoint_is_ours(const struct mount *mount)
{
	return strcmp(mount->type, MOUNT_TYPE_OURS) == 0;
}

/* The kernel answers stat(2) from its cache, even if the mount has lost its daemon, but never
 * statfs(2). Called by path, statfs(2) would first mount an automount, and this may be the mount
 * that it asks for. With an O_PATH descriptor it does not. 0 or errno. */
static int mountpoint_look_at(const char *path, struct stat *st)
{
	autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	struct statfs fs;

	return fd < 0 || fstat(fd, st) < 0 || fstatfs(fd, &fs) < 0 ? errno : 0;
}

static int check_directory(const char *path, char *why, size_t whylen)
{
	struct stat st = {0};
	int error = mountpoint_look_at(path, &st);

	if (!error) {
		if (S_ISDIR(st.st_mode))
			return 0;
		snprintf(why, whylen, "mount point %s: not a directory: name a directory", path);
		return -ENOTDIR;
	}
	if (error == ENOTCONN) {
		snprintf(why, whylen,
			"mount point %s: a mount without its daemon is there: umount it first",
			path);
		return -ENOTCONN;
	}
	if (error == ESTALE) {
		snprintf(why, whylen,
			"mount point %s: a mount that has lost its session or the server's memory "
			"is there: umount it first",
			path);
		return -ESTALE;
	}
	if (error == ENOENT) {
		snprintf(why, whylen, "mount point %s: no such directory: make it first", path);
		return -ENOENT;
	}
	snprintf(why, whylen, "mount point %s: %s", path, errno_text(error));
	return -error;
}

int mountpoint_resolve(
	const char *path, bool replace, char *out, size_t outlen, char *why, size_t whylen)
{
	autofree char *absolute = NULL;
	autofree char *line = NULL;
	struct mount mount;
	int err = check_directory(path, why, whylen);
	bool dead = err == -ENOTCONN && replace && geteuid() == 0, ours;

	if (err && !dead)
		return err;
	absolute = realpath(path, NULL);
	if (!absolute || strlen(absolute) >= outlen) {
		err = absolute ? -ENAMETOOLONG : -errno;
		snprintf(why, whylen, "mount point %s: %s", path, errno_text(err));
		return err;
	}
	line = mountinfo_find(absolute, &mount);
	ours = line && mountpoint_is_ours(&mount);
	/* mountpoint_drop_dead() can take away one of ours alone. */
	if (dead && !ours)
		return err;
	if (!dead && ours) {
		snprintf(why, whylen,
			"mount point %s: %s is mounted there already: umount it first, or choose "
			"another directory",
			path, mount.source);
		return -EBUSY;
	}
	strcpy(out, absolute);
	return 0;
}

void mountpoint_drop_dead(const char *path)
{
	autofree char *absolute = NULL;
	autofree char *line = NULL;
	struct mount mount;
	struct stat st;

	if (mountpoint_look_at(path, &st) != ENOTCONN)
		return;
	absolute = realpath(path, NULL);
	if (!absolute || !(line = mountinfo_find(absolute, &mount)) || !mountpoint_is_ours(&mount))
		return;
	if (umount2(absolute, MNT_DETACH) == 0)
		log_warning("%s: took a mount away that had lost its daemon", absolute);
}

/* ---- flags, and remounting ------------------------------------------------------------------- */

/* Sets flags of this mount alone; the filesystem is not asked. */
static int set_flags(const char *path, unsigned long flags)
{
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags, NULL) == 0 ? 0 : -errno;
}

int mountpoint_set_flags(const char *path, unsigned long flags, char *why, size_t whylen)
{
	int err = set_flags(path, flags);

	if (err)
		snprintf(why, whylen, "%s: cannot mount with %s: %s", path,
			flags & MS_NOSYMFOLLOW ? "nosymfollow" : "strictatime or nodiratime",
			err == -EPERM ? "only root may" : errno_text(err));
	return err;
}

static const char *mountpoint_reason(int err)
{
	switch (err) {
	case -EACCES:
		return "only the user of that mount can reach it; umount it and mount it again with "
		       "allow_other";
	case -EBUSY:
		return "files are open for writing, or open and unlinked, or another remount is "
		       "under way";
	case -EIO:
		return "the server does not answer";
	case -ENOSYS:
	case -ENOTTY:
		return "its daemon is of another release; umount it and mount it again";
	case -ENOTCONN:
		return "its daemon is gone; umount it and mount it again";
	case -EPERM:
		return "only root may, in a process that the daemon sees: run it in the daemon's PID "
		       "and user namespace";
	case -EUSERS:
		return "its key may only read, or other mounts read the export; the daemon's log "
		       "says which";
	default:
		return errno_text(err);
	}
}

/* Tells the daemon, and so the server. root: the mount's root directory, open. */
static int tell_daemon(int root, unsigned long flags)
{
	return ioctl(root, REMOUNT_IOCTL, flags & REMOUNT_FLAGS) == 0 ? 0 : -errno;
}

/* A filesystem becomes read-only, or writable, for all its mounts at once. The kernel then writes
 * back its cache, and takes "sync" from these flags again. */
static int tell_kernel(const struct mount *there, const char *path, unsigned long flags)
{
	if (there->read_only == !!(flags & MS_RDONLY))
		return set_flags(path, flags);
	flags |= MS_REMOUNT | (there->sync ? MS_SYNCHRONOUS : 0);
	return mount(NULL, path, NULL, flags, NULL) == 0 ? 0 : -errno;
}

/* The daemon gets keys that write before the first write can come, and loses them when none can
 * come any more. */
static int change_mount(
	const struct mount *there, const char *path, unsigned long flags, char *why, size_t whylen)
{
	autoclose int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = root < 0 ? -errno : 0;

	if (!err && !(flags & MS_RDONLY))
		err = tell_daemon(root, flags);
	if (!err) {
		err = tell_kernel(there, path, flags);
		/* A client that may write keeps readers out. */
		if (err && there->read_only && !(flags & MS_RDONLY))
			tell_daemon(root, flags | MS_RDONLY);
	}
	if (err) {
		snprintf(why, whylen, "cannot remount %s: %s", path, mountpoint_reason(err));
		return err;
	}
	if (flags & MS_RDONLY)
		err = tell_daemon(root, flags);
	if (err)
		snprintf(why, whylen,
			"cannot remount %s: it is read-only here, but not for the server: %s", path,
			mountpoint_reason(err));
	return err;
}

int mountpoint_remount(
	const char *path, unsigned long flags, unsigned long kept, char *why, size_t whylen)
{
	autofree char *absolute = realpath(path, NULL);
	autofree char *line = NULL;
	struct mount there;

	if (!absolute || !(line = mountinfo_find(absolute, &there)) ||
		!mountpoint_is_ours(&there)) {
		snprintf(why, whylen,
			"cannot remount %s: no rmemfs is mounted there: see 'findmnt -t fuse.rmemfs'",
			path);
		return -EINVAL;
	}
	flags = (flags & ~kept) | (there.flags & kept);
	return change_mount(&there, absolute, flags, why, whylen);
}

int mountpoint_connection(const char *path, unsigned *connection)
{
	autofree char *line = NULL;
	struct mount mount;

	line = mountinfo_find(path, &mount);
	if (!line)
		return -ENOENT;
	*connection = mount.minor;
	return 0;
}

int mountpoint_enter_namespace(const char *file, char *why, size_t whylen)
{
	autoclose int fd = open(file, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd >= 0 && setns(fd, CLONE_NEWNS) == 0)
		return 0;
	err = -errno;
	snprintf(why, whylen, "mount namespace %s: %s", file, errno_text(err));
	return err;
}

/* ---- tuning ---------------------------------------------------------------------------------- */

void mountpoint_set_readahead(const char *path, unsigned kib)
{
	autofree char *line = NULL;
	autoclose int fd = -1;
	struct mount mount;
	char file[128], text[16];
	int len;

	line = mountinfo_find(path, &mount);
	if (!line)
		return;
	snprintf(file, sizeof(file), "/sys/class/bdi/0:%u/read_ahead_kb", mount.minor);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	len = snprintf(text, sizeof(text), "%u", kib);
	if (fd < 0 || write(fd, text, (size_t)len) < 0)
		log_debug("readahead of %s stays as it is: %s", path, errno_text(errno));
}
