/* mapping.c - what a shared mapping, read(2) and write(2), through the page cache and past it, see
 * of each other: mapping CHECK FILE, on a file that is not there yet.
 *
 * Exit status 0; or 1 with the errno's name on standard error: EILSEQ where bytes are wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

enum { PAGE = 4096, PAGES = 8, LEN = PAGES * PAGE, ROUNDS = 50 };

/* What direct I/O takes and gives. */
static _Alignas(PAGE) char aligned[LEN];

/* A file's bytes in round n: no two rounds or pages have the same. */
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

/* The file's bytes at `at` are those of buf. */
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

/* NULL, with errno, on failure. */
static char *map(int fd, int prot, int kind)
{
	char *at = mmap(NULL, LEN, prot, kind, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static char *map_shared(int fd)
{
	return map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
}

/* ---- one handle ------------------------------------------------------------------------------ */

static int written_is_mapped(const char *path)
{
	autoclose int fd = -1;
	char want[LEN], *at;
	int err = make(path, O_RDWR, &fd);

	at = err ? NULL : map_shared(fd);
	if (!at)
		return err ? err : -errno;
	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		pattern(want, LEN, n);
		err = put(fd, want, LEN, 0);
		if (!err)
			err = equal(at, want, LEN);
	}
	return err;
}

static int stored_is_read(const char *path)
{
	autoclose int fd = -1;
	char want[LEN], *at;
	int err = make(path, O_RDWR, &fd);

	at = err ? NULL : map_shared(fd);
	if (!at)
		return err ? err : -errno;
	for (unsigned n = 0; !err && n < ROUNDS; n++) {
		pattern(want, LEN, n);
		memcpy(at, want, LEN);
		if (n % 2 && msync(at, LEN, MS_SYNC) < 0)
			return -errno;
		err = same(fd, want, LEN, 0);
	}
	return err;
}

/* A store and a write of the same page, neither of which may undo the other. */
static int store_and_write_share_a_page(const char *path)
{
	autoclose int fd = -1;
	char want[LEN] = {0}, *at;
	int err = make(path, O_RDWR, &fd);

	at = err ? NULL : map_shared(fd);
	if (!at)
		return err ? err : -errno;
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

/* The first handle writes only, the second one, opened beside it with flags, is mapped. */
static int beside(const char *path, int flags, int first, int prot)
{
	autoclose int writer = -1, mapped = -1;
	static _Alignas(PAGE) char want[LEN];
	char *at;
	int err = make(path, first, &writer);

	if (!err)
		err = open_again(path, flags, &mapped);
	at = err ? NULL : map(mapped, prot, MAP_SHARED);
	if (!at)
		return err ? err : -errno;
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

static int mapped_beside_a_writer(const char *path)
{
	return beside(path, O_RDWR, O_WRONLY, PROT_READ | PROT_WRITE);
}

static int mapped_for_reading_beside_a_writer(const char *path)
{
	return beside(path, O_RDONLY, O_WRONLY, PROT_READ);
}

static int mapped_beside_a_direct_writer(const char *path)
{
	return beside(path, O_RDWR, O_WRONLY | O_DIRECT, PROT_READ | PROT_WRITE);
}

/* Each writes a round, and all of them read it. */
static int direct_and_buffered(const char *path)
{
	autoclose int buffered = -1, direct = -1, writer = -1;
	static _Alignas(PAGE) char want[LEN];
	int err = make(path, O_RDWR, &buffered);

	if (!err)
		err = open_again(path, O_RDWR | O_DIRECT, &direct);
	if (!err)
		err = open_again(path, O_WRONLY, &writer);
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

/* What one appends the other finds in its mapping, once the file is as long. */
static int appended_is_mapped(const char *path)
{
	autoclose int writer = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	autoclose int mapped = -1;
	char want[LEN], *at;
	struct stat st;
	int err;

	if (writer < 0)
		return -errno;
	err = open_again(path, O_RDONLY, &mapped);
	at = err ? NULL : map(mapped, PROT_READ, MAP_SHARED);
	if (!at)
		return err ? err : -errno;
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

/* Whether touching the byte raises SIGBUS. */
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

static int truncated_under_a_mapping(const char *path)
{
	static const char zeros[LEN];
	autoclose int fd = -1;
	char *at;
	int err = make(path, O_RDWR, &fd);

	at = err ? NULL : map_shared(fd);
	if (!at)
		return err ? err : -errno;
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

static int private_is_nobody_elses(const char *path)
{
	autoclose int fd = -1;
	char want[LEN], *at, *shared;
	int err = make(path, O_RDWR, &fd);

	pattern(want, LEN, 1);
	if (!err)
		err = put(fd, want, LEN, 0);
	at = err ? NULL : map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	if (!at)
		return err ? err : -errno;
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
	shared = err ? NULL : map_shared(fd);
	return shared ? equal(shared, "new", 3) : err;
}

/* ---- memory that is full --------------------------------------------------------------------- */

/* Stores into each page of a file that is all holes, as long as a MiB. msync(2) says whether there
 * was memory for it; what it says must hold. */
static int stored_into_holes(const char *path)
{
	enum { LONG = 1 << 20 };
	autoclose int fd = -1;
	char *at;

	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, LONG) < 0)
		return -errno;
	at = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	memset(at, 'h', LONG);
	return msync(at, LONG, MS_SYNC) < 0 ? -errno : 0;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*run)(const char *path);
} checks[] = {
	{"written-is-mapped", written_is_mapped},
	{"stored-is-read", stored_is_read},
	{"store-and-write-share-a-page", store_and_write_share_a_page},
	{"mapped-beside-a-writer", mapped_beside_a_writer},
	{"mapped-for-reading-beside-a-writer", mapped_for_reading_beside_a_writer},
	{"mapped-beside-a-direct-writer", mapped_beside_a_direct_writer},
	{"direct-and-buffered", direct_and_buffered},
	{"appended-is-mapped", appended_is_mapped},
	{"truncated-under-a-mapping", truncated_under_a_mapping},
	{"private-is-nobody-elses", private_is_nobody_elses},
	{"stored-into-holes", stored_into_holes},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(checks); i++) {
		int err;

		if (strcmp(checks[i].name, argv[1]) != 0)
			continue;
		err = checks[i].run(argv[2]);
		if (err)
			fprintf(stderr, "mapping: %s\n", strerrorname_np(-err));
		return err ? 1 : 0;
	}
	fprintf(stderr, "mapping: no such check, or not its arguments\n");
	return 2;
}
