/* metaop.c - what shell commands don't do with files' metadata: metaop OPERATION ARGUMENTS...
 *
 * Exit status 0; or 1 with the errno's name on standard error, as in "metaop: EEXIST".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

/* ---- files without a name -------------------------------------------------------------------- */

static int link_fd(int fd, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int write_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, len);

		if (n < 0)
			return -errno;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

/* FOLDER BYTES: written, read back and compared. */
static int tmpfile_readback(char **args)
{
	autoclose int fd = open(args[0], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	size_t len = strtoul(args[1], NULL, 10);
	autofree char *data = malloc(len), *back = malloc(len);
	size_t have = 0;
	int err;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 31 >> 3);
	err = write_all(fd, data, len);
	while (!err && have < len) {
		ssize_t n = pread(fd, back + have, len - have, (off_t)have);

		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		have += (size_t)n;
	}
	if (err)
		return err;
	return memcmp(data, back, len) == 0 ? 0 : -EILSEQ;
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
		err = write_all(to, buf, (size_t)n);
	return err;
}

/* SOURCE FOLDER NAME: copies, says so, and gives the name once standard input ends. */
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

/* FOLDER NAME: written before and after it gets its name. */
static int tmpfile_link_write(char **args)
{
	autoclose int fd = open(args[0], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = write_all(fd, "before and ", 11);
	if (!err)
		err = link_fd(fd, args[1]);
	return err ? err : write_all(fd, "after\n", 6);
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

/* ---- the command line ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	int nargs;
	int (*run)(char **args);
} operations[] = {
	{"tmpfile-readback", 2, tmpfile_readback},
	{"tmpfile-stat", 2, tmpfile_stat},
	{"tmpfile-link", 3, tmpfile_link},
	{"tmpfile-link-write", 2, tmpfile_link_write},
	{"tmpfile-exclusive-link", 2, tmpfile_exclusive_link},
	{"unlinked-link", 2, unlinked_link},
	{"read-noatime", 1, read_noatime},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(operations); i++) {
		int err;

		if (strcmp(operations[i].name, argv[1]) != 0 || operations[i].nargs != argc - 2)
			continue;
		err = operations[i].run(argv + 2);
		if (err)
			fprintf(stderr, "metaop: %s\n", strerrorname_np(-err));
		return err ? 1 : 0;
	}
	fprintf(stderr, "metaop: no such operation, or not its arguments\n");
	return 2;
}
