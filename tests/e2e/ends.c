/* ends.c - a mapping is stored into, in the page that the file ends in, while the end moves: ends
 * CHECK FILE FILE [SECONDS]. Each mount has one of the paths. EILSEQ: the file has other bytes than
 * it was given.
 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"

enum { PAGE = 4096, LEN = 8 * PAGE };

/* The file, its handles and what it has. */
struct file {
	const char *path;
	int mapped;  /* the mapping's */
	int appends; /* opened by the same mount */
	int other;   /* by the other mount */
	char *at;
	uint64_t size;
	uint64_t known; /* to programs of the first mount */
	char bytes[LEN], now[LEN];
	unsigned n;  /* changes so far */
	bool counts; /* in the first byte of each page, all the time */
};

static int begin(struct file *f, char **args, uint64_t size, bool appends)
{
	f->path = args[0];
	f->mapped = open(args[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	memset(f->bytes, 'a', size);
	f->size = size;
	f->appends = -1;
	if (f->mapped < 0)
		return -errno;
	if (appends) {
		f->appends = open(args[0], O_WRONLY | O_APPEND | O_CLOEXEC);
		if (f->appends < 0)
			return -errno;
	}
	f->other = open(args[1], O_RDWR | O_CLOEXEC);
	f->at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, f->mapped, 0);
	if (f->other < 0 || f->at == MAP_FAILED)
		return -errno;
	return operation_write(f->mapped, f->bytes, size);
}

/* By a handle of the other mount, whose kernel caches nothing. */
static int compare(struct file *f, const char *what)
{
	ssize_t n = pread(f->other, f->now, LEN, 0);
	uint64_t i = 0;

	if (n < 0)
		return -errno;
	while (i < f->size && i < (uint64_t)n &&
		(f->now[i] == f->bytes[i] || (f->counts && i % PAGE == 0)))
		i++;
	if (i == f->size && i == (uint64_t)n)
		return 0;
	fprintf(stderr, "after %s: byte %llu of %llu, %zd read, is %02x, not %02x\n", what,
		(unsigned long long)i, (unsigned long long)f->size, n, f->now[i], f->bytes[i]);
	return -EILSEQ;
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint64_t some(uint64_t most)
{
	return (uint64_t)rand() % (most + 1);
}

static char letter(struct file *f)
{
	return (char)('b' + f->n++ % 20);
}

/* Where the next bytes go, and how many there may be. */
static uint64_t room(const struct file *f, uint64_t len)
{
	return f->size + len > LEN ? LEN - f->size : len;
}

static int append_by(struct file *f, int fd)
{
	uint64_t len = room(f, 1 + some(300));

	memset(f->bytes + f->size, letter(f), len);
	if (len && write(fd, f->bytes + f->size, len) != (ssize_t)len)
		return -errno;
	f->size += len;
	return 0;
}

static int append(struct file *f)
{
	autoclose int fd = f->appends < 0 ? open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	return append_by(f, fd < 0 ? f->appends : fd);
}

/* A handle that was not opened to append. */
static int append_from_now_on(struct file *f)
{
	int flags = fcntl(f->mapped, F_GETFL);
	int err = fcntl(f->mapped, F_SETFL, flags | O_APPEND) ? -errno : append_by(f, f->mapped);

	return fcntl(f->mapped, F_SETFL, flags) ? -errno : err;
}

static int append_elsewhere(struct file *f)
{
	uint64_t len = room(f, 1 + some(300));

	memset(f->bytes + f->size, letter(f), len);
	if (len && pwrite(f->other, f->bytes + f->size, len, (off_t)f->size) != (ssize_t)len)
		return -errno;
	f->size += len;
	return 0;
}

static int cut_by(struct file *f, int fd)
{
	uint64_t size = f->size - some(f->size > 6000 ? 6000 : f->size / 2);

	memset(f->bytes + size, 0, LEN - size);
	f->size = size;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int cut(struct file *f)
{
	return cut_by(f, f->mapped);
}

static int cut_elsewhere(struct file *f)
{
	return cut_by(f, f->other);
}

static int lengthen_by(struct file *f, int fd)
{
	f->size += room(f, some(300));
	return ftruncate(fd, (off_t)f->size) ? -errno : 0;
}

static int lengthen(struct file *f)
{
	return lengthen_by(f, f->mapped);
}

static int lengthen_elsewhere(struct file *f)
{
	return lengthen_by(f, f->other);
}

static int allocate(struct file *f)
{
	f->size += room(f, some(300));
	return f->size && fallocate(f->mapped, 0, 0, (off_t)f->size) ? -errno : 0;
}

static int write_over_end(struct file *f)
{
	uint64_t from = f->size - some(f->size < 100 ? f->size : 100);
	uint64_t len = 1 + some(300);

	len = from + len > LEN ? LEN - from : len;
	memset(f->bytes + from, letter(f), len);
	f->size = from + len > f->size ? from + len : f->size;
	if (len && pwrite(f->mapped, f->bytes + from, len, (off_t)from) != (ssize_t)len)
		return -errno;
	return 0;
}

static int copy_to_end(struct file *f)
{
	uint64_t len = room(f, some(f->size < 201 ? f->size / 2 : 200));
	off_t from = 1, to = (off_t)f->size;

	memcpy(f->bytes + f->size, f->bytes + 1, len);
	f->size += len;
	while (len) {
		ssize_t n = copy_file_range(f->mapped, &from, f->mapped, &to, len, 0);

		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		len -= (uint64_t)n;
	}
	return 0;
}

static sigjmp_buf caught;

static void catch (int sig)
{
	siglongjmp(caught, sig);
}

/* In the last page that the program knows of. */
static int store(struct file *f)
{
	uint64_t last = f->known, byte;

	if (!last)
		return 0;
	byte = (last - 1) / PAGE * PAGE + some((last - 1) % PAGE);
	if (sigsetjmp(caught, 1))
		return -EFAULT;
	f->bytes[byte] = letter(f);
	*(volatile char *)(f->at + byte) = f->bytes[byte];
	return 0;
}

static int write_back(struct file *f)
{
	return msync(f->at, LEN, MS_SYNC) ? -errno : 0;
}

static int look(struct file *f)
{
	struct stat st;

	if (fstat(f->mapped, &st))
		return -errno;
	f->known = (uint64_t)st.st_size;
	return f->known == f->size ? 0 : -ENODATA;
}

static const struct change {
	const char *name;
	int (*run)(struct file *f);
	bool known; /* the program knows the end by it */
} changes[] = {
	{"a store", store},
	{"a store more", store},
	{"msync", write_back},
	{"fstat", look},
	{"an append", append},
	{"an append by fcntl", append_from_now_on},
	{"the other's append", append_elsewhere},
	{"a cut", cut, true},
	{"the other's cut", cut_elsewhere},
	{"a longer end", lengthen, true},
	{"the other's longer end", lengthen_elsewhere},
	{"fallocate", allocate, true},
	{"a write over the end", write_over_end},
	{"a copy", copy_to_end, true},
};

/* ---- all of them ----------------------------------------------------------------------------- */

enum { HISTORY = 12 };

static void tell_history(const char *const history[HISTORY], unsigned n)
{
	for (unsigned i = n < HISTORY ? 0 : n - HISTORY; i < n; i++)
		fprintf(stderr, "%s; ", history[i % HISTORY]);
	fputc('\n', stderr);
}

/* A child stores into each page all the time, until *stop is set. */
static atomic_bool *count_in_pages(const struct file *f)
{
	atomic_bool *stop =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (stop == MAP_FAILED || !operation_begins_child())
		return stop;
	for (volatile unsigned n = 0; !atomic_load(stop); n++)
		if (!sigsetjmp(caught, 1))
			++*(volatile char *)(f->at + n % (LEN / PAGE) * PAGE);
	_exit(0);
}

static int end_counting(atomic_bool *stop)
{
	if (!stop)
		return 0;
	atomic_store(stop, true);
	return operation_wait_for(1);
}

/* Compares now and then only: a look by the other mount has all of it written back. */
static int change_all(char **args, bool appends, bool counts)
{
	static struct file f;
	const char *history[HISTORY];
	int64_t end = operation_until(args[2]);
	int err = begin(&f, args, 100, appends);
	atomic_bool *stop = NULL;
	unsigned n = 0;
	int ended;

	signal(SIGBUS, catch);
	f.known = f.size;
	f.counts = counts;
	if (!err && counts)
		stop = count_in_pages(&f);
	if (stop == MAP_FAILED)
		return -ENOMEM;
	while (!err && operation_now_ms() < end) {
		const struct change *c = &changes[some(ARRAY_SIZE(changes) - 1)];

		history[n++ % HISTORY] = c->name;
		if (f.size > LEN - 400)
			err = cut_elsewhere(&f);
		if (!err)
			err = c->run(&f);
		if (c->known || f.known > f.size)
			f.known = f.size;
		if (!err && some(5) == 0)
			err = compare(&f, c->name);
	}
	if (err)
		tell_history(history, n);
	printf("%u changes\n", n);
	ended = end_counting(stop);
	return err ? err : ended;
}

static int beside_a_handle_that_appends(char **args)
{
	return change_all(args, true, false);
}

static int beside_none(char **args)
{
	return change_all(args, false, false);
}

static int beside_one_that_stores(char **args)
{
	return change_all(args, false, true);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct operation checks[] = {
	{"beside-a-handle-that-appends", 3, beside_a_handle_that_appends},
	{"beside-none", 3, beside_none},
	{"beside-one-that-stores", 3, beside_one_that_stores},
};

int main(int argc, char **argv)
{
	return operation_main("ends", checks, ARRAY_SIZE(checks), argc, argv);
}
