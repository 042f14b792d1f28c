/* fsop.c - file operations that no shell command does: see operation.h. */
#include "operation.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/util.h"

static int rename_noreplace(char **args)
{
	return renameat2(AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* chown(2) that changes neither user nor group. */
static int chown_nothing(char **args)
{
	return chown(args[0], (uid_t)-1, (gid_t)-1) < 0 ? -errno : 0;
}

static int fchown_nothing(char **args)
{
	autoclose int fd = open(args[0], O_RDONLY | O_CLOEXEC);

	return fd < 0 || fchown(fd, (uid_t)-1, (gid_t)-1) < 0 ? -errno : 0;
}

static int rename_exchange(char **args)
{
	return renameat2(AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_EXCHANGE) < 0 ? -errno : 0;
}

/* ---- one more name, in every way: for a new inode or an old one ------------------------------ */

static int make_file(char **args)
{
	autoclose int fd = open(args[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : 0;
}

static int make_directory(char **args)
{
	return mkdir(args[1], 0700) < 0 ? -errno : 0;
}

static int make_fifo(char **args)
{
	return mkfifo(args[1], 0600) < 0 ? -errno : 0;
}

static int make_symlink(char **args)
{
	return symlink("target", args[1]) < 0 ? -errno : 0;
}

static int make_long_symlink(char **args)
{
	char target[4000];

	memset(target, 't', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	return symlink(target, args[1]) < 0 ? -errno : 0;
}

static int make_link(char **args)
{
	return link(args[0], args[1]) < 0 ? -errno : 0;
}

/* Prints the offset that lseek(2) returns. */
static int seek(const char *path, const char *from, int whence)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t at;

	if (fd < 0)
		return -errno;
	at = lseek(fd, strtoll(from, NULL, 10), whence);
	if (at < 0)
		return -errno;
	printf("%lld\n", (long long)at);
	return 0;
}

static int seek_data(char **args)
{
	return seek(args[0], args[1], SEEK_DATA);
}

static int seek_hole(char **args)
{
	return seek(args[0], args[1], SEEK_HOLE);
}

/* A file without a name still can be written and read. */
static int unlinked(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	static char data[300000];
	struct stat st;
	int err;

	if (fd < 0 || unlink(args[0]) < 0)
		return -errno;
	operation_pattern(data, sizeof(data));
	err = operation_write(fd, data, sizeof(data));
	if (!err)
		err = operation_compare(fd, data, sizeof(data));
	if (!err && (fstat(fd, &st) < 0 || st.st_nlink != 0 || st.st_size != sizeof(data)))
		err = -ESTALE;
	return err;
}

/* Writes through a shared mapping, and finds the bytes in the file after msync. */
static int map_shared(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum { LEN = 3 * 4096 + 17 };
	char *map;
	int err;

	if (fd < 0 || ftruncate(fd, LEN) < 0)
		return -errno;
	map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	memset(map, 'm', LEN);
	err = msync(map, LEN, MS_SYNC) < 0 ? -errno : operation_compare(fd, map, LEN);
	munmap(map, LEN);
	return err;
}

static bool all_zero(const uint8_t *at, size_t len)
{
	while (len && !*at) {
		at++;
		len--;
	}
	return !len;
}

/* Bytes stored into a mapping and not synced disappear with the hole, and all others stay. */
static int map_punch(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);
	size_t from = strtoul(args[1], NULL, 10), len = strtoul(args[2], NULL, 10);
	size_t whole = from + 2 * len;
	uint8_t *map;
	int err = 0;

	if (fd < 0)
		return -errno;
	map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	memset(map, 'd', whole);
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)len) < 0)
		err = -errno;
	else if (!all_zero(map + from, len) || map[from - 1] != 'd' || map[from + len] != 'd')
		err = -EILSEQ;
	else
		err = operation_compare(fd, (const char *)map, whole);
	munmap(map, whole);
	return err;
}

/* Stores a byte into a shared mapping at the offset, and syncs it. */
static int map_store(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);
	off_t at = (off_t)strtoll(args[1], NULL, 10);
	char *map;
	int err;

	if (fd < 0)
		return -errno;
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at & ~(off_t)4095);
	if (map == MAP_FAILED)
		return -errno;
	map[at & 4095] = 's';
	err = msync(map, 4096, MS_SYNC) < 0 ? -errno : 0;
	munmap(map, 4096);
	return err;
}

/* For each line stores its letter into byte 1, and prints byte 0. */
static int map_and_answer(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);
	volatile char *map;
	char line[16];

	if (fd < 0)
		return -errno;
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	while (fgets(line, sizeof(line), stdin)) {
		map[1] = line[0];
		printf("%c\n", map[0]);
		fflush(stdout);
	}
	return 0;
}

/* Appends each line of its input, by a handle that was not opened for that, and says so. */
static int append_by_fcntl(char **args)
{
	autoclose int fd = open(args[0], O_WRONLY | O_CLOEXEC);
	char line[64];

	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0)
		return -errno;
	while (fgets(line, sizeof(line), stdin)) {
		if (write(fd, line, strlen(line)) < 0)
			return -errno;
		puts("appended");
		fflush(stdout);
	}
	return 0;
}

static int map_when_told(int fd, off_t at)
{
	volatile char *map;
	char line[16];

	if (fd < 0)
		return -errno;
	puts("open");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return -EIO;
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at & ~(off_t)4095);
	if (map == MAP_FAILED)
		return -errno;
	printf("%c\n", map[at % 4096]);
	map[at % 4096] = 's';
	return 0;
}

/* Maps the file when a line of input comes, prints a byte of it, and stores another one there. */
static int map_later(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);

	return map_when_told(fd, atoll(args[1]));
}

static sigjmp_buf behind_end;

static void jump_back(int signal)
{
	siglongjmp(behind_end, signal);
}

/* Waits until the byte of a mapping is there: the kernel may learn of it just now. */
static int wait_for_byte(const volatile char *at)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	volatile unsigned left = 500;

	signal(SIGBUS, jump_back);
	if (sigsetjmp(behind_end, 1)) {
		if (!left--)
			return -EFAULT;
		nanosleep(&moment, NULL);
	}
	return *at;
}

/* The same, of a file that is made empty first. The first page is read before. */
static int map_cut(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_TRUNC | O_CLOEXEC);
	volatile const char *map;
	char line[16];

	if (fd < 0 || write(fd, "c", 1) != 1)
		return -errno;
	puts("cut");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return -EIO;
	map = mmap(NULL, (size_t)atoll(args[1]) + 1, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	printf("%c", map[0]);
	printf("%c\n", wait_for_byte(&map[atoll(args[1])]));
	return 0;
}

/* Makes a file without a name in a directory, and gives it one when a line of input comes. */
static int link_later(char **args)
{
	autoclose int fd = open(args[0], O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	char path[32], line[16];

	if (fd < 0 || write(fd, "named\n", 6) != 6 || !fgets(line, sizeof(line), stdin))
		return fd < 0 ? -errno : -EIO;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, args[1], AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Prints a word, then stores into a mapped page without end: the page is never clean for long. */
static int map_and_store_on(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);
	char *map;

	if (fd < 0)
		return -errno;
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	map[0] = 's';
	puts("stored");
	fflush(stdout);
	for (;;) {
		usleep(1000);
		*(volatile char *)map = 's';
	}
}

/* Copies len bytes from one offset to another, and prints how many the kernel has copied. */
static int copy_range(char **args)
{
	autoclose int from = open(args[0], O_RDONLY | O_CLOEXEC);
	autoclose int to = open(args[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	off_t in = strtoll(args[1], NULL, 10), out = strtoll(args[3], NULL, 10);
	size_t left = strtoul(args[4], NULL, 10), done = 0;
	ssize_t n;

	if (from < 0 || to < 0)
		return -errno;
	while ((n = copy_file_range(from, &in, to, &out, left - done, 0)) > 0)
		done += (size_t)n;
	if (n < 0)
		return -errno;
	printf("%zu\n", done);
	return 0;
}

/* Opens a file, prints a word, and reads the file to its end once standard input ends. */
/* As programs do that copy to the end of a file, wherever that is. */
static int send_all(char **args)
{
	autoclose int from = open(args[0], O_RDONLY | O_CLOEXEC);
	autoclose int to = open(args[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n;

	if (from < 0 || to < 0)
		return -errno;
	do
		n = sendfile(to, from, NULL, 8 << 20);
	while (n > 0);
	return n < 0 ? -errno : 0;
}

static int hold(char **args)
{
	autoclose int fd = open(args[0], O_RDONLY | O_CLOEXEC);
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (operation_write(STDOUT_FILENO, buf, (size_t)n) < 0)
			return -EIO;
	return n < 0 ? -errno : 0;
}

/* Makes so many files in a folder, writes a byte to each, and keeps them open while it syncs the
 * folder. */
static int make_kept(char **args)
{
	autoclose int dir = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned long n = strtoul(args[1], NULL, 10);
	char name[32];

	if (dir < 0)
		return -errno;
	for (unsigned long i = 0; i < n; i++) {
		int fd;

		snprintf(name, sizeof(name), "kept.%lu", i);
		/* The end of the process closes it. */
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || operation_write(fd, "x", 1) < 0)
			return -errno;
	}
	return fsync(dir) < 0 ? -errno : 0;
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Each kind of lock has ten bytes of its own, or the whole file. */
static int lock_bytes(int fd, int cmd, off_t start)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = start, .l_len = 10};

	return fcntl(fd, cmd, &lock);
}

/* Takes a lock of each kind, prints a word, and keeps them until standard input ends. */
static int hold_locks(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char buf[64];

	if (fd < 0 || flock(fd, LOCK_EX) < 0 || lock_bytes(fd, F_SETLK, 0) < 0 ||
		lock_bytes(fd, F_OFD_SETLK, 10) < 0)
		return -errno;
	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	return 0;
}

/* Prints how many of these locks can't be taken. */
static int count_locks(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	printf("%d\n", (flock(fd, LOCK_EX | LOCK_NB) < 0) + (lock_bytes(fd, F_SETLK, 0) < 0) +
			       (lock_bytes(fd, F_OFD_SETLK, 10) < 0));
	return 0;
}

/* Waits for the record lock of a process. */
static int wait_for_lock(char **args)
{
	autoclose int fd = open(args[0], O_RDWR | O_CLOEXEC);

	return fd < 0 || lock_bytes(fd, F_SETLKW, 0) < 0 ? -errno : 0;
}

static void count_alarm(int signal)
{
	(void)signal;
}

/* Sends SIGALRM every 10 ms, to a handler without SA_RESTART. */
static int have_alarms(void)
{
	struct itimerval every = {{0, 10000}, {0, 10000}};
	struct sigaction action = {.sa_handler = count_alarm};

	return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &every, NULL) ? -errno
											 : 0;
}

/* Does the same, and handles a signal all the time. */
static int wait_for_lock_alarmed(char **args)
{
	int err = have_alarms();

	return err ? err : wait_for_lock(args);
}

static int work_once(int dir, const char *from, const char *to)
{
	char back[16] = "";
	struct stat st;
	int fd = openat(dir, from, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (pwrite(fd, "some bytes", 10, 0) != 10 || fsync(fd) || fstat(fd, &st) ||
		pread(fd, back, sizeof(back), 0) != 10 || strcmp(back, "some bytes") != 0 ||
		close(fd) || renameat(dir, from, dir, to) || mkdirat(dir, from, 0700) ||
		unlinkat(dir, from, AT_REMOVEDIR) || unlinkat(dir, to, 0))
		return errno ? -errno : -EIO;
	return 0;
}

/* Works on the files of a directory and handles a signal all the time, until the current directory
 * has a file "enough". */
static int work_on_alarmed(char **args)
{
	autoclose int dir = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char from[32], to[32];
	int err = dir < 0 ? -errno : have_alarms();

	snprintf(from, sizeof(from), "from.%d", getpid());
	snprintf(to, sizeof(to), "to.%d", getpid());
	while (!err && access("enough", F_OK) != 0)
		err = work_once(dir, from, to);
	return err;
}

/* Prints the results of write, fsync and close. */
static void print_ends(int fd, int err)
{
	printf("write %s\n", strerrorname_np(-err));
	printf("fsync %s\n", fsync(fd) ? strerrorname_np(errno) : "0");
	printf("close %s\n", close(fd) ? strerrorname_np(errno) : "0");
}

/* Writes the source's bytes into the target again and again until that fails, then prints all
 * results. Each round appends its bytes, or writes them over those before. */
static int write_until_it_fails(char **args, bool follow)
{
	autoclose int from = open(args[0], O_RDONLY | O_CLOEXEC);
	int to = open(args[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600), err = 0;
	char buf[4096];
	off_t at = 0;

	if (from < 0 || to < 0)
		return -errno;
	while (!err) {
		ssize_t n = pread(from, buf, sizeof(buf), at);

		if (n < 0)
			return -errno;
		if (!n && !follow && lseek(to, 0, SEEK_SET) < 0)
			return -errno;
		at = n ? at + n : 0;
		err = operation_write(to, buf, (size_t)n);
	}
	print_ends(to, err);
	return 0;
}

static int fill(char **args)
{
	return write_until_it_fails(args, true);
}

static int write_on(char **args)
{
	return write_until_it_fails(args, false);
}

/* Changes the first byte of a file and waits for its storage, as args[1] says. Before it closes the
 * file it kills a process, as the machine of both might die. */
static int overwrite_and_kill(char **args)
{
	struct iovec byte = {(char *)"x", 1};
	bool once = strcmp(args[1], "once") == 0;
	int flags = strcmp(args[1], "dsync") == 0  ? O_DSYNC
		    : strcmp(args[1], "sync") == 0 ? O_SYNC
						   : 0;
	autoclose int fd = open(args[0], O_WRONLY | O_CLOEXEC | flags);

	if (fd < 0 || pwritev2(fd, &byte, 1, 0, once ? RWF_DSYNC : 0) != 1)
		return -errno;
	return kill((pid_t)atoi(args[2]), SIGKILL) < 0 ? -errno : 0;
}

static void await_line(void)
{
	int c;

	do {
		c = getchar();
	} while (c != '\n' && c != EOF);
}

static void print_fsync(const char *who, int fd)
{
	printf("%s %s\n", who, fsync(fd) ? strerrorname_np(errno) : "0");
}

/* Opens a file twice to write and once to read. After one line of standard input it writes through
 * the first handle. After another line it prints the results: of the reader's close, of fsync on
 * both writers, twice each, and of fsync on a handle that it opens then. */
static int tells_each(char **args)
{
	int first = open(args[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int second = open(args[0], O_RDWR | O_CLOEXEC), third;
	int reader = open(args[0], O_RDONLY | O_CLOEXEC);

	if (first < 0 || second < 0 || reader < 0)
		return -errno;
	puts("open");
	fflush(stdout);
	await_line();
	if (write(first, "written\n", 8) != 8)
		return -errno;
	await_line();
	printf("reader %s\n", close(reader) ? strerrorname_np(errno) : "0");
	for (unsigned i = 0; i < 2; i++) {
		print_fsync("first", first);
		print_fsync("second", second);
	}
	third = open(args[0], O_RDWR | O_CLOEXEC);
	print_fsync("third", third);
	return close(first) || close(second) || close(third) ? -errno : 0;
}

static int read_and_print(int fd, off_t at, size_t len)
{
	char text[64] = "";
	ssize_t n = pread(fd, text, min_u64(len, sizeof(text) - 1), at);

	if (n >= 0)
		printf("%s ", text);
	return n < 0 ? -1 : 0;
}

static int print_size(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -1;
	printf("%lld ", (long long)st.st_size);
	return 0;
}

static int become(uint32_t id)
{
	if (geteuid() && seteuid(0))
		return -1;
	return setgroups(0, NULL) || setegid(id) || seteuid(id) ? -1 : 0;
}

static int set_mtime(int fd, time_t seconds)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds}};

	return futimens(fd, times);
}

/* Sets rw- for the owner, all rights for one named user, and none for others; user < 0 removes the
 * list. */
static int set_list(int fd, const char *name, long long user)
{
	const struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[5];
	} list = {{htole32(POSIX_ACL_XATTR_VERSION)},
		{{htole16(ACL_USER_OBJ), htole16(6), htole32(ACL_UNDEFINED_ID)},
			{htole16(ACL_USER), htole16(7), htole32((uint32_t)user)},
			{htole16(ACL_GROUP_OBJ), 0, htole32(ACL_UNDEFINED_ID)},
			{htole16(ACL_MASK), htole16(7), htole32(ACL_UNDEFINED_ID)},
			{htole16(ACL_OTHER), 0, htole32(ACL_UNDEFINED_ID)}}};

	return user < 0 ? fremovexattr(fd, name) : fsetxattr(fd, name, &list, sizeof(list), 0);
}

static int do_step_of_owners(int fd, const char *verb, off_t at, const char *text)
{
	if (strcmp(verb, "user") == 0)
		return become((uint32_t)at);
	if (strcmp(verb, "owner") == 0)
		return fchown(fd, (uid_t)at, (gid_t)strtol(text, NULL, 10));
	if (strcmp(verb, "mode") == 0)
		return fchmod(fd, (mode_t)strtoul(text, NULL, 8));
	if (strcmp(verb, "access") == 0)
		return set_list(fd, "system.posix_acl_access", at);
	if (strcmp(verb, "default") == 0)
		return set_list(fd, "system.posix_acl_default", at);
	return strcmp(verb, "mtime") == 0 ? set_mtime(fd, at) : futimens(fd, NULL);
}

static bool is_of_owners(const char *verb)
{
	static const char *const verbs[] = {
		"user", "owner", "mode", "access", "default", "mtime", "now"};

	for (unsigned i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verb, verbs[i]) == 0)
			return true;
	return false;
}

static int open_any(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 && errno == EISDIR ? open(path, O_RDONLY | O_CLOEXEC) : fd;
}

static int do_step(int fd, const char *verb, off_t at, const char *text)
{
	if (is_of_owners(verb))
		return do_step_of_owners(fd, verb, at, text);
	if (strcmp(verb, "write") == 0)
		return pwrite(fd, text, strlen(text), at) == (ssize_t)strlen(text) ? 0 : -1;
	if (strcmp(verb, "read") == 0)
		return read_and_print(fd, at, strtoul(text, NULL, 10));
	if (strcmp(verb, "size") == 0)
		return print_size(fd);
	if (strcmp(verb, "cut") == 0)
		return ftruncate(fd, at);
	return strcmp(verb, "fsync") == 0 ? fsync(fd) : close(fd);
}

/* Does to a file what each line of standard input says:
 *
 *     write AT TEXT, read AT LEN, size, cut AT, fsync, close
 *     owner UID GID, mode 0 OCTAL, mtime SECONDS, now    as root, or after "user ID" as that user
 *     access UID, default UID                            the access control lists; -1: none
 *
 * For each line it prints the verb, what it has read, the result, and "." */
static int step(char **args)
{
	int fd = open_any(args[0]);
	char line[128], verb[16], text[64];
	long long at;

	if (fd < 0)
		return -errno;
	while (fgets(line, sizeof(line), stdin)) {
		at = 0;
		text[0] = '\0';
		if (sscanf(line, "%15s %lld %63s", verb, &at, text) < 1)
			return -EINVAL;
		printf("%s ", verb);
		printf("%s .\n", do_step(fd, verb, at, text) ? strerrorname_np(errno) : "0");
		fflush(stdout);
	}
	/* Only root may run the leak sanitizer at the end. */
	return geteuid() ? become(0) : 0;
}

/* One of many concurrent operations: it reads DIR/a, writes the same bytes to DIR/b, or looks up a
 * name that does not exist. */
struct strike {
	pthread_t thread;
	const char *dir;
	unsigned n;
	int err;
};

enum { STRIKE_BYTES = 1 << 20 };

static int strike_copy(const struct strike *s, bool write)
{
	void *buf = aligned_alloc(4096, STRIKE_BYTES);
	autofree char *a = NULL, *b = NULL;
	autoclose int from = -1, to = -1;
	off_t at = s->n % 4 * STRIKE_BYTES;
	int err = 0;

	if (!buf || asprintf(&a, "%s/a", s->dir) < 0 || asprintf(&b, "%s/b", s->dir) < 0)
		return -ENOMEM;
	from = open(write ? "a" : a, O_RDONLY | O_CLOEXEC | (write ? 0 : O_DIRECT));
	if (write)
		to = open(b, O_WRONLY | O_DIRECT | O_CLOEXEC);
	if (from < 0 || (write && to < 0) || pread(from, buf, STRIKE_BYTES, at) < 0 ||
		(write && pwrite(to, buf, STRIKE_BYTES, at) < 0))
		err = -errno;
	free(buf);
	return err;
}

static void *strike(void *arg)
{
	struct strike *s = arg;
	autofree char *name = NULL;
	struct stat st;

	if (s->n % 3)
		s->err = strike_copy(s, s->n % 3 == 2);
	else if (asprintf(&name, "%s/nosuch.%d.%u", s->dir, (int)getpid(), s->n) < 0 ||
		 stat(name, &st) < 0)
		s->err = errno == ENOENT ? 0 : -errno;
	return NULL;
}

/* Does many strikes at once in a folder that has the file a. Prints how many succeeded and how many
 * ended with EIO. */
static int storm(char **args)
{
	unsigned n = (unsigned)strtoul(args[1], NULL, 10), well = 0, eio = 0;
	struct strike *strikes = calloc(n, sizeof(*strikes));

	if (!strikes)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		strikes[i] = (struct strike){.dir = args[0], .n = i};
		if (pthread_create(&strikes[i].thread, NULL, strike, &strikes[i]))
			abort();
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(strikes[i].thread, NULL);
		well += strikes[i].err == 0;
		eio += strikes[i].err == -EIO;
	}
	free(strikes);
	printf("%u well, %u EIO\n", well, eio);
	return 0;
}

/* Prints "open", then reads a file by one handle until its first bytes are those of another
 * file. */
static int sees(char **args)
{
	static char wanted[STRIKE_BYTES], there[STRIKE_BYTES];
	autoclose int file = open(args[0], O_RDONLY | O_CLOEXEC);
	autoclose int other = open(args[1], O_RDONLY | O_CLOEXEC);

	if (file < 0 || other < 0 || pread(other, wanted, sizeof(wanted), 0) != sizeof(wanted))
		return -errno;
	puts("open");
	fflush(stdout);
	do {
		if (pread(file, there, sizeof(there), 0) != sizeof(there))
			return -errno;
	} while (memcmp(wanted, there, sizeof(there)) != 0 && usleep(20000) == 0);
	return 0;
}

static int uncache_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	autoclose int fd = -1;

	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* Another program may have removed it. */
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fdatasync(fd) < 0)
		return errno;
	return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Drops the kernel's cached pages of all files below a folder, and nothing else. */
static int uncache(char **args)
{
	int err = nftw(args[0], uncache_file, 16, FTW_PHYS);

	return err < 0 ? -errno : -err;
}

/* Lists a directory by getdents64(2), and prints the number of entries and the greatest offset.
 * After the first call it prints "begun" and waits for a line of standard input. */
static int list_slowly(char **args)
{
	autoclose int fd = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct dirent64) char buf[4096];
	long long highest = 0;
	unsigned n = 0;
	ssize_t len;

	if (fd < 0)
		return -errno;
	while ((len = getdents64(fd, buf, sizeof(buf))) > 0) {
		const struct dirent64 *d;
		bool first = !n;

		for (ssize_t at = 0; at < len; at += d->d_reclen, n++) {
			d = (const void *)(buf + at);
			if (d->d_off > highest)
				highest = d->d_off;
		}
		if (first) {
			puts("begun");
			fflush(stdout);
			getchar();
		}
	}
	printf("%u entries, offsets to %lld\n", n, highest);
	return len < 0 ? -errno : 0;
}

/* ---- file handles ---------------------------------------------------------------------------- */

struct handle {
	struct file_handle head;
	uint8_t bytes[MAX_HANDLE_SZ];
};

/* FILE OUT: writes the file's handle to OUT. */
static int handle_keep(char **args)
{
	struct handle handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	autoclose int fd = -1;
	int mount_id;

	if (name_to_handle_at(AT_FDCWD, args[0], &handle.head, &mount_id, 0) < 0)
		return -errno;
	fd = open(args[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : operation_write(fd, (const char *)&handle, sizeof(handle));
}

/* MOUNT KEPT: opens the file of a kept handle, and prints its path or its bytes. */
static int handle_show(char **args)
{
	autoclose int mount = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int kept = open(args[1], O_RDONLY | O_CLOEXEC);
	char text[4096], link[64];
	struct handle handle;
	autoclose int fd = -1;
	struct stat st;
	ssize_t n;

	if (mount < 0 || kept < 0 || read(kept, &handle, sizeof(handle)) != sizeof(handle))
		return -EIO;
	fd = open_by_handle_at(mount, &handle.head, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = S_ISDIR(st.st_mode) ? readlink(link, text, sizeof(text)) : read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	printf("%.*s\n", (int)n, text);
	return 0;
}

static const struct operation operations[] = {
	{"chown-nothing", 1, chown_nothing},
	{"fchown-nothing", 1, fchown_nothing},
	{"rename-noreplace", 2, rename_noreplace},
	{"rename-exchange", 2, rename_exchange},
	{"make-file", 2, make_file},
	{"make-directory", 2, make_directory},
	{"make-fifo", 2, make_fifo},
	{"make-symlink", 2, make_symlink},
	{"make-long-symlink", 2, make_long_symlink},
	{"make-link", 2, make_link},
	{"seek-data", 2, seek_data},
	{"seek-hole", 2, seek_hole},
	{"unlinked", 1, unlinked},
	{"map-shared", 1, map_shared},
	{"map-punch", 3, map_punch},
	{"map-store", 2, map_store},
	{"map-and-answer", 1, map_and_answer},
	{"append-by-fcntl", 1, append_by_fcntl},
	{"link-later", 2, link_later},
	{"map-later", 2, map_later},
	{"map-cut", 2, map_cut},
	{"send", 2, send_all},
	{"map-and-store-on", 1, map_and_store_on},
	{"copy-range", 5, copy_range},
	{"hold", 1, hold},
	{"make-kept", 2, make_kept},
	{"hold-locks", 1, hold_locks},
	{"count-locks", 1, count_locks},
	{"wait-for-lock", 1, wait_for_lock},
	{"wait-for-lock-alarmed", 1, wait_for_lock_alarmed},
	{"work-on-alarmed", 1, work_on_alarmed},
	{"fill", 2, fill},
	{"write-on", 2, write_on},
	{"overwrite-and-kill", 3, overwrite_and_kill},
	{"tells-each", 1, tells_each},
	{"step", 1, step},
	{"storm", 2, storm},
	{"sees", 2, sees},
	{"uncache", 1, uncache},
	{"list-slowly", 1, list_slowly},
	{"handle-keep", 2, handle_keep},
	{"handle-show", 2, handle_show},
};

int main(int argc, char **argv)
{
	return operation_main("fsop", operations, ARRAY_SIZE(operations), argc, argv);
}
