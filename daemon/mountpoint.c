#include "daemon/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/util.h"

/* A line of /proc/self/mountinfo, as far as we need it. */
struct mount {
	char *dev; /* "0:42" */
	char *dir;
	char *type;
	char *source;
	bool read_only; /* the filesystem itself, for whoever mounted it */
};

/* Blanks, tabs, newlines and backslashes are written as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned octal;

		if (from[0] == '\\' && sscanf(from + 1, "%3o", &octal) == 1) {
			*to = (char)octal;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* "36 35 0:42 / /mnt rw,noatime master:1 - fuse.rmemfs host:/export rw" */
static bool parse_mount(char *line, struct mount *mount)
{
	char *tail = strstr(line, " - ");
	char *fields[5], *save;

	if (!tail)
		return false;
	*tail = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		fields[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!fields[i])
			return false;
	}
	mount->dev = fields[2];
	mount->dir = fields[4];
	mount->type = strtok_r(tail + 3, " ", &save);
	mount->source = mount->type ? strtok_r(NULL, " ", &save) : NULL;
	fields[0] = mount->source ? strtok_r(NULL, " ", &save) : NULL;
	if (!fields[0])
		return false;
	mount->read_only = strncmp(fields[0], "ro", 2) == 0 && strchr(",\n", fields[0][2]);
	unescape(mount->dir);
	unescape(mount->source);
	return true;
}

/* The topmost mount at dir: the last one listed. The strings are *line's, the caller's to free. */
static bool find_mount(const char *dir, struct mount *found, char **line)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	autofree char *text = NULL;
	size_t size = 0;
	struct mount mount;

	*line = NULL;
	if (!f)
		return false;
	while (getline(&text, &size, f) > 0) {
		if (!parse_mount(text, &mount) || strcmp(mount.dir, dir) != 0)
			continue;
		free(*line);
		*line = steal_ptr(&text);
		size = 0;
		*found = mount;
	}
	fclose(f);
	return *line != NULL;
}

static bool is_ours(const struct mount *mount)
{
	return strcmp(mount->type, "fuse.rmemfs") == 0;
}

static int check_directory(const char *path, char *why, size_t whylen)
{
	struct stat st;

	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		snprintf(why, whylen, "mount point %s: not a directory", path);
		return -ENOTDIR;
	}
	if (errno == ENOTCONN) {
		snprintf(why, whylen,
			"mount point %s: a mount without its daemon is there: umount it first",
			path);
		return -ENOTCONN;
	}
	if (errno == ENOENT) {
		snprintf(why, whylen, "mount point %s: no such directory: make it first", path);
		return -ENOENT;
	}
	snprintf(why, whylen, "mount point %s: %s", path, errno_text(errno));
	return -errno;
}

int mountpoint_resolve(const char *path, char *out, size_t outlen, char *why, size_t whylen)
{
	autofree char *absolute = NULL;
	autofree char *line = NULL;
	struct mount mount;
	int err;

	err = check_directory(path, why, whylen);
	if (err)
		return err;
	absolute = realpath(path, NULL);
	if (!absolute || strlen(absolute) >= outlen) {
		err = absolute ? -ENAMETOOLONG : -errno;
		snprintf(why, whylen, "mount point %s: %s", path, errno_text(err));
		return err;
	}
	if (find_mount(absolute, &mount, &line) && is_ours(&mount)) {
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

	if (stat(path, &st) == 0 || errno != ENOTCONN)
		return;
	absolute = realpath(path, NULL);
	if (!absolute || !find_mount(absolute, &mount, &line) || !is_ours(&mount))
		return;
	if (umount2(absolute, MNT_DETACH) == 0)
		log_warning("%s: took a mount away that had lost its daemon", absolute);
}

/* ---- remounting ------------------------------------------------------------------------------ */

static unsigned long mount_flags(const char *options)
{
	static const struct {
		const char *on, *off;
		unsigned long flag;
	} flags[] = {
		{"ro", "rw", MS_RDONLY},
		{"nosuid", "suid", MS_NOSUID},
		{"nodev", "dev", MS_NODEV},
		{"noexec", "exec", MS_NOEXEC},
		{"noatime", "atime", MS_NOATIME},
		{"nodiratime", "diratime", MS_NODIRATIME},
	};
	autofree char *copy = strdup(options);
	unsigned long all = 0;
	char *save;

	for (char *at = copy ? strtok_r(copy, ",", &save) : NULL; at;
		at = strtok_r(NULL, ",", &save)) {
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
			if (strcmp(at, flags[i].on) == 0)
				all |= flags[i].flag;
			else if (strcmp(at, flags[i].off) == 0)
				all &= ~flags[i].flag;
		}
	}
	return all;
}

/* Of the mount, not of the filesystem: that one's "ro" tells what the server was told. */
static int set_flags(const char *path, unsigned long flags)
{
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags, NULL) == 0 ? 0 : -errno;
}

int mountpoint_forbid_symlinks(const char *path, const char *options, char *why, size_t whylen)
{
	int err = set_flags(path, mount_flags(options) | MS_NOSYMFOLLOW);

	if (err)
		snprintf(why, whylen, "%s: cannot mount with nosymfollow: %s", path,
			err == -EPERM ? "only root may" : errno_text(err));
	return err;
}

int mountpoint_remount(
	const char *path, const char *options, bool nosymfollow, char *why, size_t whylen)
{
	autofree char *absolute = realpath(path, NULL);
	unsigned long flags = mount_flags(options) | (nosymfollow ? MS_NOSYMFOLLOW : 0);
	autofree char *line = NULL;
	struct mount mount_there;
	int err;

	if (!absolute || !find_mount(absolute, &mount_there, &line) || !is_ours(&mount_there)) {
		snprintf(why, whylen, "cannot remount %s: no rmemfs is mounted there", path);
		return -EINVAL;
	}
	if (mount_there.read_only && !(flags & MS_RDONLY)) {
		snprintf(why, whylen,
			"cannot remount %s: it was mounted read-only; umount it and mount it again",
			path);
		return -EROFS;
	}
	err = set_flags(absolute, flags);
	if (!err)
		return 0;
	snprintf(why, whylen, "cannot remount %s: %s", path,
		err == -EBUSY ? "files are open for writing" : errno_text(err));
	return err;
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

	if (!find_mount(path, &mount, &line))
		return;
	snprintf(file, sizeof(file), "/sys/class/bdi/%.32s/read_ahead_kb", mount.dev);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	len = snprintf(text, sizeof(text), "%u", kib);
	if (fd < 0 || write(fd, text, (size_t)len) < 0)
		log_debug("readahead of %s stays as it is: %s", path, errno_text(errno));
}
