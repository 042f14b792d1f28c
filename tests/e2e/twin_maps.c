/* twin_maps.c - one file, mapped through two mounts: twin_maps CHECK FILE FILE [SECONDS]. EILSEQ: a
 * reader saw bytes older than allowed, or bytes were lost.
 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"

enum { PAGE = 4096, PAGES = 64, LEN = PAGES * PAGE, WORD = sizeof(uint64_t) };

/* Makes the file through one mount, of LEN zeros. */
static int make(const char *path)
{
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 || ftruncate(fd, LEN) < 0 ? -errno : 0;
}

static int map(const char *path, int flags, int kind, char **at, int *out)
{
	int prot = flags == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ;

	*at = MAP_FAILED;
	*out = open(path, flags | O_CLOEXEC);
	if (*out < 0)
		return -errno;
	*at = mmap(NULL, LEN, prot, kind, *out, 0);
	return *at == MAP_FAILED ? -errno : 0;
}

static _Atomic uint64_t *word(char *at, unsigned page, unsigned of_page)
{
	return (_Atomic uint64_t *)(void *)(at + (size_t)page * PAGE + of_page);
}

/* ---- readers beside a writer ----------------------------------------------------------------- */

/* The progress of each page, beside the file: all processes share this memory. */
struct told {
	_Atomic uint64_t begun[PAGES], done[PAGES]; /* last number, before and after its write */
	atomic_bool stop;
	_Atomic uint64_t reads, writes;
};

/* The first and the last word of a page have the number. */
static int write_number(int fd, char *at, unsigned page, uint64_t number)
{
	static _Alignas(PAGE) char bytes[PAGE];

	if (at) {
		atomic_store(word(at, page, 0), number);
		atomic_store(word(at, page, PAGE - WORD), number);
		return 0;
	}
	memcpy(bytes, &number, WORD);
	memcpy(bytes + PAGE - WORD, &number, WORD);
	return pwrite(fd, bytes, PAGE, (off_t)page * PAGE) == PAGE ? 0 : -EIO;
}

/* Writes by write(2), or by stores if at is given. */
static int write_on(struct told *told, int fd, char *at, int64_t end)
{
	int err = 0;

	while (!err && operation_now_ms() < end) {
		unsigned page = (unsigned)rand() % PAGES;
		uint64_t number = atomic_load(&told->begun[page]) + 1;

		atomic_store(&told->begun[page], number);
		err = write_number(fd, at, page, number);
		atomic_store(&told->done[page], number);
		atomic_fetch_add(&told->writes, 1);
	}
	return err;
}

static int check_word(struct told *told, char *at, unsigned page, unsigned of_page)
{
	uint64_t least = atomic_load(&told->done[page]);
	uint64_t seen = atomic_load(word(at, page, of_page));
	uint64_t most = atomic_load(&told->begun[page]);

	if (seen >= least && seen <= most)
		return 0;
	fprintf(stderr, "page %u, byte %u: %llu, and not %llu to %llu\n", page, of_page,
		(unsigned long long)seen, (unsigned long long)least, (unsigned long long)most);
	return -EILSEQ;
}

static int read_on(struct told *told, char *at)
{
	int err = 0;

	while (!err && !atomic_load(&told->stop)) {
		unsigned page = (unsigned)rand() % PAGES;

		err = check_word(told, at, page, 0);
		if (!err)
			err = check_word(told, at, page, PAGE - WORD);
		atomic_fetch_add(&told->reads, 1);
	}
	return err;
}

static void start_reader(struct told *told, const char *path, int flags, int kind, unsigned seed)
{
	char *at;
	int fd, err;

	if (!operation_begins_child())
		return;
	srand(seed);
	err = map(path, flags, kind, &at, &fd);
	_exit(-(err ? err : read_on(told, at)));
}

static struct told *share_told(void)
{
	struct told *told = mmap(
		NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return told == MAP_FAILED ? NULL : told;
}

/* Readers use both mounts, through mappings of the kind; a writer uses the first mount. */
static int beside_a_writer(char **args, int kind, bool stores)
{
	struct told *told = share_told();
	char *at = NULL; /* there is a mapping if it stores */
	int fd = -1, err, ended;

	if (!told)
		return -errno;
	err = make(args[0]);
	if (!err && stores)
		err = map(args[0], O_RDWR, MAP_SHARED, &at, &fd);
	else if (!err && (fd = open(args[0], O_WRONLY | O_CLOEXEC)) < 0)
		err = -errno;
	if (err)
		return err;
	for (unsigned i = 0; i < 4; i++)
		start_reader(told, args[i > 0], O_RDONLY, kind, i);
	err = write_on(told, fd, at, operation_until(args[2]));
	atomic_store(&told->stop, true);
	ended = operation_wait_for(4);
	printf("%llu reads, %llu writes\n", (unsigned long long)atomic_load(&told->reads),
		(unsigned long long)atomic_load(&told->writes));
	return err ? err : ended;
}

static int shared_beside_a_writer(char **args)
{
	return beside_a_writer(args, MAP_SHARED, false);
}

static int private_beside_a_writer(char **args)
{
	return beside_a_writer(args, MAP_PRIVATE, false);
}

static int shared_beside_stores(char **args)
{
	return beside_a_writer(args, MAP_SHARED, true);
}

/* ---- counting together ----------------------------------------------------------------------- */

enum { COUNTED_PAGES = 4 };

static uint64_t count_on(char *at, int fd, bool locks, int64_t end)
{
	uint64_t n = 0;

	for (; operation_now_ms() < end; n++) {
		_Atomic uint64_t *counter = word(at, (unsigned)(n % COUNTED_PAGES), 8);

		if (!locks) {
			atomic_fetch_add(counter, 1);
			continue;
		}
		flock(fd, LOCK_EX);
		atomic_store_explicit(counter,
			atomic_load_explicit(counter, memory_order_relaxed) + 1,
			memory_order_relaxed);
		flock(fd, LOCK_UN);
	}
	return n;
}

static void start_counter(
	struct told *told, const char *path, unsigned i, bool locks, const char *seconds)
{
	char *at;
	int fd, err;

	if (!operation_begins_child())
		return;
	err = map(path, O_RDWR, MAP_SHARED, &at, &fd);
	if (!err)
		atomic_store(&told->done[i], count_on(at, fd, locks, operation_until(seconds)));
	_exit(-err);
}

static int sum_of(const char *path, uint64_t *sum)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t n;

	*sum = 0;
	for (unsigned page = 0; page < COUNTED_PAGES; page++) {
		if (pread(fd, &n, sizeof(n), (off_t)page * PAGE + 8) != sizeof(n))
			return -EIO;
		*sum += n;
	}
	return 0;
}

static int count_together(char **args, bool locks)
{
	struct told *told = share_told();
	uint64_t seen, counted = 0;
	int err = told ? make(args[0]) : -errno;

	if (err)
		return err;
	for (unsigned i = 0; i < 4; i++)
		start_counter(told, args[i % 2], i, locks, args[2]);
	err = operation_wait_for(4);
	for (unsigned i = 0; i < 4; i++) {
		printf("%llu ", (unsigned long long)told->done[i]);
		counted += told->done[i];
	}
	for (unsigned i = 0; !err && i < 2; i++) {
		err = sum_of(args[i], &seen);
		if (!err && seen != counted)
			err = -EILSEQ;
	}
	return err;
}

static int count_by_locks(char **args)
{
	return count_together(args, true);
}

static int count_by_atomics(char **args)
{
	return count_together(args, false);
}

/* ---- many writers of files that the other mount uses ----------------------------------------- */

enum { CROSSED_WRITERS = 6, CROSSED_BYTES = 64 << 10 };

static int write_until(int fd, int64_t end)
{
	static char bytes[CROSSED_BYTES];

	while (operation_now_ms() < end)
		if (pwrite(fd, bytes, sizeof(bytes), rand() % 2 * CROSSED_BYTES) < 0)
			return -errno;
	return 0;
}

static int read_until(int fd, int64_t end)
{
	static char bytes[CROSSED_BYTES];

	while (operation_now_ms() < end)
		if (pread(fd, bytes, sizeof(bytes), rand() % 2 * CROSSED_BYTES) < 0)
			return -errno;
	return 0;
}

static int store_until(char *at, int64_t end)
{
	while (operation_now_ms() < end)
		atomic_fetch_add(word(at, (unsigned)rand() % PAGES, 16), 1);
	return 0;
}

static void start_crossed(const char *own, const char *other, unsigned i, const char *seconds)
{
	const char *path = i < CROSSED_WRITERS ? other : own;
	char *at;
	int fd, err;

	if (!operation_begins_child())
		return;
	srand(i);
	err = map(path, O_RDWR, MAP_SHARED, &at, &fd);
	if (!err && i < CROSSED_WRITERS)
		err = write_until(fd, operation_until(seconds));
	else if (!err && i == CROSSED_WRITERS)
		err = read_until(fd, operation_until(seconds));
	else if (!err)
		err = store_until(at, operation_until(seconds));
	_exit(-err);
}

/* Each mount reads and maps one file, and writes the file that the other mount reads and maps. A
 * mount that holds up the other for too long gets EIO. */
static int crossed(char **args)
{
	int err = 0;

	for (unsigned i = 0; !err && i < 2; i++) {
		char own[2][4096];

		for (unsigned n = 0; n < 2; n++)
			snprintf(own[n], sizeof(own[n]), "%s.%u", args[i], n);
		if (i == 0)
			err = make(own[0]);
		if (i == 0 && !err)
			err = make(own[1]);
		for (unsigned n = 0; !err && n < CROSSED_WRITERS + 2; n++)
			start_crossed(own[i], own[1 - i], n, args[2]);
	}
	return err ? err : operation_wait_for(2 * (CROSSED_WRITERS + 2));
}

/* ---- many faults on a file that the other mount stores into ---------------------------------- */

/* More threads than a thread of the mount has requests. */
enum { FAULTERS = 300, FAULTER_STACK = 64 << 10, PACE_NS = 2000000 };

struct faulter {
	char *at;
	int64_t end;
};

static void *fault_until(void *arg)
{
	const struct faulter *f = arg;

	while (operation_now_ms() < f->end) {
		atomic_load((_Atomic uint64_t *)(void *)f->at);
		nanosleep(&(struct timespec){.tv_nsec = PACE_NS}, NULL);
	}
	return NULL;
}

static int fault_together(const char *path, int64_t end)
{
	static struct faulter faulters[FAULTERS];
	pthread_t threads[FAULTERS];
	pthread_attr_t attr;
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, (size_t)FAULTERS * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	int err = 0;

	if (at == MAP_FAILED || madvise(at, (size_t)FAULTERS * PAGE, MADV_RANDOM))
		return -errno;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, FAULTER_STACK);
	for (unsigned i = 0; !err && i < FAULTERS; i++) {
		faulters[i] = (struct faulter){.at = at + (size_t)i * PAGE, .end = end};
		err = -pthread_create(&threads[i], &attr, fault_until, &faulters[i]);
	}
	for (unsigned i = 0; !err && i < FAULTERS; i++)
		err = -pthread_join(threads[i], NULL);
	return err;
}

static int store_paced(const char *path, int64_t end)
{
	char *at;
	int fd, err = map(path, O_RDWR, MAP_SHARED, &at, &fd);

	while (!err && operation_now_ms() < end) {
		atomic_fetch_add(word(at, (unsigned)rand() % PAGES, 16), 1);
		nanosleep(&(struct timespec){.tv_nsec = PACE_NS}, NULL);
	}
	return err;
}

/* Each mount stores into one file. Many of its threads read the file that the other mount stores
 * into. */
static int crossed_faults(char **args)
{
	char paths[2][2][4096];
	int err;

	for (unsigned i = 0; i < 4; i++)
		snprintf(paths[i / 2][i % 2], sizeof(paths[0][0]), "%s.%u", args[i / 2], i % 2);
	for (unsigned n = 0; n < 2; n++) {
		err = make(paths[0][n]);
		if (!err && truncate(paths[0][n], (off_t)FAULTERS * PAGE))
			err = -errno;
		if (err)
			return err;
	}
	for (unsigned i = 0; i < 4; i++) {
		int64_t end = operation_until(args[2]);

		if (!operation_begins_child())
			continue;
		err = i % 2 ? fault_together(paths[i / 2][1 - i / 2], end)
			    : store_paced(paths[i / 2][i / 2], end);
		_exit(-err);
	}
	return operation_wait_for(4);
}

/* ---- appends to a mapped file ---------------------------------------------------------------- */

enum { RECORD = 16, FILE_LIMIT = 1 << 30 };

/* The position after the append is the end that the kernel assumes. It checks RLIMIT_FSIZE by
 * that. */
static int append_record(const char *path)
{
	autoclose int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || write(fd, "fifteen letters", RECORD) != RECORD)
		return -errno;
	return lseek(fd, 0, SEEK_CUR) <= FILE_LIMIT ? 0 : -EILSEQ;
}

static int append_on(_Atomic uint64_t *n, const char *path, const char *at, int64_t end)
{
	const struct rlimit limit = {.rlim_cur = FILE_LIMIT, .rlim_max = FILE_LIMIT};
	int err = setrlimit(RLIMIT_FSIZE, &limit) ? -errno : 0;

	signal(SIGXFSZ, SIG_IGN);
	while (!err && operation_now_ms() < end) {
		if (at)
			*(const volatile char *)at;
		err = append_record(path);
		atomic_fetch_add(n, 1);
	}
	return err;
}

/* Both mounts append to the file, and one of them has it mapped. */
static int append_to_mapped(char **args)
{
	struct told *told = share_told();
	struct stat st;
	char *at;
	int fd, err;

	if (!told)
		return -errno;
	err = make(args[0]);
	if (!err)
		err = map(args[0], O_RDONLY, MAP_PRIVATE, &at, &fd);
	if (err)
		return err;
	for (unsigned i = 0; i < 2; i++) {
		if (!operation_begins_child())
			continue;
		err = append_on(&told->done[i], args[i], i ? NULL : at, operation_until(args[2]));
		_exit(-err);
	}
	err = operation_wait_for(2);
	printf("%llu and %llu records\n", (unsigned long long)told->done[0],
		(unsigned long long)told->done[1]);
	if (!err && stat(args[0], &st))
		err = -errno;
	if (!err && (uint64_t)st.st_size != LEN + (told->done[0] + told->done[1]) * RECORD)
		err = -EILSEQ;
	return err;
}

/* ---- one after the other --------------------------------------------------------------------- */

static int stored_is_read(char **args)
{
	autoclose int fd = -1, reader = -1;
	struct stat before, after;
	char *at, byte;
	int err = make(args[0]);

	if (!err)
		err = map(args[0], O_RDWR, MAP_SHARED, &at, &fd);
	if (err)
		return err;
	reader = open(args[1], O_RDONLY | O_CLOEXEC);
	if (reader < 0 || fstat(reader, &before) < 0)
		return -errno;
	for (unsigned i = 0; i < 100; i++) {
		at[i * 1000] = (char)('a' + i % 26);
		if (pread(reader, &byte, 1, i * 1000) != 1)
			return -EIO;
		if (byte != (char)('a' + i % 26))
			return -EILSEQ;
	}
	if (fstat(reader, &after) < 0)
		return -errno;
	return after.st_mtim.tv_sec > before.st_mtim.tv_sec ||
			       after.st_mtim.tv_nsec > before.st_mtim.tv_nsec
		       ? 0
		       : -ETIME;
}

/* Stores through one mount's mapping and loads through the other's, by turns. */
static int in_turn(char **args)
{
	autoclose int first = -1, second = -1;
	char *at[2];
	int err = make(args[0]);

	if (!err)
		err = map(args[0], O_RDWR, MAP_SHARED, &at[0], &first);
	if (!err)
		err = map(args[1], O_RDWR, MAP_SHARED, &at[1], &second);
	for (unsigned i = 0; !err && i < 1000; i++) {
		unsigned page = (unsigned)rand() % PAGES;
		uint64_t before = atomic_load(word(at[i % 2], page, 0));

		atomic_store(word(at[i % 2], page, 0), before + i);
		if (atomic_load(word(at[1 - i % 2], page, 0)) != before + i)
			err = -EILSEQ;
	}
	return err;
}

static sigjmp_buf caught;

static void catch (int sig)
{
	siglongjmp(caught, sig);
}

/* Is the byte there? SIGBUS means that it is not. */
static bool is_there(const char *at, size_t offset)
{
	if (sigsetjmp(caught, 1))
		return false;
	*(const volatile char *)(at + offset);
	return true;
}

static int expect(const char *at, size_t offset, bool there, char byte)
{
	if (is_there(at, offset) != there) {
		fprintf(stderr, "byte %zu is %s\n", offset, there ? "missing" : "there");
		return -EILSEQ;
	}
	return there && at[offset] != byte ? -EILSEQ : 0;
}

/* The other mount truncates the file and makes it grow. */
static int cut_by_the_other(char **args)
{
	autoclose int fd = -1, other = -1;
	char *at;
	int err = make(args[0]);

	signal(SIGBUS, catch);
	if (!err)
		err = map(args[0], O_RDWR, MAP_SHARED, &at, &fd);
	if (err)
		return err;
	other = open(args[1], O_RDWR | O_CLOEXEC);
	memset(at, 'x', LEN);
	for (size_t pages = PAGES - 2; !err && pages > 7; pages -= 7) {
		if (ftruncate(other, (off_t)pages * PAGE) < 0)
			return -errno;
		err = expect(at, pages * PAGE, false, 0);
		if (!err)
			err = expect(at, pages * PAGE - 1, true, 'x');
		if (!err && pwrite(other, "y", 1, (off_t)(pages + 1) * PAGE) != 1)
			err = -errno;
		if (!err)
			err = expect(at, (pages + 1) * PAGE, true, 'y');
		if (!err)
			err = expect(at, pages * PAGE, true, 0);
	}
	return err;
}

/* The kernel was told that the mapped file has no end. A truncate to that far end must set it. */
static int grown_far(char **args)
{
	const off_t far = (off_t)1 << 48;
	autoclose int fd = -1, other = -1;
	struct stat st;
	char *at;
	int err = make(args[0]);

	if (!err)
		err = map(args[0], O_RDWR, MAP_SHARED, &at, &fd);
	if (!err)
		err = expect(at, 0, true, 0);
	if (err)
		return err;
	other = open(args[1], O_RDWR | O_CLOEXEC);
	if (pwrite(other, "y", 1, 0) != 1 || ftruncate(fd, far) < 0 || fstat(other, &st) < 0)
		return -errno;
	return st.st_size == far ? 0 : -EIO;
}

/* ---------------------------------------------------------------------------------------------- */

static const struct operation checks[] = {
	{"shared-beside-a-writer", 3, shared_beside_a_writer},
	{"private-beside-a-writer", 3, private_beside_a_writer},
	{"shared-beside-stores", 3, shared_beside_stores},
	{"count-by-locks", 3, count_by_locks},
	{"count-by-atomics", 3, count_by_atomics},
	{"crossed", 3, crossed},
	{"crossed-faults", 3, crossed_faults},
	{"append-to-mapped", 3, append_to_mapped},
	{"stored-is-read", 2, stored_is_read},
	{"in-turn", 2, in_turn},
	{"cut-by-the-other", 2, cut_by_the_other},
	{"grown-far", 2, grown_far},
};

int main(int argc, char **argv)
{
	return operation_main("twin_maps", checks, ARRAY_SIZE(checks), argc, argv);
}
