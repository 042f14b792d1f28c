/* snapshot_sets.c - see snapshot_sets.h. */
#include "server/snapshot/snapshot_sets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/snapshot/image_block.h"

static const char *const names[] = {"a", "b"};
static const char link_name[] = "latest", link_made[] = "latest.new", whole_name[] = ".whole";

/* ---- the latest set -------------------------------------------------------------------------- */

/* The index of the set that a link names; -1: there is no link; -EBADMSG: it names no set. */
static int read_link(const struct snapshot_sets *s, const char *link)
{
	char target[8];
	ssize_t n = readlinkat(s->fd, link, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT ? -1 : -EBADMSG;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (n == 1 && target[0] == names[i][0])
			return (int)i;
	return -EBADMSG;
}

static bool is_there(const struct snapshot_sets *s, unsigned set)
{
	return faccessat(s->fd, names[set], F_OK, AT_EACCESS) == 0;
}

static bool is_whole(const struct snapshot_sets *s, unsigned set)
{
	char path[16];

	snprintf(path, sizeof(path), "%s/%s", names[set], whole_name);
	return faccessat(s->fd, path, F_OK, AT_EACCESS) == 0;
}

/* A whole set that is about to become the latest; -1: none. */
static int find_unlinked(const struct snapshot_sets *s)
{
	int set = read_link(s, link_made);

	return set >= 0 && is_whole(s, (unsigned)set) ? set : -1;
}

/* Returns as read_link() does. */
static int find_latest(const struct snapshot_sets *s)
{
	int set = find_unlinked(s);

	return set >= 0 ? set : read_link(s, link_name);
}

int snapshot_sets_latest(const struct snapshot_sets *s, char set[SNAPSHOT_SET_PATH_BYTES],
	bool *newer, const struct image_why *why)
{
	int latest = find_latest(s);

	*newer = false;
	if (latest == -1 && !is_there(s, 0) && !is_there(s, 1))
		return -ENOENT;
	if (latest == -1 && (is_whole(s, 0) || is_whole(s, 1)))
		return image_fail(why, -EBADMSG,
			"%s holds a whole set of snapshots, but no link to it: ln -s %s %s/%s",
			s->dir, names[!is_whole(s, 0)], s->dir, link_name);
	if (latest == -1)
		return image_fail(why, -EBADMSG,
			"%s holds no whole set of snapshots, but the beginning of one (%s)", s->dir,
			is_there(s, 0) ? names[0] : names[1]);
	if (latest < 0 || !is_whole(s, (unsigned)latest))
		return image_fail(why, -EBADMSG, "%s/%s does not lead to a whole set of snapshots",
			s->dir, link_name);
	*newer = is_there(s, !latest) && !is_whole(s, !latest);
	snprintf(set, SNAPSHOT_SET_PATH_BYTES, "%s/%s", s->dir, names[latest]);
	return 0;
}

void snapshot_sets_next(const struct snapshot_sets *s, char set[SNAPSHOT_SET_PATH_BYTES])
{
	int latest = find_latest(s);
	bool second = latest < 0 ? is_whole(s, 0) && !is_whole(s, 1) : latest == 0;

	snprintf(set, SNAPSHOT_SET_PATH_BYTES, "%s/%s", s->dir, names[second]);
}

/* ---- emptying -------------------------------------------------------------------------------- */

static int unlink_if_there(int fd, const char *name, int flags)
{
	return unlinkat(fd, name, flags) != 0 && errno != ENOENT ? -errno : 0;
}

/* Removes the files that a snapshot has. Other files stay, and are in the way. */
static int remove_snapshot(int set, const char *name)
{
	autoclose int fd = openat(set, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = unlink_if_there(fd, IMAGE_MANIFEST, 0);
	if (!err)
		err = unlink_if_there(fd, IMAGE_MANIFEST_NEW, 0);
	for (unsigned i = 0; !err && i < IMAGE_FILES; i++)
		err = unlink_if_there(fd, image_file_names[i], 0);
	return err ? err : unlink_if_there(set, name, AT_REMOVEDIR);
}

static int remove_snapshots(DIR *d, const char *set, const struct image_why *why)
{
	struct dirent *entry;

	while ((entry = readdir(d))) {
		int err;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		err = remove_snapshot(dirfd(d), entry->d_name);
		if (err)
			return image_fail(why, err,
				"%s/%s is in the way of a new snapshot: can't remove it: %s", set,
				entry->d_name, errno_text(err));
	}
	return 0;
}

/* Fails on a set; the directory above it is snapshot_dir. */
static int fail_set(const char *set, const char *doing, int err, const struct image_why *why)
{
	char dir[SNAPSHOT_SET_PATH_BYTES];

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(set, '/') - set), set);
	return image_fail_writing(why, err, doing, set, dir);
}

int snapshot_set_clear(const char *set, const struct image_why *why)
{
	int fd, err;
	DIR *d;

	if (mkdir(set, 0700) != 0 && errno != EEXIST)
		return fail_set(set, "make", -errno, why);
	fd = open(set, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		err = image_fail(why, -errno, "can't open %s: %s", set, errno_text(errno));
		if (fd >= 0)
			close(fd);
		return err;
	}
	/* First of all, and on the disk: from here on it is no whole set. */
	err = unlink_if_there(fd, whole_name, 0);
	if (!err && fsync(fd) != 0)
		err = -errno;
	if (err)
		fail_set(set, "empty", err, why);
	else
		err = remove_snapshots(d, set, why);
	closedir(d);
	return err;
}

/* ---- making it the latest -------------------------------------------------------------------- */

/* Makes the link that is to be renamed. Syncs it, and the set's own name, to the disk. */
static int announce(const struct snapshot_sets *s, const char *name)
{
	int err = unlink_if_there(s->fd, link_made, 0);

	if (!err && symlinkat(name, s->fd, link_made) != 0)
		err = -errno;
	return !err && fsync(s->fd) != 0 ? -errno : err;
}

static int mark_whole(int fd)
{
	autoclose int whole = openat(fd, whole_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return whole < 0 || fsync(whole) != 0 || fsync(fd) != 0 ? -errno : 0;
}

/* If these names are on the disk nevertheless, they lead to a whole set. */
static void snapshot_sets_withdraw(const struct snapshot_sets *s, int fd)
{
	unlinkat(fd, whole_name, 0);
	unlinkat(s->fd, link_made, 0);
}

static int turn_link(const struct snapshot_sets *s)
{
	if (renameat(s->fd, link_made, s->fd, link_name) != 0 || fsync(s->fd) != 0)
		return -errno;
	return 0;
}

int snapshot_sets_publish(
	const struct snapshot_sets *s, const char *set, const struct image_why *why)
{
	autoclose int fd = open(set, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	CRASH_POINT("set.written");
	if (!err)
		err = announce(s, strrchr(set, '/') + 1);
	CRASH_POINT("set.named");
	if (!err)
		err = mark_whole(fd);
	if (err) {
		snapshot_sets_withdraw(s, fd);
		return image_fail(why, err, "can't make %s the latest: %s", set, errno_text(err));
	}
	CRASH_POINT("set.whole");
	err = turn_link(s);
	if (err)
		log_warning("%s is the latest set of snapshots, but %s/%s can't be turned to it: "
			    "%s; the next start does that",
			set, s->dir, link_name, errno_text(err));
	return 0;
}

static int end_publishing(const struct snapshot_sets *s, const struct image_why *why)
{
	int set = find_unlinked(s), err;

	if (set < 0)
		return 0;
	err = turn_link(s);
	if (err)
		return image_fail(why, err, "can't turn %s/%s to %s, which is newer: %s", s->dir,
			link_name, names[set], errno_text(err));
	log_notice("%s/%s is the latest set of snapshots: the server was killed when it was whole",
		s->dir, names[set]);
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_directory(struct snapshot_sets *s, const struct image_why *why)
{
	struct stat st;

	s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0 && errno == ENOENT)
		return image_fail(why, -ENOENT,
			"%s does not exist: make it first (install -d -m 700), for the server's "
			"user",
			s->dir);
	if (s->fd < 0 || fstat(s->fd, &st) != 0)
		return image_fail(why, -errno, "can't open %s: %s", s->dir, errno_text(errno));
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return image_fail(why, -EPERM,
			"%s belongs to user %u, not to us (%u): chown it, or name another directory",
			s->dir, st.st_uid, geteuid());
	if (st.st_mode & S_IWOTH)
		return image_fail(why, -EPERM,
			"everybody can write to %s: chmod o-w it, or name another directory",
			s->dir);
	return 0;
}

static int check_writable(const struct snapshot_sets *s, const struct image_why *why)
{
	if (faccessat(s->fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EROFS)
		return image_fail_writing(why, -errno, "write to", s->dir, s->dir);
	return image_fail(why, -errno, "can't write to %s: %s: give it to the server's user",
		s->dir, errno_text(errno));
}

static int snapshot_sets_lock(const struct snapshot_sets *s, const struct image_why *why)
{
	if (flock(s->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return image_fail(why, -errno,
			"can't lock %s: %s: name a directory on a disk of this machine", s->dir,
			errno_text(errno));
	return image_fail(why, -EAGAIN,
		"%s is in use by another server: give each one a directory of its own", s->dir);
}

static void warn_of_memory(const struct snapshot_sets *s)
{
	struct statfs fs;

	if (fstatfs(s->fd, &fs) == 0 && ((unsigned long)fs.f_type == TMPFS_MAGIC ||
						(unsigned long)fs.f_type == RAMFS_MAGIC))
		log_warning("snapshot_dir: %s is in memory: what is there does not survive a "
			    "reboot, either",
			s->dir);
}

int snapshot_sets_look(struct snapshot_sets *s, const char *dir, bool writable, bool restart,
	const struct image_why *why)
{
	int err;

	*s = (struct snapshot_sets){dir, -1};
	err = open_directory(s, why);
	if (!err && writable)
		err = check_writable(s, why);
	if (!err)
		err = snapshot_sets_lock(s, why);
	if (err == -EAGAIN && restart)
		err = 0;
	if (!err)
		warn_of_memory(s);
	return err;
}

static bool is_same_directory(const struct snapshot_sets *a, const struct snapshot_sets *b)
{
	struct stat x, y;

	return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* A descriptor that was opened anew would not have the lock, nor get it. */
static int take_lock_of(
	struct snapshot_sets *s, const struct snapshot_sets *before, const struct image_why *why)
{
	close(s->fd);
	s->fd = fcntl(before->fd, F_DUPFD_CLOEXEC, 0);
	if (s->fd < 0)
		return image_fail(why, -errno, "%s: %s", s->dir, errno_text(errno));
	return 0;
}

int snapshot_sets_reopen(struct snapshot_sets *s, const struct snapshot_sets *before,
	const char *dir, bool writable, const struct image_why *why)
{
	int err;

	*s = (struct snapshot_sets){dir, -1};
	err = open_directory(s, why);
	if (!err && writable)
		err = check_writable(s, why);
	if (!err)
		err = before && is_same_directory(s, before) ? take_lock_of(s, before, why)
							     : snapshot_sets_lock(s, why);
	if (!err)
		warn_of_memory(s);
	if (!err && writable)
		err = end_publishing(s, why);
	if (err)
		snapshot_sets_close(s);
	return err;
}

void snapshot_sets_close(struct snapshot_sets *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int snapshot_sets_open(
	struct snapshot_sets *s, const char *dir, bool writable, const struct image_why *why)
{
	int err = snapshot_sets_look(s, dir, writable, false, why);

	return !err && writable ? end_publishing(s, why) : err;
}
