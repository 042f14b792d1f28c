/* mdbench.c - the cost of small files: mdbench FOLDER FILES BYTES [PREFIX]
 *
 * Works through that many files in a folder that has none of that prefix yet (others may work
 * there, too). Each phase does one operation per file, and prints a line "phase operations
 * seconds":
 *
 *     create   open(O_CREAT|O_EXCL), close            remove  unlink of these
 *     write    the same with BYTES written in between
 *     first    the first stat after they were written, before the directory is read
 *     stat     the second stat, after the kernel has seen all of them
 *     read     open, read, close; the file's bytes are not in the page cache, its name may be
 *     unlink
 *
 * The program checks the result outside of the timed loops: the number of names in the folder and
 * every file's size. It compares the bytes that it reads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum { PREFIX_CHARS = 5, NAME_CHARS = 13, CONTENT_MIN = 16 }; /* the prefix and eight digits */

static const char *prefix = "file.";
static size_t nbytes;
static char *content, *back;

static int wrong(const char *what)
{
	errno = EILSEQ;
	perror(what);
	return -1;
}

static int create_one(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : close(fd);
}

/* Each file begins with its own name. */
static int write_one(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return -1;
	memcpy(content, name, NAME_CHARS);
	if (write(fd, content, nbytes) != (ssize_t)nbytes) {
		close(fd);
		return -1;
	}
	return close(fd);
}

static int stat_one(const char *name)
{
	struct stat st;

	if (stat(name, &st) < 0)
		return -1;
	return (size_t)st.st_size == nbytes ? 0 : wrong("the size of a file");
}

static int uncache_one(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0 || fdatasync(fd) < 0)
		return -1;
	err = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return close(fd) < 0 || err ? -1 : 0;
}

static int read_one(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, back, nbytes);
	if (close(fd) < 0 || n < 0)
		return -1;
	memcpy(content, name, NAME_CHARS);
	return (size_t)n == nbytes && memcmp(back, content, nbytes) == 0
		       ? 0
		       : wrong("the content of a file");
}

static int each(uint64_t n, int (*one)(const char *name))
{
	char name[NAME_CHARS + 20];

	for (uint64_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%08llu", prefix, (unsigned long long)i);
		if (one(name) < 0) {
			perror(name);
			return -1;
		}
	}
	return 0;
}

static int timed(const char *phase, uint64_t n, int (*one)(const char *name))
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC);

	if (each(n, one) < 0)
		return -1;
	printf("%s %llu %.9f\n", phase, (unsigned long long)n,
		(double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e9);
	return 0;
}

static int expect_names(uint64_t n)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	uint64_t found = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		found += strncmp(entry->d_name, prefix, PREFIX_CHARS) == 0;
	closedir(dir);
	return found == n ? 0 : wrong("the number of names");
}

static bool run(uint64_t n)
{
	return timed("create", n, create_one) == 0 && expect_names(n) == 0 &&
	       timed("remove", n, unlink) == 0 && expect_names(0) == 0 &&
	       timed("write", n, write_one) == 0 && timed("first", n, stat_one) == 0 &&
	       expect_names(n) == 0 && each(n, stat_one) == 0 && timed("stat", n, stat_one) == 0 &&
	       each(n, uncache_one) == 0 && timed("read", n, read_one) == 0 &&
	       timed("unlink", n, unlink) == 0 && expect_names(0) == 0;
}

int main(int argc, char **argv)
{
	bool complete = argc == 4 || argc == 5, done;
	uint64_t n = complete ? strtoull(argv[2], NULL, 10) : 0;

	if (complete)
		nbytes = strtoul(argv[3], NULL, 10);
	if (argc == 5)
		prefix = argv[4];
	if (!n || nbytes < CONTENT_MIN || strlen(prefix) != PREFIX_CHARS) {
		fputs("usage: mdbench FOLDER FILES BYTES (at least 16) [PREFIX (5 characters)]\n",
			stderr);
		return 2;
	}
	content = malloc(nbytes);
	back = malloc(nbytes);
	if (!content || !back || chdir(argv[1]) < 0) {
		perror(argv[1]);
		return 1;
	}
	for (size_t i = 0; i < nbytes; i++)
		content[i] = (char)(i * 131 >> 3);
	done = run(n);
	free(content);
	free(back);
	return done ? 0 : 1;
}
