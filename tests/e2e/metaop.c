/* metaop.c - operations on files' metadata that no shell command does: see operation.h. */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/util.h"

/* ---- files without a name -------------------------------------------------------------------- */

static int link_fd(int fd, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* FOLDER BYTES: written, read back and compared. */
static int tmpfile_readback(char **args)
{
	autoclose int fd = open(args[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	size_t len = strtoul(args[1], NULL, 10);
	autofree char *data = malloc(len);
	int err;

	if (fd < 0)
		return -errno;
	if (!data)
		return -ENOMEM;
	operation_pattern(data, len);
	err = operation_write(fd, data, len);
	return err ? err : operation_compare(fd, data, len);
}

/* FOLDER MODE: prints links and mode. */
static int tmpfile_stat(char **args)
{
	mode_t mode = (mode_t)strtoul(args[1], NULL, 8);
	autoclose int fd = open(args[0], O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	printf("links %lu mode %o\n", (unsigned long)st.st_nlink, st.st_mode & 07777);
	return 0;
}

static int copy(int from, int to)
{
	static char buf[65536];
	ssize_t n;
	int err = 0;

	while (!err && (n = read(from, buf, sizeof(buf))) > 0)
		err = operation_write(to, buf, (size_t)n);
	return err;
}

/* SOURCE FOLDER NAME: copies, prints a word, and links the file once standard input ends. */
static int tmpfile_link(char **args)
{
	autoclose int from = open(args[0], O_RDONLY | O_CLOEXEC);
	autoclose int fd = open(args[1], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	char buf[16];
	int err;

	if (from < 0 || fd < 0)
		return -errno;
	err = copy(from, fd);
	if (err)
		return err;
	puts("written");
	fflush(stdout);
	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	return link_fd(fd, args[2]);
}

/* FOLDER NAME: writes before and after the link. */
static int tmpfile_link_write(char **args)
{
	autoclose int fd = open(args[0], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = operation_write(fd, "before and ", 11);
	if (!err)
		err = link_fd(fd, args[1]);
	return err ? err : operation_write(fd, "after\n", 6);
}

/* FOLDER NAME */
static int tmpfile_exclusive_link(char **args)
{
	autoclose int fd = open(args[0], O_TMPFILE | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : link_fd(fd, args[1]);
}

/* FILE NAME */
static int unlinked_link(char **args)
{
	autoclose int fd = open(args[0], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0 || unlink(args[0]) < 0)
		return -errno;
	return link_fd(fd, args[1]);
}

/* ---- times ----------------------------------------------------------------------------------- */

/* FILE */
static int read_noatime(char **args)
{
	autoclose int fd = open(args[0], O_RDONLY | O_NOATIME | O_CLOEXEC);
	char buf[100];

	return fd < 0 || read(fd, buf, sizeof(buf)) < 0 ? -errno : 0;
}

/* ---- extended attributes --------------------------------------------------------------------- */

enum { VALUE_ROOM = 100000 };

static char value[VALUE_ROOM];

static int put_value(ssize_t len)
{
	if (len < 0)
		return -errno;
	return fwrite(value, 1, (size_t)len, stdout) == (size_t)len ? 0 : -EIO;
}

/* NAME FILE: writes the value to standard output. */
static int get_xattr(char **args)
{
	return put_value(getxattr(args[1], args[0], value, sizeof(value)));
}

/* NAME FILE ROOM */
static int get_xattr_room(char **args)
{
	return put_value(getxattr(args[1], args[0], value, strtoul(args[2], NULL, 10)));
}

static int print_length(ssize_t len)
{
	if (len < 0)
		return -errno;
	printf("%zd\n", len);
	return 0;
}

/* NAME FILE */
static int xattr_length(char **args)
{
	return print_length(getxattr(args[1], args[0], NULL, 0));
}

/* FILE */
static int list_length(char **args)
{
	return print_length(listxattr(args[0], NULL, 0));
}

/* FILE ROOM */
static int list_room(char **args)
{
	return put_value(listxattr(args[0], value, strtoul(args[1], NULL, 10)));
}

static int set_from(char **args, int flags)
{
	autoclose int fd = open(args[2], O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, value, sizeof(value));

	if (len < 0 || setxattr(args[1], args[0], value, (size_t)len, flags) < 0)
		return -errno;
	return 0;
}

/* NAME FILE BYTES: sets the value to the bytes of the file BYTES. */
static int set_xattr(char **args)
{
	return set_from(args, 0);
}

static int set_xattr_create(char **args)
{
	return set_from(args, XATTR_CREATE);
}

static int set_xattr_replace(char **args)
{
	return set_from(args, XATTR_REPLACE);
}

enum { LONG_BYTES = 60000, SHORT_BYTES = 20000 };

static bool is_all(const char *bytes, size_t len, char c)
{
	return bytes[0] == c && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Sets a long value and a short one by turns, until it is killed. */
static void set_in_turns(const char *name, const char *file)
{
	static char bytes[LONG_BYTES];

	for (bool is_long = true;; is_long = !is_long) {
		size_t len = is_long ? LONG_BYTES : SHORT_BYTES;

		memset(bytes, is_long ? 'l' : 's', len);
		if (setxattr(file, name, bytes, len, 0) < 0)
			_exit(1);
	}
}

/* NAME FILE COUNT: reads a value COUNT times while it changes; -EILSEQ: it is neither of the
 * two. */
static int xattr_in_turns(char **args)
{
	unsigned long count = strtoul(args[2], NULL, 10);
	pid_t pid;
	int err = 0;

	if (setxattr(args[1], args[0], "s", 1, 0) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		set_in_turns(args[0], args[1]);
	for (unsigned long i = 0; !err && i < count; i++) {
		ssize_t len = getxattr(args[1], args[0], value, sizeof(value));

		if (len < 0)
			err = -errno;
		else if (!is_all(value, (size_t)len, len == LONG_BYTES ? 'l' : 's'))
			err = -EILSEQ;
	}
	if (kill(pid, SIGKILL) < 0 || waitpid(pid, NULL, 0) < 0)
		return -errno;
	return err;
}

/* NAME FILE */
static int lset_xattr(char **args)
{
	return lsetxattr(args[1], args[0], "x", 1, 0) < 0 ? -errno : 0;
}

static int remove_xattr(char **args)
{
	return removexattr(args[1], args[0]) < 0 ? -errno : 0;
}

static int expect_value(int fd, const char *name, const char *want)
{
	ssize_t len = fgetxattr(fd, name, value, sizeof(value));

	if (len < 0)
		return -errno;
	return (size_t)len == strlen(want) && memcmp(value, want, (size_t)len) == 0 ? 0 : -EILSEQ;
}

/* FILE */
static int fd_xattr(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int err;

	if (fd < 0 || fsetxattr(fd, "user.a", "before", 6, 0) < 0)
		return -errno;
	err = expect_value(fd, "user.a", "before");
	if (err)
		return err;
	if (unlink(args[0]) < 0 || fsetxattr(fd, "user.b", "after", 5, 0) < 0)
		return -errno;
	err = expect_value(fd, "user.a", "before");
	if (!err)
		err = expect_value(fd, "user.b", "after");
	if (!err && fremovexattr(fd, "user.a") < 0)
		err = -errno;
	return err ? err : fgetxattr(fd, "user.a", value, 1) < 0 && errno == ENODATA ? 0 : -EILSEQ;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* FILE: through a handle that can read, too. */
static int rewrite(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);
	char byte;

	return fd < 0 || pread(fd, &byte, 1, 0) != 1 || pwrite(fd, &byte, 1, 0) != 1 ? -errno : 0;
}

/* FILE */
static int cat(char **args)
{
	autoclose int fd = open(args[0], O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : copy(fd, STDOUT_FILENO);
}

/* FILE: writes bytes, then the capability to open raw sockets, by one handle. */
static const struct vfs_cap_data caps = {
	.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
	.data = {{.permitted = 1u << CAP_NET_RAW}},
};

static int write_caps(char **args)
{
	autoclose int fd = open(args[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	if (fd < 0 || write(fd, &caps, sizeof(caps)) != sizeof(caps))
		return -errno;
	return fsetxattr(fd, XATTR_NAME_CAPS, &caps, sizeof(caps), 0) < 0 ? -errno : 0;
}

/* As tar(1) and install(1) do, which close the file at the end. */
static int owner_caps(char **args)
{
	autoclose int fd = open(args[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	if (fd < 0 || write(fd, &caps, sizeof(caps)) != sizeof(caps) ||
		fchown(fd, getuid(), getgid()) || fchmod(fd, 0755))
		return -errno;
	return fsetxattr(fd, XATTR_NAME_CAPS, &caps, sizeof(caps), 0) < 0 ? -errno : 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct operation operations[] = {
	{"tmpfile-readback", 2, tmpfile_readback},
	{"tmpfile-stat", 2, tmpfile_stat},
	{"tmpfile-link", 3, tmpfile_link},
	{"tmpfile-link-write", 2, tmpfile_link_write},
	{"tmpfile-exclusive-link", 2, tmpfile_exclusive_link},
	{"unlinked-link", 2, unlinked_link},
	{"read-noatime", 1, read_noatime},
	{"getxattr", 2, get_xattr},
	{"getxattr-room", 3, get_xattr_room},
	{"xattr-length", 2, xattr_length},
	{"list-length", 1, list_length},
	{"list-room", 2, list_room},
	{"setxattr", 3, set_xattr},
	{"setxattr-create", 3, set_xattr_create},
	{"setxattr-replace", 3, set_xattr_replace},
	{"xattr-in-turns", 3, xattr_in_turns},
	{"lsetxattr", 2, lset_xattr},
	{"removexattr", 2, remove_xattr},
	{"fd-xattr", 1, fd_xattr},
	{"rewrite", 1, rewrite},
	{"cat", 1, cat},
	{"write-caps", 1, write_caps},
	{"owner-caps", 1, owner_caps},
};

int main(int argc, char **argv)
{
	return operation_main("metaop", operations, ARRAY_SIZE(operations), argc, argv);
}
