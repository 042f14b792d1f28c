/* scale.c - many names in one directory, and files of many pieces: scale OPERATION ARGUMENTS...
 *
 * Names have 16 bytes. They are made in an order that is not their sorted one. Exit status 0, or 1
 * with a message on standard error.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"

enum { NAME_BYTES = 16, PAGE = 4096 };

/* An odd factor and its inverse modulo 2^64: they scatter the numbers and find them again. */
static const uint64_t scatter = 0x9e3779b97f4a7c15, gather = 0xf1de83e19937733d;

static void name_of(uint64_t n, char name[NAME_BYTES + 1])
{
	snprintf(name, NAME_BYTES + 1, "%016llx", (unsigned long long)((n + 1) * scatter));
}

static uint64_t number_of(const char *name)
{
	return strtoull(name, NULL, 16) * gather - 1;
}

static int failed(const char *what)
{
	fprintf(stderr, "scale: %s: %s\n", what, strerror(errno));
	return 1;
}

static uint64_t count_of(const char *text)
{
	return strtoull(text, NULL, 10);
}

/* ---- many names ------------------------------------------------------------------------------ */

static int create(char **args)
{
	static char page[PAGE];
	uint64_t n = count_of(args[1]);
	char name[NAME_BYTES + 1];

	if (chdir(args[0]) < 0)
		return failed(args[0]);
	for (uint64_t i = 0; i < n; i++) {
		autoclose int fd = -1;

		name_of(i, name);
		memcpy(page, name, NAME_BYTES);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || write(fd, page, PAGE) != PAGE)
			return failed(name);
	}
	return 0;
}

/* Makes empty files until that fails. */
static int names(char **args)
{
	char name[NAME_BYTES + 1];

	if ((mkdir(args[0], 0755) < 0 && errno != EEXIST) || chdir(args[0]) < 0)
		return failed(args[0]);
	for (uint64_t i = 0;; i++) {
		name_of(i, name);
		if (mknod(name, S_IFREG | 0644, 0) < 0)
			return failed(name);
	}
}

/* Lists each name once, and no other. */
static int list(char **args)
{
	uint64_t n = count_of(args[1]), seen = 0;
	DIR *dir = opendir(args[0]);
	autofree bool *listed = calloc(n, sizeof(*listed));
	struct dirent *entry;

	if (!dir || !listed)
		return failed(args[0]);
	while ((entry = readdir(dir))) {
		uint64_t number = number_of(entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		if (number >= n || listed[number]) {
			fprintf(stderr, "scale: %s is listed\n", entry->d_name);
			return 1;
		}
		listed[number] = true;
		seen++;
	}
	closedir(dir);
	printf("%llu names\n", (unsigned long long)seen);
	return seen == n ? 0 : 1;
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Looks up some of n names for the first time; prints the median in nanoseconds. */
static int look_up(char **args)
{
	uint64_t n = count_of(args[1]), times = count_of(args[2]);
	autofree uint64_t *took = calloc(times, sizeof(*took));
	char name[NAME_BYTES + 1];
	struct stat st;

	if (!took || chdir(args[0]) < 0)
		return failed(args[0]);
	for (uint64_t i = 0; i < times; i++) {
		uint64_t before = now_ns();

		name_of(i * (n / times), name);
		if (stat(name, &st) < 0 || st.st_size != PAGE)
			return failed(name);
		took[i] = now_ns() - before;
	}
	qsort(took, times, sizeof(*took), compare_times);
	printf("%llu\n", (unsigned long long)took[times / 2]);
	return 0;
}

static int remove_all(char **args)
{
	uint64_t n = count_of(args[1]);
	char name[NAME_BYTES + 1];

	if (chdir(args[0]) < 0)
		return failed(args[0]);
	for (uint64_t i = 0; i < n; i++) {
		name_of(i, name);
		if (unlink(name) < 0)
			return failed(name);
	}
	return 0;
}

/* ---- positions ------------------------------------------------------------------------------- */

struct position {
	long before;
	uint64_t number;
};

/* Returns the next of the names, and skips those that come and go. */
static bool next_number(DIR *dir, long *before, uint64_t *number)
{
	struct dirent *entry;

	do {
		*before = telldir(dir);
		entry = readdir(dir);
	} while (entry && !strchr("0123456789abcdef", entry->d_name[0]));
	if (entry)
		*number = number_of(entry->d_name);
	return entry != NULL;
}

/* A directory position leads to the same name again, even if other names came and went
 * meanwhile. */
static int seek(char **args)
{
	uint64_t n = count_of(args[1]), told = 0, number;
	autofree struct position *positions = calloc(n, sizeof(*positions));
	DIR *dir = opendir(args[0]);
	long before;

	if (!dir || !positions)
		return failed(args[0]);
	for (; next_number(dir, &before, &number); told++) {
		if (told == n)
			return failed("more names than there are");
		positions[told] = (struct position){before, number};
	}
	for (uint64_t i = 0; told && i < 1000; i++) {
		const struct position *p = &positions[i * scatter % told];

		seekdir(dir, p->before);
		if (!next_number(dir, &before, &number) || number != p->number)
			return failed("a position leads to another name");
	}
	closedir(dir);
	printf("%llu positions\n", (unsigned long long)told);
	return told == n ? 0 : 1;
}

/* ---- meanwhile ------------------------------------------------------------------------------- */

static bool input_ended(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&input, 1, 0) != 0;
}

/* Makes and removes names in a directory until standard input ends; prints their number. */
static int churn(char **args)
{
	uint64_t n = 0;
	char name[32];

	if (chdir(args[0]) < 0)
		return failed(args[0]);
	while (!input_ended()) {
		snprintf(name, sizeof(name), "other.%llu", (unsigned long long)n % 16);
		if (mkdir(name, 0755) < 0 || rmdir(name) < 0)
			return failed(name);
		if (n++ == 0) {
			puts("begun");
			fflush(stdout);
		}
	}
	printf("%llu\n", (unsigned long long)n);
	return 0;
}

/* Makes a file of n extents: it writes every other page. */
static int pieces(char **args)
{
	static char page[PAGE] = "piece";
	autoclose int fd = open(args[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	uint64_t n = count_of(args[1]);

	for (uint64_t i = 0; i < n; i++)
		if (pwrite(fd, page, PAGE, (off_t)(i * 2 * PAGE)) != PAGE)
			return failed(args[0]);
	return fsync(fd) < 0 ? failed(args[0]) : 0;
}

static const struct {
	const char *name;
	int nargs;
	int (*run)(char **args);
} operations[] = {
	{"create", 2, create},
	{"names", 1, names},
	{"list", 2, list},
	{"look-up", 3, look_up},
	{"remove", 2, remove_all},
	{"seek", 2, seek},
	{"churn", 1, churn},
	{"pieces", 2, pieces},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(operations); i++)
		if (strcmp(operations[i].name, argv[1]) == 0 && operations[i].nargs == argc - 2)
			return operations[i].run(argv + 2);
	fprintf(stderr, "scale: no such operation, or not its arguments\n");
	return 2;
}
