/* mapping.c - what a shared mapping, read(2) and write(2) see of each other, through the page cache
 * and past it: mapping CHECK FILE. FILE must not exist. EILSEQ: wrong bytes.
 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "async.h"
#include "common/base/util.h"

enum { PAGE = 4096, PAGES = 8, LEN = PAGES * PAGE, ROUNDS = 50 };

/* Direct I/O reads into it and writes from it. */
static _Alignas(PAGE) char aligned[LEN];

/* Makes a file's bytes of round n: no two rounds or pages have the same. */
static void pattern(char *buf, size_t len, unsigned n)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (char)(n * 37 + i / PAGE * 11 + i % 251);
}

static int put(int fd, const char *buf, size_t len, off_t at)
{
	ssize_t n = pwrite(fd, buf, len, at);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ENOSPC;
}

/* Compares the file's bytes at `at` with buf. */
static int same(int fd, const char *buf, size_t len, off_t at)
{
	ssize_t n = pread(fd, aligned, len, at);

	if (n < 0)
		return -errno;
	return (size_t)n == len && memcmp(aligned, buf, len) == 0 ? 0 : -EILSEQ;
}

static int equal(const char *a, const char *b, size_t len)
{
	return memcmp(a, b, len) == 0 ? 0 : -EILSEQ;
}

/* Makes the file, of LEN zeros, and opens it. */
static int make(const char *path, int flags, int *out)
{
	int fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	*out = fd;
	return ftruncate(fd, LEN) < 0 ? -errno : 0;
}

static int open_again(const char *path, int flags, int *out)
{
	*out = open(path, flags | O_CLOEXEC);
	return *out < 0 ? -errno : 0;
}

static int map(int fd, int prot, int kind, char **out)
{
	*out = mmap(NULL, LEN, prot, kind, fd, 0);
	return *out == MAP_FAILED ? -errno : 0;
}

static int map_shared(int fd, char **out)
{
	return map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, out);
}

static int make_mapped(const char *path, int *fd, char **at)
{
	int err = make(path, O_RDWR, fd);

	return err ? err : map_shared(*fd, at);
}

/* ---- one handle ------------------------------------------------------------------------------ */

static int written_is_mapped(char **args)
{
	autoclose int fd = -1;
	char want[LEN], *at = NULL;
	int err = make_mapped(args[0], &fd, &at);

	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		pattern(want, LEN, n);
		err = put(fd, want, LEN, 0);
		if (!err)
			err = equal(at, want, LEN);
	}
	return err;
}

static int stored_is_read(char **args)
{
	autoclose int fd = -1;
	char want[LEN], *at = NULL;
	int err = make_mapped(args[0], &fd, &at);

	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		pattern(want, LEN, n);
		memcpy(at, want, LEN);
		if (n % 2 && msync(at, LEN, MS_SYNC) < 0)
			return -errno;
		err = same(fd, want, LEN, 0);
	}
	return err;
}

/* A store and a write of the same page: neither may undo the other. */
static int store_and_write_share_a_page(char **args)
{
	autoclose int fd = -1;
	char want[LEN] = {0}, *at = NULL;
	int err = make_mapped(args[0], &fd, &at);

	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		size_t stored = n * 70, written = stored + 35;

		memset(want + stored, 's', 30);
		memset(at + stored, 's', 30);
		memset(want + written, 'w', 30);
		err = put(fd, want + written, 30, (off_t)written);
		if (!err)
			err = equal(at, want, LEN);
	}
	if (!err && msync(at, LEN, MS_SYNC) < 0)
		err = -errno;
	return err ? err : same(fd, want, LEN, 0);
}

/* ---- two handles ----------------------------------------------------------------------------- */

/* The first handle only writes. The second one, opened with flags, is mapped. */
static int beside(const char *path, int flags, int first, int prot)
{
	autoclose int writer = -1, mapped = -1;
	static _Alignas(PAGE) char want[LEN];
	char *at = NULL;
	int err = make(path, first, &writer);

	if (!err)
		err = open_again(path, flags, &mapped);
	if (!err)
		err = map(mapped, prot, MAP_SHARED, &at);
	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		pattern(want, LEN, n);
		err = put(writer, want, LEN, 0);
		if (!err)
			err = equal(at, want, LEN);
		if (!err)
			err = same(mapped, want, LEN, 0);
		if (err || !(prot & PROT_WRITE))
			continue;
		pattern(want, PAGE, n + 1);
		memcpy(at, want, PAGE);
		err = msync(at, LEN, MS_SYNC) < 0 ? -errno : same(mapped, want, LEN, 0);
	}
	return err;
}

static int mapped_beside_a_writer(char **args)
{
	return beside(args[0], O_RDWR, O_WRONLY, PROT_READ | PROT_WRITE);
}

static int mapped_for_reading_beside_a_writer(char **args)
{
	return beside(args[0], O_RDONLY, O_WRONLY, PROT_READ);
}

static int mapped_beside_a_direct_writer(char **args)
{
	return beside(args[0], O_RDWR, O_WRONLY | O_DIRECT, PROT_READ | PROT_WRITE);
}

/* Each handle writes a round, and all of them read it. */
static int direct_and_buffered(char **args)
{
	autoclose int buffered = -1, direct = -1, writer = -1;
	static _Alignas(PAGE) char want[LEN];
	int err = make(args[0], O_RDWR, &buffered);

	if (!err)
		err = open_again(args[0], O_RDWR | O_DIRECT, &direct);
	if (!err)
		err = open_again(args[0], O_WRONLY, &writer);
	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		const int writers[] = {buffered, direct, writer};

		pattern(want, LEN, n);
		err = put(writers[n % 3], want, LEN, 0);
		if (!err)
			err = same(buffered, want, LEN, 0);
		if (!err)
			err = same(direct, want, LEN, 0);
	}
	return err;
}

/* ---- asynchronous direct writes -------------------------------------------------------------- */

enum { MANY_PAGES = 160, MANY = MANY_PAGES * PAGE, ASYNC_MS = 500, TOUCHERS = 2 };

static _Alignas(PAGE) char many[2][MANY], seen[MANY];

/* Brings pages of the file into the cache again and again until it is killed: by read(2), or
 * through the mapping. */
static void touch(int fd, volatile const char *at)
{
	for (;;) {
		if (!at && pread(fd, seen, MANY, 0) < 0)
			return;
		for (unsigned page = 0; at && page < MANY_PAGES; page++)
			(void)at[(size_t)page * PAGE];
	}
}

static int start_touching(pid_t pids[TOUCHERS], int fd, const char *at)
{
	for (unsigned i = 0; i < TOUCHERS; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return -errno;
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		touch(fd, at);
		_exit(1);
	}
	return 0;
}

static void end_touching(const pid_t pids[TOUCHERS])
{
	for (unsigned i = 0; i < TOUCHERS && pids[i] > 0; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Writes a round, and finds it by read(2) of fd or in the mapping. */
static int write_and_look(struct async *async, int direct, int fd, const char *at, unsigned n)
{
	ssize_t r =
		async_run(async, ASYNC_AIO, true, direct, (uint8_t *)many[n % 2], MANY, 0, PAGE);

	if (r != MANY)
		return r < 0 ? (int)r : -ENOSPC;
	if (at)
		return equal(at, many[n % 2], MANY);
	r = pread(fd, seen, MANY, 0);
	return r < 0 ? -errno : equal(seen, many[n % 2], MANY);
}

static int async_beside(int direct, int fd, const char *at)
{
	int64_t until = now_ms() + ASYNC_MS;
	pid_t pids[TOUCHERS] = {0};
	struct async async;
	int err = async_init(&async, ASYNC_PIECES);

	if (err)
		return err;
	err = start_touching(pids, fd, at);
	for (unsigned n = 1; !err && (n < 4 || now_ms() < until); n++)
		err = write_and_look(&async, direct, fd, at, n);
	end_touching(pids);
	async_fini(&async);
	return err;
}

static int make_many(const char *path, int flags, int *fd)
{
	int err = make(path, flags, fd);

	pattern(many[0], MANY, 1);
	pattern(many[1], MANY, 2);
	return err ? err : put(*fd, many[0], MANY, 0);
}

static int async_beside_readers(char **args)
{
	autoclose int buffered = -1, direct = -1;
	int err = make_many(args[0], O_RDWR, &buffered);

	if (!err)
		err = open_again(args[0], O_RDWR | O_DIRECT, &direct);
	return err ? err : async_beside(direct, buffered, NULL);
}

static int async_beside_a_mapping(char **args)
{
	autoclose int direct = -1;
	int err = make_many(args[0], O_RDWR | O_DIRECT, &direct);
	char *at = MAP_FAILED;

	if (!err)
		at = mmap(NULL, MANY, PROT_READ, MAP_SHARED, direct, 0);
	if (!err && at == MAP_FAILED)
		err = -errno;
	return err ? err : async_beside(direct, direct, at);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* One handle appends. The other finds the bytes in its mapping once the file is that long. */
static int appended_is_mapped(char **args)
{
	autoclose int writer =
		open(args[0], O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	autoclose int mapped = -1;
	char want[LEN], *at = NULL;
	struct stat st;
	int err;

	if (writer < 0)
		return -errno;
	err = open_again(args[0], O_RDONLY, &mapped);
	if (!err)
		err = map(mapped, PROT_READ, MAP_SHARED, &at);
	pattern(want, LEN, 1);
	for (size_t have = 0; !err && have < LEN; have += 512) {
		if (write(writer, want + have, 512) != 512 || fstat(mapped, &st) < 0)
			return -errno;
		err = (size_t)st.st_size == have + 512 ? equal(at, want, have + 512) : -ENODATA;
	}
	return err;
}

/* ---- truncation ------------------------------------------------------------------------------ */

static sigjmp_buf fault;

static void faulted(int signal)
{
	siglongjmp(fault, 1);
}

/* Does touching the byte raise SIGBUS? */
static bool is_beyond(const volatile char *at)
{
	bool beyond = true;

	signal(SIGBUS, faulted);
	if (!sigsetjmp(fault, 1)) {
		(void)*at;
		beyond = false;
	}
	signal(SIGBUS, SIG_DFL);
	return beyond;
}

static int truncated_under_a_mapping(char **args)
{
	static const char zeros[LEN];
	autoclose int fd = -1;
	char *at = NULL;
	int err = make_mapped(args[0], &fd, &at);

	if (err)
		return err;
	memset(at, 'x', LEN);
	if (ftruncate(fd, PAGE + 100) < 0)
		return -errno;
	if (is_beyond(at + PAGE + 100) || !is_beyond(at + 2 * PAGE))
		return -EFAULT;
	if (ftruncate(fd, LEN) < 0)
		return -errno;
	err = is_beyond(at + LEN - 1) ? -EFAULT : equal(at + PAGE + 100, zeros, LEN - PAGE - 100);
	return err ? err : same(fd, zeros, LEN - PAGE - 100, PAGE + 100);
}

/* ---- private mappings ------------------------------------------------------------------------ */

static int private_is_nobody_elses(char **args)
{
	autoclose int fd = -1;
	char want[LEN], *at = NULL;
	int err = make(args[0], O_RDWR, &fd);

	pattern(want, LEN, 1);
	if (!err)
		err = put(fd, want, LEN, 0);
	if (!err)
		err = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE, &at);
	if (!err)
		err = equal(at, want, LEN);
	if (err)
		return err;
	memset(at, 'p', PAGE);
	if (fsync(fd) < 0)
		return -errno;
	err = same(fd, want, LEN, 0);
	if (!err)
		err = put(fd, "new", 3, 0);
	if (!err && at[0] != 'p')
		err = -EILSEQ;
	return err ? err : same(fd, "new", 3, 0);
}

/* ---- memory that is full --------------------------------------------------------------------- */

/* Stores into each page of a file of a MiB of holes. If msync(2) reports success, the bytes must be
 * in the file. */
static int stored_into_holes(char **args)
{
	enum { LONG = 1 << 20 };
	autoclose int fd = -1;
	char *at = NULL;

	fd = open(args[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, LONG) < 0)
		return -errno;
	at = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	memset(at, 'h', LONG);
	return msync(at, LONG, MS_SYNC) < 0 ? -errno : 0;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct operation checks[] = {
	{"written-is-mapped", 1, written_is_mapped},
	{"stored-is-read", 1, stored_is_read},
	{"store-and-write-share-a-page", 1, store_and_write_share_a_page},
	{"mapped-beside-a-writer", 1, mapped_beside_a_writer},
	{"mapped-for-reading-beside-a-writer", 1, mapped_for_reading_beside_a_writer},
	{"mapped-beside-a-direct-writer", 1, mapped_beside_a_direct_writer},
	{"direct-and-buffered", 1, direct_and_buffered},
	{"async-beside-readers", 1, async_beside_readers},
	{"async-beside-a-mapping", 1, async_beside_a_mapping},
	{"appended-is-mapped", 1, appended_is_mapped},
	{"truncated-under-a-mapping", 1, truncated_under_a_mapping},
	{"private-is-nobody-elses", 1, private_is_nobody_elses},
	{"stored-into-holes", 1, stored_into_holes},
};

int main(int argc, char **argv)
{
	return operation_main("mapping", checks, ARRAY_SIZE(checks), argc, argv);
}
