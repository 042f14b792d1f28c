/* crowd.c - one of many clients that work at once: crowd FOLDER THREADS
 *
 * Each thread works in a folder of its own until standard input ends. It creates, writes, reads and
 * compares files, renames and removes them. At the end crowd prints the number of operations of all
 * threads. Exit status 0, or 1 with a message on standard error.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS_MAX = 64, BYTES = 10000, FILES = 8 };

struct worker {
	pthread_t thread;
	unsigned number;
	uint64_t operations;
	int folder;
};

static atomic_bool ended;

static void fill(const struct worker *w, uint64_t round, uint8_t bytes[BYTES])
{
	for (unsigned i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(round + 31 * w->number + i * i);
}

static void write_file(struct worker *w, const char *name, uint64_t round)
{
	int fd = openat(w->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint8_t bytes[BYTES];

	fill(w, round, bytes);
	if (fd < 0 || write(fd, bytes, BYTES) != BYTES || close(fd) < 0)
		err(1, "thread %u: writing %s", w->number, name);
}

static void read_file(struct worker *w, const char *name, uint64_t round)
{
	int fd = openat(w->folder, name, O_RDONLY | O_CLOEXEC);
	uint8_t want[BYTES], got[BYTES + 1];
	ssize_t n;

	if (fd < 0)
		err(1, "thread %u: opening %s", w->number, name);
	n = read(fd, got, sizeof(got));
	close(fd);
	fill(w, round, want);
	if (n != BYTES || memcmp(want, got, BYTES) != 0)
		errx(1, "thread %u: %s has other bytes, or not %d (%zd)", w->number, name, BYTES,
			n);
}

static void look(struct worker *w, const char *name)
{
	struct stat st;

	if (fstatat(w->folder, name, &st, 0) < 0 || st.st_size != BYTES)
		err(1, "thread %u: looking at %s", w->number, name);
}

static void work(struct worker *w, uint64_t round)
{
	char name[32], other[32];

	snprintf(name, sizeof(name), "file.%" PRIu64, round % FILES);
	snprintf(other, sizeof(other), "moved.%" PRIu64, round % FILES);
	write_file(w, name, round);
	look(w, name);
	read_file(w, name, round);
	if (renameat(w->folder, name, w->folder, other) < 0)
		err(1, "thread %u: renaming %s", w->number, name);
	read_file(w, other, round);
	if (unlinkat(w->folder, other, 0) < 0)
		err(1, "thread %u: removing %s", w->number, other);
	w->operations += 6;
}

static void *run(void *arg)
{
	struct worker *w = arg;

	for (uint64_t round = 0; !atomic_load(&ended); round++)
		work(w, round);
	return NULL;
}

static int make_folder(const char *path, unsigned number)
{
	char folder[4096];
	int fd;

	snprintf(folder, sizeof(folder), "%s/%u", path, number);
	if (mkdir(folder, 0700) < 0)
		err(1, "%s", folder);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", folder);
	return fd;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	unsigned n = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	uint64_t operations = 0;
	char byte;

	if (!n || n > THREADS_MAX)
		errx(2, "crowd FOLDER THREADS");
	for (unsigned i = 0; i < n; i++) {
		workers[i] = (struct worker){.number = i, .folder = make_folder(argv[1], i)};
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			errx(1, "no thread");
	}
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	atomic_store(&ended, true);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		operations += workers[i].operations;
	}
	printf("%" PRIu64 "\n", operations);
	return 0;
}
