/* nameops.c - one kind of operation on many files: nameops KIND FOLDER FILES [PREFIX]
 *
 * KIND     what it does with each of the files, which are named PREFIX000000 and so on
 * create   makes it, empty
 * write    makes it, writes 4 KiB, closes it
 * read     opens it, reads and compares what was written, closes it
 * stat     its size has to be right
 * rename   to a name with an r in front of it;  rename-back
 * unlink
 * mkdir    a folder, whose name has a d in front of it;  rmdir
 *
 * It prints the seconds that this took. The folder is its working directory, so it is looked up
 * once.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum { BYTES = 4096, NAME_BYTES = 32, PREFIX_MAX = 8 };

static int wrong(const char *what)
{
	errno = EILSEQ;
	warn("%s", what);
	return -1;
}

/* Each file has its own name again and again. */
static void fill(char content[BYTES], const char *name)
{
	for (size_t i = 0, len = strlen(name) + 1; i < BYTES; i++)
		content[i] = name[i % len];
}

static int write_one(const char *name)
{
	char content[BYTES];
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return -1;
	fill(content, name);
	if (write(fd, content, BYTES) != BYTES) {
		close(fd);
		return -1;
	}
	return close(fd);
}

static int create_one(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int read_one(const char *name)
{
	char content[BYTES], back[BYTES];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, back, BYTES);
	if (close(fd) < 0 || n < 0)
		return -1;
	fill(content, name);
	return n == BYTES && memcmp(back, content, BYTES) == 0 ? 0 : wrong("the content of a file");
}

static int stat_one(const char *name)
{
	struct stat st;

	if (stat(name, &st) < 0)
		return -1;
	return st.st_size == BYTES ? 0 : wrong("the size of a file");
}

static int rename_one(const char *name)
{
	char to[NAME_BYTES + 1];

	snprintf(to, sizeof(to), "r%s", name);
	return rename(name, to);
}

static int rename_one_back(const char *name)
{
	char from[NAME_BYTES + 1];

	snprintf(from, sizeof(from), "r%s", name);
	return rename(from, name);
}

static int mkdir_one(const char *name)
{
	char folder[NAME_BYTES + 1];

	snprintf(folder, sizeof(folder), "d%s", name);
	return mkdir(folder, 0755);
}

static int rmdir_one(const char *name)
{
	char folder[NAME_BYTES + 1];

	snprintf(folder, sizeof(folder), "d%s", name);
	return rmdir(folder);
}

static const struct kind {
	const char *name;
	int (*one)(const char *name);
} kinds[] = {
	{"create", create_one},
	{"write", write_one},
	{"read", read_one},
	{"stat", stat_one},
	{"rename", rename_one},
	{"rename-back", rename_one_back},
	{"unlink", unlink},
	{"mkdir", mkdir_one},
	{"rmdir", rmdir_one},
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static int each(const struct kind *kind, unsigned n, const char *prefix)
{
	char name[NAME_BYTES];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%06u", prefix, i);
		if (kind->one(name) < 0) {
			warn("%s %s", kind->name, name);
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc >= 4 ? find_kind(argv[1]) : NULL;
	unsigned n = kind ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	const char *prefix = argc == 5 ? argv[4] : "";
	int64_t began;

	if (!n || n > 999999 || strlen(prefix) > PREFIX_MAX || argc > 5)
		errx(2, "usage: nameops KIND FOLDER FILES [PREFIX]");
	if (chdir(argv[2]) < 0)
		err(1, "%s", argv[2]);
	began = clock_ns(CLOCK_MONOTONIC);
	if (each(kind, n, prefix) < 0)
		return 1;
	printf("%.9f\n", (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9);
	return 0;
}
