/* carry.c - has everything of a mount in use that outlives a daemon, and looks at it afterwards:
 *
 *     carry DIR     in DIR: opens, removes, maps, locks, reads a directory in part, works in one;
 *                   prints "ready", waits for a line, and tries all of it
 *
 * Each line of standard input is one more round of trying; its end ends the program. The exit
 * status is 0 if all was as it has to be.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAMES = 300, READ_BEFORE = 100, PAGE = 4096, LEN = 16 * PAGE, REMOVED_FILES = 8 };

static void fail(const char *what)
{
	errx(1, "%s", what);
}

static void check(bool ok, const char *what)
{
	if (!ok)
		err(1, "%s", what);
}

static int made(const char *name, int flags)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644);

	check(fd >= 0, name);
	return fd;
}

static void put(int fd, unsigned round, size_t len)
{
	char buf[LEN];

	memset(buf, (int)round + 1, len);
	check(pwrite(fd, buf, len, 0) == (ssize_t)len, "pwrite");
}

static void compare(int fd, unsigned round, size_t len)
{
	char buf[LEN], expected[LEN];

	memset(expected, (int)round + 1, len);
	check(pread(fd, buf, len, 0) == (ssize_t)len, "pread");
	if (memcmp(buf, expected, len) != 0)
		fail("other bytes were read");
}

/* ---- a directory that is read in part -------------------------------------------------------- */

static DIR *listing;
static bool seen[NAMES];

static void make_names(void)
{
	char name[32];

	check(mkdir("names", 0755) == 0, "mkdir");
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "names/%u", i);
		close(made(name, 0));
	}
}

static unsigned read_names(unsigned most)
{
	struct dirent *entry;
	unsigned n = 0;

	while (n < most && (errno = 0, entry = readdir(listing))) {
		unsigned i;

		if (sscanf(entry->d_name, "%u", &i) != 1)
			continue;
		if (i >= NAMES || seen[i])
			fail("a name was listed twice");
		seen[i] = true;
		n++;
	}
	check(errno == 0, "readdir");
	return n;
}

static void begin_listing(void)
{
	make_names();
	listing = opendir("names");
	check(listing, "opendir");
	if (read_names(READ_BEFORE) != READ_BEFORE)
		fail("names are missing");
}

/* The position, and what is behind it; then all from the beginning. */
static void go_on_listing(void)
{
	if (read_names(NAMES) != NAMES - READ_BEFORE)
		fail("names are missing after it");
	rewinddir(listing);
	memset(seen, 0, sizeof(seen));
	if (read_names(READ_BEFORE) != READ_BEFORE)
		fail("names are missing from the beginning");
}

/* ---- locks ----------------------------------------------------------------------------------- */

static int flocked, recorded, owned, told[2];
static pid_t waiter;

static int record(int fd, int command, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

	return fcntl(fd, command, &lock);
}

/* Waits for the record in F_SETLKW, and tells when it has got it. */
static void start_waiter(void)
{
	check(pipe2(told, O_CLOEXEC) == 0, "pipe");
	waiter = fork();
	if (waiter)
		return;
	if (record(made("record", 0), F_SETLKW, F_WRLCK) != 0 || write(told[1], "x", 1) != 1)
		_exit(1);
	_exit(0);
}

static void take_locks(void)
{
	flocked = made("flock", 0);
	recorded = made("record", 0);
	owned = made("owned", 0);
	check(flock(flocked, LOCK_EX | LOCK_NB) == 0, "flock");
	check(record(recorded, F_SETLK, F_WRLCK) == 0, "F_SETLK");
	check(record(owned, F_OFD_SETLK, F_WRLCK) == 0, "F_OFD_SETLK");
	start_waiter();
}

/* Another process can't have them. */
static void locks_hold(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		bool held = flock(made("flock", 0), LOCK_EX | LOCK_NB) != 0 &&
			    record(made("record", 0), F_SETLK, F_WRLCK) != 0 &&
			    record(made("owned", 0), F_OFD_SETLK, F_WRLCK) != 0;

		_exit(held ? 0 : 1);
	}
	check(waitpid(child, &status, 0) == child, "waitpid");
	if (status)
		fail("another process got a lock that is held");
	check(waitpid(waiter, &status, WNOHANG) == 0, "the waiting process has ended");
}

static void give_locks(void)
{
	char byte;
	int status;

	check(record(recorded, F_SETLK, F_UNLCK) == 0, "F_UNLCK");
	check(read(told[0], &byte, 1) == 1, "the waiting process did not get its lock");
	check(waitpid(waiter, &status, 0) == waiter && !status, "the waiting process failed");
	check(flock(flocked, LOCK_UN) == 0, "LOCK_UN");
}

/* ---- files ----------------------------------------------------------------------------------- */

static int kept, appended, removed[REMOVED_FILES], direct;
static char *map;

/* The kernel knows the file, and nobody has it open: no OPEN was sent. */
static void keep_a_path(void)
{
	close(made("path", 0));
	check(open("path", O_PATH | O_CLOEXEC) >= 0, "open of a path");
	check(unlink("path") == 0, "unlink");
}

static void open_files(void)
{
	char name[32];

	kept = made("kept", 0);
	put(kept, 0, LEN);
	appended = made("appended", O_APPEND);
	check(write(appended, "0", 1) == 1, "append");
	for (unsigned i = 0; i < REMOVED_FILES; i++) {
		snprintf(name, sizeof(name), "removed.%u", i);
		removed[i] = made(name, 0);
		put(removed[i], i, PAGE * (i + 1));
		check(unlink(name) == 0, "unlink");
	}
	direct = made("mapped", 0);
	put(direct, 0, LEN);
	map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, direct, 0);
	/* Before Linux 6.9 a mount that shares has none. */
	if (map == MAP_FAILED && errno == ENODEV)
		map = NULL;
	check(map != MAP_FAILED, "mmap");
	if (map)
		memset(map, 1, LEN);
	check(mkdir("here", 0755) == 0 && chdir("here") == 0, "chdir");
	close(made("beside", 0));
}

static void try_mapped(unsigned round)
{
	for (size_t i = 0; map && i < LEN; i++)
		if (map[i] != (char)round)
			fail("other bytes in the mapping");
	if (map) {
		memset(map, (int)round + 1, LEN);
		check(msync(map, LEN, MS_SYNC) == 0, "msync");
	} else {
		compare(direct, round - 1, LEN);
		put(direct, round, LEN);
	}
	compare(direct, round, LEN);
}

static void try_files(unsigned round)
{
	struct stat st;
	char byte;

	compare(kept, round - 1, LEN);
	put(kept, round, LEN);
	compare(kept, round, LEN);
	check(fsync(kept) == 0, "fsync");
	byte = (char)('0' + round % 10);
	check(write(appended, &byte, 1) == 1, "append");
	check(fstat(appended, &st) == 0 && st.st_size == (off_t)round + 1,
		"the appended file's size");
	for (unsigned i = 0; i < REMOVED_FILES; i++) {
		compare(removed[i], i + (round - 1) * 16, PAGE * (i + 1));
		put(removed[i], i + round * 16, PAGE * (i + 1));
		check(fstat(removed[i], &st) == 0 && st.st_nlink == 0, "a removed file");
	}
	try_mapped(round);
}

static void try_place(void)
{
	char path[4096];

	check(access("beside", R_OK) == 0, "a file in the working directory");
	check(getcwd(path, sizeof(path)) && strcmp(strrchr(path, '/'), "/here") == 0, "getcwd");
	check(rename("beside", "beside.2") == 0 && rename("beside.2", "beside") == 0, "rename");
	check(mkdir("../more", 0755) == 0 && rmdir("../more") == 0, "mkdir");
}

int main(int argc, char **argv)
{
	char line[16];
	unsigned round = 0;

	if (argc != 2)
		errx(2, "usage: carry DIR");
	check(chdir(argv[1]) == 0, argv[1]);
	begin_listing();
	keep_a_path();
	take_locks();
	open_files();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		round++;
		if (round == 1)
			go_on_listing();
		check(chdir("..") == 0, "chdir");
		locks_hold();
		check(chdir("here") == 0, "chdir");
		try_files(round);
		try_place();
		printf("round %u\n", round);
		fflush(stdout);
	}
	give_locks();
	puts("done");
	return 0;
}
