/* syscalls_io.c - the other ways to move bytes, and hints about them. */
#include "syscalls.h"

#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static void vectors(void)
{
	/* volatile: the compiler must not know the values. */
	volatile int negative = -1, too_many = 1025;
	char a[4] = "", b[8] = "";
	struct iovec out[3] = {{(char *)"one", 3}, {NULL, 0}, {(char *)"two", 3}};
	struct iovec in[2] = {{a, 3}, {b, 8}};
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	equal(writev(fd, out, 3), 6);
	equal(pwritev(fd, out, 3, 6), 6);
	equal(preadv(fd, in, 2, 1), 11);
	same(a, "net");
	equal(memcmp(b, "woonetwo", 8), 0);
	equal(lseek(fd, 0, SEEK_CUR), 6);
	fails(writev(fd, out, negative), EINVAL);
	fails(readv(fd, in, too_many), EINVAL);
	equal(writev(fd, out, 0), 0);
}

static void flags_of_one_call(void)
{
	char buf[8] = "";
	struct iovec out = {(char *)"text", 4}, in = {buf, 8};
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	equal(pwritev2(fd, &out, 1, 0, RWF_DSYNC), 4);
	equal(pwritev2(fd, &out, 1, 0, RWF_SYNC), 4);
	equal(pwritev2(fd, &out, 1, 0, RWF_APPEND), 4);
	equal(pwritev2(fd, &out, 1, -1, RWF_HIPRI), 4);
	equal(preadv2(fd, &in, 1, 0, RWF_HIPRI), 8);
	equal(memcmp(buf, "texttext", 8), 0);
	fails(preadv2(fd, &in, 1, 0, 0x40000000), EOPNOTSUPP);
	fails(pwritev2(fd, &out, 1, 0, 0x40000000), EOPNOTSUPP);
}

/* RWF_NOWAIT returns bytes at once, or says that it would wait, or that it is not supported. */
static void no_wait(void)
{
	char buf[8] = "";
	struct iovec in = {buf, 4};
	ssize_t n;
	int fd;

	make("f", "text");
	fd = (int)works(open("f", O_RDONLY));
	same(text_of_fd(fd), "text");
	n = preadv2(fd, &in, 1, 0, RWF_NOWAIT);
	if (n < 0)
		holds(errno == EAGAIN || errno == EOPNOTSUPP);
	else
		same(buf, "text");
}

static void send_a_file(void)
{
	off_t at = 2;
	int from, to;

	make("f", "0123456789");
	from = (int)works(open("f", O_RDONLY));
	to = (int)works(open("g", O_RDWR | O_CREAT, 0644));
	equal(sendfile(to, from, &at, 5), 5);
	equal(at, 7);
	same(text_of("g"), "23456");
	equal(sendfile(to, from, NULL, 100), 10);
	same(text_of("g"), "234560123456789");
	equal(sendfile(to, from, NULL, 100), 0);
}

static void splices(void)
{
	loff_t at = 3;
	int ends[2], more[2], fd;
	char buf[16] = "";

	make("f", "0123456789");
	fd = (int)works(open("f", O_RDWR));
	works(pipe(ends));
	works(pipe(more));
	equal(splice(fd, &at, ends[1], NULL, 4, 0), 4);
	equal(tee(ends[0], more[1], 4, 0), 4);
	equal(read(more[0], buf, sizeof(buf)), 4);
	same(buf, "3456");
	at = 8;
	equal(splice(ends[0], NULL, fd, &at, 4, 0), 4);
	same(text_of("f"), "012345673456");
	equal(vmsplice(ends[1], &(struct iovec){(char *)"pages", 5}, 1, 0), 5);
	at = 0;
	equal(splice(ends[0], NULL, fd, &at, 5, SPLICE_F_MOVE), 5);
	same(text_of("f"), "pages5673456");
	fails(splice(fd, NULL, fd, NULL, 4, 0), EINVAL);
}

static void hints(void)
{
	int ends[2];
	int fd;

	make("f", "0123456789");
	fd = (int)works(open("f", O_RDWR));
	for (int advice = POSIX_FADV_NORMAL; advice <= POSIX_FADV_NOREUSE; advice++)
		equal(posix_fadvise(fd, 0, 0, advice), 0);
	equal(posix_fadvise(fd, 0, 0, 77), EINVAL);
	works(readahead(fd, 0, 4096));
	works(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
	fails(sync_file_range(fd, 0, 0, 0x100), EINVAL);
	fails(sync_file_range(fd, -1, 0, 0), EINVAL);
	works(pipe(ends));
	equal(posix_fadvise(ends[0], 0, 0, POSIX_FADV_NORMAL), ESPIPE);
	fails(readahead(ends[0], 0, 10), EINVAL);
	same(text_of("f"), "0123456789");
}

static void syncing(void)
{
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	equal(write(fd, "text", 4), 4);
	works(fdatasync(fd));
	works(fsync(fd));
	works(syncfs(fd));
	works(fsync((int)works(open("f", O_RDONLY))));
	works(fsync((int)works(open(".", O_RDONLY | O_DIRECTORY))));
	fails(fsync(99), EBADF);
	fails(syncfs(99), EBADF);
}

static void ioctls(void)
{
	struct fsxattr attributes;
	long flags = 0;
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	fails(ioctl(fd, FS_IOC_GETFLAGS, &flags), ENOTTY);
	flags = FS_IMMUTABLE_FL;
	fails(ioctl(fd, FS_IOC_SETFLAGS, &flags), ENOTTY);
	fails(ioctl(fd, FS_IOC_FSGETXATTR, &attributes), ENOTTY);
	fails(ioctl(fd, _IO('x', 99), 0), ENOTTY);
	fails(ioctl((int)works(open(".", O_RDONLY)), FS_IOC_GETFLAGS, &flags), ENOTTY);
}

struct handle {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static void handles(void)
{
	struct handle handle = {.head.handle_bytes = 0};
	int mount_id;

	make("f", "");
	fails(name_to_handle_at(AT_FDCWD, "f", &handle.head, &mount_id, 0), EOVERFLOW);
	handle.head.handle_bytes = MAX_HANDLE_SZ;
	works(name_to_handle_at(AT_FDCWD, "f", &handle.head, &mount_id, 0));
	fails(name_to_handle_at(AT_FDCWD, "missing", &handle.head, &mount_id, 0), ENOENT);
}

/* A handle opens a file that is open; the handle of a file that is gone is stale. */
static void opens_by_handle(void)
{
	struct handle handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	int here = (int)works(open(".", O_RDONLY)), fd, mount_id;

	make("f", "by handle");
	fd = (int)works(open("f", O_RDONLY));
	works(name_to_handle_at(AT_FDCWD, "f", &handle.head, &mount_id, 0));
	same(text_of_fd((int)works(open_by_handle_at(here, &handle.head, O_RDONLY))), "by handle");
	works(close(fd));
	memset(handle.bytes, 0x5a, handle.head.handle_bytes);
	fails(open_by_handle_at(here, &handle.head, O_RDONLY), ESTALE);
}

/* Handles of directories work, too. A symbolic link's handle can't be opened. */
static void handles_of_every_type(void)
{
	static const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR};
	struct handle handle;
	int mount_id, fd;

	works(mkdir("d", 0755));
	works(symlink("d", "l"));
	make("d/f", "text");
	for (const char *path = "d"; path; path = path[1] ? NULL : *path == 'd' ? "l" : "d/f") {
		handle.head.handle_bytes = MAX_HANDLE_SZ;
		works(name_to_handle_at(AT_FDCWD, path, &handle.head, &mount_id, 0));
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			if (*path == 'l')
				fails(open_by_handle_at(AT_FDCWD, &handle.head, flags[i]), ELOOP);
			else if (path[1] || flags[i] == O_RDONLY)
				works(open_by_handle_at(AT_FDCWD, &handle.head, flags[i]));
			else
				fails(open_by_handle_at(AT_FDCWD, &handle.head, flags[i]), EISDIR);
	}
	fd = (int)works(open("d", O_PATH));
	handle.head.handle_bytes = MAX_HANDLE_SZ;
	works(name_to_handle_at(fd, "", &handle.head, &mount_id, AT_EMPTY_PATH));
	fd = (int)works(open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY | O_DIRECTORY));
	same(text_of_fd((int)works(openat(fd, "f", O_RDONLY))), "text");
}

/* ---- leases and signals of changes ----------------------------------------------------------- */

/* Waits for SIGIO, which is blocked. */
static void expect_signal(void)
{
	static const struct timespec limit = {.tv_sec = 20};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	equal(works(sigtimedwait(&set, NULL, &limit)), SIGIO);
}

static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	works(sigprocmask(SIG_BLOCK, &set, NULL));
}

static void breaks_by_reading(void *arg)
{
	same(text_of("f"), "text");
}

static void breaks_by_truncating(void *arg)
{
	works(truncate("f", 4));
}

static void breaks_by_writing(void *arg)
{
	works(open("f", O_RDWR));
}

static void leases(void)
{
	static const struct {
		int lease;
		void (*breaks)(void *arg);
	} conflicts[] = {
		{F_WRLCK, breaks_by_reading},
		{F_WRLCK, breaks_by_writing},
		{F_WRLCK, breaks_by_truncating},
		{F_RDLCK, breaks_by_writing},
		{F_RDLCK, breaks_by_truncating},
	};
	int fd, other;

	block_signal();
	make("f", "text");
	fd = (int)works(open("f", O_RDONLY));
	for (size_t i = 0; i < ARRAY_SIZE(conflicts); i++) {
		pid_t pid;

		works(fcntl(fd, F_SETLEASE, conflicts[i].lease));
		equal(fcntl(fd, F_GETLEASE), conflicts[i].lease);
		pid = child(conflicts[i].breaks, NULL);
		expect_signal();
		works(fcntl(fd, F_SETLEASE, F_UNLCK));
		finished(pid);
	}
	other = (int)works(open("f", O_RDONLY));
	fails(fcntl(fd, F_SETLEASE, F_WRLCK), EAGAIN);
	works(fcntl(fd, F_SETLEASE, F_RDLCK));
	works(close(other));
	other = (int)works(open("f", O_RDONLY));
	works(fcntl(fd, F_SETLEASE, F_UNLCK));
	works(close(other));
	works(close(fd));
	fd = (int)works(open("f", O_WRONLY));
	fails(fcntl(fd, F_SETLEASE, F_RDLCK), EAGAIN);
}

static void signals_of_changes(void)
{
	int fd;

	block_signal();
	works(mkdir("d", 0755));
	fd = (int)works(open("d", O_RDONLY));
	works(fcntl(fd, F_NOTIFY, DN_CREATE));
	make("d/f", "");
	expect_signal();
	works(fcntl(fd, F_NOTIFY, DN_MODIFY));
	make("d/f", "text");
	expect_signal();
	works(fcntl(fd, F_NOTIFY, DN_ATTRIB));
	works(chmod("d/f", 0600));
	expect_signal();
	works(fcntl(fd, F_NOTIFY, DN_RENAME));
	works(rename("d/f", "d/g"));
	expect_signal();
	works(fcntl(fd, F_NOTIFY, DN_DELETE));
	works(unlink("d/g"));
	expect_signal();
	fails(fcntl((int)works(open("g", O_RDWR | O_CREAT, 0644)), F_NOTIFY, DN_CREATE), ENOTDIR);
}

/* ---- past the page cache --------------------------------------------------------------------- */

/* Moves whole pages between the file and the caller's memory. */
static void direct(void)
{
	_Alignas(4096) static char page[8192], back[8192];
	int fd = (int)works(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644));

	memset(page, 'd', sizeof(page));
	equal(write(fd, page, sizeof(page)), sizeof(page));
	equal(pread(fd, back, 4096, 4096), 4096);
	equal(memcmp(page, back, 4096), 0);
	equal(pread(fd, back, 8192, 4096), 4096);
	works(ftruncate(fd, 5000));
	equal(pread(fd, back, 8192, 0), 5000);
	equal(pread(fd, back, 4096, 8192), 0);
}

/* All ways of reading and writing see the same bytes. */
static void direct_and_cached(void)
{
	_Alignas(4096) static char page[4096];
	int direct = (int)works(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644));
	int cached = (int)works(open("f", O_RDWR));

	for (int c = 'a'; c < 'h'; c++) {
		char seen = 0;

		memset(page, c, sizeof(page));
		equal(pwrite(direct, page, sizeof(page), 0), sizeof(page));
		equal(pread(cached, &seen, 1, 77), 1);
		equal(seen, c);
		equal(pwrite(cached, "X", 1, 99), 1);
		equal(pread(direct, page, sizeof(page), 0), sizeof(page));
		equal(page[99], 'X');
		equal(page[98], c);
	}
}

static const struct syscall_case table[] = {
	{"readv and writev", vectors},
	{"preadv2 and pwritev2 with flags", flags_of_one_call},
	{"RWF_NOWAIT", no_wait},
	{"sendfile", send_a_file},
	{"splice, tee and vmsplice", splices},
	{"posix_fadvise, readahead, sync_file_range", hints},
	{"fsync, fdatasync, syncfs", syncing},
	{"ioctls that no filesystem has to know", ioctls, .differs = "tmpfs keeps such flags"},
	{"name_to_handle_at", handles},
	{"open_by_handle_at", opens_by_handle, NEEDS_ROOT},
	{"handles of directories and symbolic links", handles_of_every_type, NEEDS_ROOT},
	{"leases are broken", leases},
	{"F_NOTIFY", signals_of_changes},
	{"O_DIRECT", direct},
	{"O_DIRECT and the page cache, side by side", direct_and_cached},
};
SYSCALL_AREA(area_io, table);
