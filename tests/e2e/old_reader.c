/* old_reader.c - reads a file by handles that were open before another mount came, which changes it:
 * old_reader read FILE FILE SECONDS. The second path is the other mount's. EILSEQ: a read that no
 * change overlapped gave other bytes than the file has, or the kernel went on to show zeros behind
 * its end. Changes pause now and then, so that this would be seen.
 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"

enum { PAGE = 4096, LEN = 64 * PAGE };

/* The file as it is when `done` and `begun` are the same. No byte of it is zero. */
struct contents {
	_Atomic uint64_t begun, done; /* changes */
	atomic_bool stop;
	_Atomic uint64_t reads;
	uint64_t size;
	char bytes[LEN];
};

static int make(struct contents *c, const char *path)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	memset(c->bytes, 'x', LEN);
	c->size = LEN;
	return fd < 0 ? -errno : operation_write(fd, c->bytes, LEN);
}

enum { CHANGE_PAUSE_NS = 300000, LONG_PAUSE_NS = 200000000, ZEROS_MS = 100 };

/* Overwrites, appends, cuts or grows. */
static int change(struct contents *c, int fd)
{
	uint64_t from = (uint64_t)rand() % (c->size + 1), len = 1 + (uint64_t)rand() % (3 * PAGE);
	char byte = (char)(1 + rand() % 255);

	if (rand() % 3 == 0) {
		c->size = from;
		return ftruncate(fd, (off_t)from) ? -errno : 0;
	}
	if (rand() % 2)
		from = c->size;
	if (from + len > LEN)
		len = LEN - from;
	memset(c->bytes + from, byte, len);
	c->size = from + len > c->size ? from + len : c->size;
	return pwrite(fd, c->bytes + from, len, (off_t)from) == (ssize_t)len ? 0 : -EIO;
}

static int change_on(struct contents *c, const char *path, int64_t end)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	srand(1);
	while (!err && operation_now_ms() < end) {
		atomic_fetch_add(&c->begun, 1);
		err = change(c, fd);
		atomic_fetch_add(&c->done, 1);
		nanosleep(&(struct timespec){.tv_nsec = CHANGE_PAUSE_NS}, NULL);
		if (rand() % 200 == 0)
			nanosleep(&(struct timespec){.tv_nsec = LONG_PAUSE_NS}, NULL);
	}
	return err;
}

enum read_result { AS_IT_IS, CHANGED_MEANWHILE, ZEROS_BEHIND, WRONG };

/* Compares what was read from an offset on. The kernel may have shown zeros behind the end. */
static enum read_result compare(
	const struct contents *c, uint64_t from, const char *bytes, uint64_t n)
{
	static const char zeros[LEN];
	uint64_t there = c->size > from ? c->size - from : 0;

	if (n < there || memcmp(bytes, c->bytes + from, there) != 0)
		return WRONG;
	if (n == there)
		return AS_IT_IS;
	return memcmp(bytes + there, zeros, n - there) == 0 ? ZEROS_BEHIND : WRONG;
}

/* Says nothing of a read while which the file was changed. */
static int read_once(struct contents *c, int fd, uint64_t from, enum read_result *result)
{
	static char bytes[LEN];
	uint64_t done = atomic_load(&c->done);
	ssize_t n = pread(fd, bytes, LEN - from, (off_t)from);

	if (n < 0)
		return -errno;
	*result = compare(c, from, bytes, (uint64_t)n);
	if (atomic_load(&c->begun) != done)
		*result = CHANGED_MEANWHILE;
	else
		atomic_fetch_add(&c->reads, 1);
	return 0;
}

/* Zeros may be shown for a moment. */
static int check_read(struct contents *c, int fd)
{
	uint64_t from = (uint64_t)rand() % LEN;
	int64_t end = operation_now_ms() + ZEROS_MS;
	enum read_result result;
	int err;

	do
		err = read_once(c, fd, from, &result);
	while (!err && result == ZEROS_BEHIND && operation_now_ms() < end);
	if (err || result == AS_IT_IS || result == CHANGED_MEANWHILE)
		return err;
	fprintf(stderr, "from byte %llu on: %s\n", (unsigned long long)from,
		result == WRONG ? "other bytes" : "zeros behind the end");
	return -EILSEQ;
}

static int check_reads(struct contents *c, int fd)
{
	int err = 0;

	while (!err && !atomic_load(&c->stop))
		err = check_read(c, fd);
	return err;
}

/* Fills the cache, says so, and waits until the other mount has the file. */
static int have_read(int fd, const char *other)
{
	static char bytes[LEN];

	if (fd < 0 || pread(fd, bytes, LEN, 0) != LEN)
		return -EIO;
	puts("open");
	fflush(stdout);
	while (access(other, F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return 0;
}

/* The other mount comes when the file is open. */
static int read_by_old_handles(char **args)
{
	struct contents *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	autoclose int fd = -1;
	int err = c == MAP_FAILED ? -errno : make(c, args[0]), ended;

	if (err)
		return err;
	fd = open(args[0], O_RDONLY | O_CLOEXEC);
	err = have_read(fd, args[1]);
	if (err)
		return err;
	for (unsigned i = 0; i < 3; i++) {
		if (!operation_begins_child())
			continue;
		srand(i);
		_exit(-check_reads(c, fd));
	}
	err = change_on(c, args[1], operation_until(args[2]));
	atomic_store(&c->stop, true);
	ended = operation_wait_for(3);
	printf("%llu reads, %llu changes\n", (unsigned long long)c->reads,
		(unsigned long long)c->done);
	return err ? err : ended;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct operation operations[] = {
	{"read", 3, read_by_old_handles},
};

int main(int argc, char **argv)
{
	return operation_main("old_reader", operations, ARRAY_SIZE(operations), argc, argv);
}
