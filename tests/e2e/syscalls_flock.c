/* syscalls_flock.c - flock(2). */
#include "syscalls.h"
#include "syscalls_locks.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/sysmacros.h>

static int opened(int flags)
{
	return (int)works(open("f", flags | O_CREAT, 0644));
}

enum { REMOTE_WAIT_US = 300000 };

/* Counts lines of /proc/locks like "12: -> FLOCK ADVISORY WRITE 4711 00:1f:5 0 EOF". */
static unsigned count_waiting(void)
{
	char file[64], line[256];
	struct stat st;
	unsigned n = 0;
	FILE *f;

	works(stat("f", &st));
	snprintf(file, sizeof(file), " %02x:%02x:%llu ", major(st.st_dev), minor(st.st_dev),
		(unsigned long long)st.st_ino);
	f = fopen("/proc/locks", "re");
	holds(f != NULL);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "->") && strstr(line, file);
	fclose(f);
	return n;
}

void until_waiting(unsigned n)
{
	if (getenv("RMEMFS_TEST_REMOTE_LOCKS")) {
		usleep(REMOTE_WAIT_US);
		return;
	}
	while (count_waiting() != n)
		sched_yield();
}

static void which_conflict(void)
{
	static const struct {
		int held, asked;
		bool conflict;
	} pairs[] = {
		{LOCK_SH, LOCK_SH, false},
		{LOCK_SH, LOCK_EX, true},
		{LOCK_EX, LOCK_SH, true},
		{LOCK_EX, LOCK_EX, true},
		{LOCK_UN, LOCK_EX, false},
		{LOCK_UN, LOCK_SH, false},
	};
	int one = opened(O_RDWR), two = opened(O_RDONLY);

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		works(flock(one, pairs[i].held));
		if (pairs[i].conflict)
			fails(flock(two, pairs[i].asked | LOCK_NB), EWOULDBLOCK);
		else
			works(flock(two, pairs[i].asked | LOCK_NB));
		works(flock(two, LOCK_UN));
		works(flock(one, LOCK_UN));
	}
}

static void upgrades_and_downgrades(void)
{
	int one = opened(O_RDWR), two = opened(O_RDWR);

	works(flock(one, LOCK_SH));
	works(flock(one, LOCK_EX | LOCK_NB));
	fails(flock(two, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	works(flock(one, LOCK_SH | LOCK_NB));
	works(flock(two, LOCK_SH | LOCK_NB));
	fails(flock(one, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	works(flock(one, LOCK_UN));
	works(flock(one, LOCK_UN));
	works(flock(two, LOCK_EX | LOCK_NB));
}

static void unlocks(void *arg)
{
	works(flock(*(int *)arg, LOCK_UN));
}

static void closes(void *arg)
{
	works(close(*(int *)arg));
}

static void held_by_the_open_file(void)
{
	int one = opened(O_RDWR), two = opened(O_RDWR), copy = (int)works(dup(one));

	works(flock(one, LOCK_EX));
	works(flock(copy, LOCK_EX | LOCK_NB));
	works(close(one));
	fails(flock(two, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	finished(child(closes, &copy));
	fails(flock(two, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	works(close(copy));
	while (getenv("RMEMFS_TEST_REMOTE_LOCKS") && flock(two, LOCK_EX | LOCK_NB))
		holds(errno == EWOULDBLOCK);
	works(flock(two, LOCK_EX | LOCK_NB));
	one = opened(O_RDWR);
	finished(child(unlocks, &two));
	works(flock(one, LOCK_EX | LOCK_NB));
}

static void takes_and_ends(void *arg)
{
	works(flock(opened(O_RDWR), LOCK_EX | LOCK_NB));
}

/* Where the kernel asks for locks, it tells of the last close by a request that nobody waits for.
 * It may be read just before the one that asks. */
static void released_when_its_holder_ends(void)
{
	int fd = opened(O_RDWR);

	finished(child(takes_and_ends, NULL));
	while (getenv("RMEMFS_TEST_REMOTE_LOCKS") && flock(fd, LOCK_EX | LOCK_NB))
		holds(errno == EWOULDBLOCK);
	works(flock(fd, LOCK_EX | LOCK_NB));
}

static void waits_and_gets_it(void *arg)
{
	works(flock(opened(O_RDONLY), LOCK_EX));
}

static void blocking(void)
{
	int fd = opened(O_RDWR);
	pid_t pid;

	works(flock(fd, LOCK_SH));
	pid = child(waits_and_gets_it, NULL);
	until_waiting(1);
	works(flock(fd, LOCK_UN));
	finished(pid);
}

static void does_nothing(int sig)
{
}

static void is_interrupted(void *arg)
{
	const struct sigaction action = {.sa_handler = does_nothing};

	works(sigaction(SIGUSR1, &action, NULL));
	fails(flock(opened(O_RDWR), LOCK_EX), EINTR);
}

static void interrupted(void)
{
	int fd = opened(O_RDWR);
	pid_t pid;

	works(flock(fd, LOCK_EX));
	pid = child(is_interrupted, NULL);
	until_waiting(1);
	works(kill(pid, SIGUSR1));
	finished(pid);
	works(flock(fd, LOCK_UN));
	works(flock(fd, LOCK_EX | LOCK_NB));
}

static void of_other_files(void)
{
	int one, two;

	works(mkdir("d", 0755));
	one = (int)works(open("d", O_RDONLY));
	two = (int)works(open("d", O_RDONLY));
	works(flock(one, LOCK_EX));
	fails(flock(two, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	works(flock(opened(O_RDWR), LOCK_EX | LOCK_NB));
	fails(flock(one, 77), EINVAL);
	fails(flock(99, LOCK_SH), EBADF);
	fails(flock((int)works(open("d", O_PATH)), LOCK_SH), EBADF);
}

/* A lock belongs to the file, not to its name. */
static void of_names(void)
{
	int one = opened(O_RDWR), two;

	works(flock(one, LOCK_EX));
	works(link("f", "g"));
	two = (int)works(open("g", O_RDWR));
	fails(flock(two, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	works(rename("f", "h"));
	works(flock(opened(O_RDWR), LOCK_EX | LOCK_NB));
	works(unlink("g"));
	works(unlink("h"));
	fails(flock(two, LOCK_EX | LOCK_NB), EWOULDBLOCK);
}

static const struct syscall_case table[] = {
	{"which locks conflict", which_conflict},
	{"upgrades and downgrades", upgrades_and_downgrades},
	{"it is the open file's, with all its descriptors", held_by_the_open_file},
	{"it ends with its holder", released_when_its_holder_ends},
	{"who waits gets it", blocking},
	{"who waits is interrupted by a signal", interrupted},
	{"directories, and what can't be locked", of_other_files},
	{"the file is locked, not its name", of_names},
};
SYSCALL_AREA(area_flock, table);
