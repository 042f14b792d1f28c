/* memdir_files.c - see memdir_files.h. */
#include "server/memory/memdir_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"

/* ---- directories ----------------------------------------------------------------------------- */

static const char *remedy(int err)
{
	switch (err) {
	case -ENOENT:
		return ": make the directory above it first";
	case -EACCES:
	case -EPERM:
		return ": run as a user who may, or name another directory (memory_dir)";
	case -ENOSPC:
		return ": its filesystem is full";
	default:
		return "";
	}
}

int memdir_files_fail(const char *doing, const char *path, int err)
{
	log_error("memory directory: can't %s %s: %s%s", doing, path, errno_text(err), remedy(err));
	return err;
}

int memdir_files_check_path(const char *path)
{
	if (path[0] != '/') {
		log_error("memory directory: '%s' depends on where the server is started: name it "
			  "from / on (memory_dir)",
			path);
		return -EINVAL;
	}
	return 0;
}

const char *memdir_files_user(uid_t uid, char text[MEMDIR_USER_TEXT])
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, MEMDIR_USER_TEXT, "%.32s (%u)", user->pw_name, uid);
	else
		snprintf(text, MEMDIR_USER_TEXT, "%u", uid);
	return text;
}

/* Some directories are writable for everybody, like /dev/shm. Below one another user may have made
 * ours first, or a link to it, to read what the server keeps there. */
static int memdir_files_check_owner(const char *path, const struct stat *st)
{
	char owner[MEMDIR_USER_TEXT], us[MEMDIR_USER_TEXT];

	if (st->st_uid != geteuid() && st->st_uid != 0) {
		log_error(
			"memory directory: %s belongs to user %s, and the server runs as %s: run "
			"it as that user, or name another directory (memory_dir); if what is in it "
			"is this server's, give it back: chown -R %u %s; if it is nobody's, remove "
			"it: rm -r %s",
			path, memdir_files_user(st->st_uid, owner),
			memdir_files_user(geteuid(), us), geteuid(), path, path);
		return -EPERM;
	}
	if (!S_ISLNK(st->st_mode) && (st->st_mode & S_IWOTH)) {
		log_error("memory directory: everybody can write to %s: chmod o-w it, or name "
			  "another directory (memory_dir)",
			path);
		return -EPERM;
	}
	return 0;
}

int memdir_files_check_directory(const char *path)
{
	struct stat st;
	int err;

	if (lstat(path, &st) != 0)
		return memdir_files_fail("make", path, -errno);
	if (S_ISLNK(st.st_mode)) {
		err = memdir_files_check_owner(path, &st);
		if (err)
			return err;
		if (stat(path, &st) != 0)
			return memdir_files_fail("follow", path, -errno);
	}
	if (!S_ISDIR(st.st_mode)) {
		log_error("memory directory: %s is not a directory: remove it, or name another one "
			  "(memory_dir)",
			path);
		return -ENOTDIR;
	}
	return memdir_files_check_owner(path, &st);
}

int memdir_files_make_directory(const char *path)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return memdir_files_fail("make", path, -errno);
	return memdir_files_check_directory(path);
}

static const char *filesystem_name(unsigned long magic, char *hex, size_t len)
{
	switch (magic) {
	case EXT4_SUPER_MAGIC:
		return "ext2/3/4";
	case XFS_SUPER_MAGIC:
		return "xfs";
	case BTRFS_SUPER_MAGIC:
		return "btrfs";
	case OVERLAYFS_SUPER_MAGIC:
		return "overlay";
	case NFS_SUPER_MAGIC:
		return "nfs";
	case RAMFS_MAGIC:
		return "ramfs";
	case HUGETLBFS_MAGIC:
		return "hugetlbfs";
	default:
		snprintf(hex, len, "filesystem type %#lx", magic);
		return hex;
	}
}

int memdir_files_check_filesystem(const char *path, bool huge_ok, uint64_t *block)
{
	struct statfs fs;
	char hex[48];

	if (statfs(path, &fs) != 0)
		return memdir_files_fail("look at", path, -errno);
	if ((unsigned long)fs.f_type == TMPFS_MAGIC ||
		(huge_ok && (unsigned long)fs.f_type == HUGETLBFS_MAGIC)) {
		*block = (uint64_t)fs.f_bsize;
		return 0;
	}
	log_error("memory directory: %s is on %s; it must be on tmpfs%s, such as below /dev/shm",
		path, filesystem_name((unsigned long)fs.f_type, hex, sizeof(hex)),
		huge_ok ? " or hugetlbfs" : "");
	return -EINVAL;
}

/* ---- small files ----------------------------------------------------------------------------- */

int memdir_files_read_line(const char *path, char *line, size_t len)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, line, len - 1);
	if (n < 0)
		return -errno;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

int memdir_files_write_line(const char *path, const char *line)
{
	char made[1300];
	int fd, err = 0;

	snprintf(made, sizeof(made), "%s.new", path);
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	CRASH_POINT("memdir.write");
	if (dprintf(fd, "%s\n", line) < 0 || rename(made, path) != 0)
		err = -errno;
	CRASH_POINT("memdir.written");
	close(fd);
	return err;
}

int memdir_files_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!d)
		return -errno;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(d), entry->d_name, 0) != 0)
			err = -errno;
	closedir(d);
	return err;
}
