/* syscalls_truncate.c - truncate(2) and ftruncate(2), sparse files, and the largest offsets. */
#include "syscalls.h"

#include <limits.h>
#include <signal.h>
#include <sys/resource.h>

static void sizes(void)
{
	static const off_t list[] = {10, 0, 1, 4095, 4096, 4097, 1 << 20, (1 << 20) - 1, 3, 3};

	make("f", "0123456789");
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		works(truncate("f", list[i]));
		equal(size_of("f"), list[i]);
	}
}

/* Bytes that were cut off are zeros when the file grows again. */
static void zeros_come_back(void)
{
	char buf[10000], zeros[10000] = "";
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	memset(buf, 'x', sizeof(buf));
	equal(write(fd, buf, sizeof(buf)), sizeof(buf));
	works(ftruncate(fd, 5000));
	works(ftruncate(fd, sizeof(buf)));
	equal(pread(fd, buf, sizeof(buf), 0), sizeof(buf));
	holds(buf[4999] == 'x' && memcmp(buf + 5000, zeros, 5000) == 0);
	works(ftruncate(fd, 0));
	works(ftruncate(fd, sizeof(buf)));
	equal(pread(fd, buf, sizeof(buf), 0), sizeof(buf));
	holds(memcmp(buf, zeros, sizeof(buf)) == 0);
}

static void beyond_the_end(void)
{
	char buf[8] = "xxxxxxx";
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	equal(pwrite(fd, "end", 3, 100000), 3);
	equal(size_of("f"), 100003);
	equal(pread(fd, buf, sizeof(buf), 99999), 4);
	holds(buf[0] == 0 && memcmp(buf + 1, "end", 3) == 0);
	equal(pread(fd, buf, sizeof(buf), 50000), sizeof(buf));
	holds(memcmp(buf, (char[8]){0}, 8) == 0);
	equal(pread(fd, buf, sizeof(buf), 100003), 0);
	equal(pread(fd, buf, sizeof(buf), LLONG_MAX - 8), 0);
}

static void errors(void)
{
	make("f", "kept");
	works(mkdir("d", 0755));
	fails(truncate("f", -1), EINVAL);
	fails(truncate("f", LLONG_MIN), EINVAL);
	fails(truncate("d", 0), EISDIR);
	fails(ftruncate((int)works(open("f", O_RDONLY)), 0), EINVAL);
	fails(ftruncate(99, 0), EBADF);
	fails(ftruncate((int)works(open("f", O_RDWR)), -1), EINVAL);
	same(text_of("f"), "kept");
}

static void largest_offset(void)
{
	char c = 0;
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	works(ftruncate(fd, LLONG_MAX));
	equal(size_of("f"), LLONG_MAX);
	equal(pwrite(fd, "z", 1, LLONG_MAX - 1), 1);
	equal(pread(fd, &c, 1, LLONG_MAX - 1), 1);
	equal(c, 'z');
	fails(pwrite(fd, "z", 1, LLONG_MAX), EINVAL);
	equal(pread(fd, &c, 1, LLONG_MAX - 4096), 1);
	equal(c, 0);
	equal(lseek(fd, 0, SEEK_END), LLONG_MAX);
	fails(lseek(fd, 1, SEEK_END), EINVAL);
	equal(pwrite(fd, "m", 1, (off_t)1 << 62), 1);
	works(fsync(fd));
	works(ftruncate(fd, ((off_t)1 << 62) + 1));
	equal(pread(fd, &c, 1, (off_t)1 << 62), 1);
	equal(c, 'm');
	works(ftruncate(fd, 0));
	equal(size_of("f"), 0);
}

/* RLIMIT_FSIZE: the bytes below the limit are written. */
static void file_size_limit(void)
{
	const struct rlimit limit = {10000, 10000};
	char buf[20000];
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	memset(buf, 'x', sizeof(buf));
	signal(SIGXFSZ, SIG_IGN);
	works(setrlimit(RLIMIT_FSIZE, &limit));
	equal(write(fd, buf, sizeof(buf)), 10000);
	fails(write(fd, buf, 1), EFBIG);
	fails(ftruncate(fd, 10001), EFBIG);
	fails(truncate("f", 20000), EFBIG);
	works(ftruncate(fd, 10000));
	works(ftruncate(fd, 5));
	equal(size_of("f"), 5);
}

/* A reader of another descriptor sees it at once. */
static void seen_by_others(void)
{
	int one = (int)works(open("f", O_RDWR | O_CREAT, 0644));
	int two = (int)works(open("f", O_RDONLY));

	equal(write(one, "0123456789", 10), 10);
	same(text_of_fd(two), "0123456789");
	works(ftruncate(one, 4));
	same(text_of_fd(two), "0123");
	works(truncate("f", 6));
	equal(pread(two, (char[10]){0}, 10, 0), 6);
	equal(pwrite(one, "x", 1, 7), 1);
	equal(pread(two, (char[10]){0}, 10, 0), 8);
}

static void blocks(void)
{
	struct stat st;
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	works(ftruncate(fd, 1 << 30));
	works(fstat(fd, &st));
	equal(st.st_blocks, 0);
	equal(pwrite(fd, "x", 1, 1 << 20), 1);
	works(fstat(fd, &st));
	equal(st.st_blocks, 8);
	equal(pwrite(fd, "x", 1, (1 << 20) + 4095), 1);
	works(fstat(fd, &st));
	equal(st.st_blocks, 8);
	works(ftruncate(fd, 100));
	works(fstat(fd, &st));
	equal(st.st_blocks, 0);
}

static const struct syscall_case table[] = {
	{"sizes up and down", sizes},
	{"what comes back are zeros", zeros_come_back},
	{"writing and reading beyond the end", beyond_the_end},
	{"sizes that can't be, and files that have none", errors},
	{"the largest offset", largest_offset},
	{"the process's limit", file_size_limit},
	{"other descriptors see it", seen_by_others},
	{"blocks are counted by page", blocks},
};
SYSCALL_AREA(area_truncate, table);
