/* syscalls_records.c - locks of parts of files: a process's (F_SETLK) and an open file's
 * (F_OFD_SETLK). */
#include "syscalls.h"
#include "syscalls_locks.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

static int opened(int flags)
{
	return (int)works(open("f", flags | O_CREAT, 0644));
}

static int lock(int fd, int cmd, short type, off_t start, off_t len)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	return fcntl(fd, cmd, &l);
}

static int set(int fd, short type, off_t start, off_t len)
{
	return lock(fd, F_SETLK, type, start, len);
}

static int set_open(int fd, short type, off_t start, off_t len)
{
	return lock(fd, F_OFD_SETLK, type, start, len);
}

/* Bytes 0 to 19 as another process finds them locked: '.', 'r' or 'w' each. */
static const char *as_others_see(void)
{
	static char seen[21];
	int ends[2];
	pid_t pid;

	works(pipe(ends));
	fflush(stdout);
	pid = (pid_t)works(fork());
	if (pid == 0) {
		int fd = opened(O_RDWR);

		for (int i = 0; i < 20; i++) {
			struct flock l = {.l_type = F_WRLCK, .l_start = i, .l_len = 1};

			works(fcntl(fd, F_GETLK, &l));
			seen[i] = l.l_type == F_UNLCK ? '.' : l.l_type == F_RDLCK ? 'r' : 'w';
		}
		equal(write(ends[1], seen, 20), 20);
		_exit(0);
	}
	finished(pid);
	equal(read(ends[0], seen, 20), 20);
	works(close(ends[0]));
	works(close(ends[1]));
	return seen;
}

static void ranges_split_and_merge(void)
{
	static int (*const setters[])(int fd, short type, off_t start, off_t len) = {set, set_open};
	static const struct {
		short type;
		off_t start, len;
		const char *after;
	} steps[] = {
		{F_WRLCK, 5, 10, ".....wwwwwwwwww....."},
		{F_UNLCK, 8, 2, ".....www..wwwww....."},
		{F_RDLCK, 6, 1, ".....wrw..wwwww....."},
		{F_RDLCK, 7, 5, ".....wrrrrrrwww....."},
		{F_WRLCK, 8, 2, ".....wrrwwrrwww....."},
		{F_RDLCK, 0, 20, "rrrrrrrrrrrrrrrrrrrr"},
		{F_UNLCK, 3, 3, "rrr...rrrrrrrrrrrrrr"},
		{F_WRLCK, 4, 0, "rrr.wwwwwwwwwwwwwwww"},
		{F_UNLCK, 10, 0, "rrr.wwwwww.........."},
		{F_UNLCK, 0, 0, "...................."},
	};
	int fd = opened(O_RDWR);

	for (size_t k = 0; k < ARRAY_SIZE(setters); k++) {
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
			works(setters[k](fd, steps[i].type, steps[i].start, steps[i].len));
			same(as_others_see(), steps[i].after);
		}
	}
}

struct attempt {
	int cmd;
	short type;
	off_t start, len;
	int error; /* 0: it works */
};

static void attempts(void *arg)
{
	const struct attempt *a = arg;
	int fd = opened(O_RDWR);

	if (a->error)
		fails(lock(fd, a->cmd, a->type, a->start, a->len), a->error);
	else
		works(lock(fd, a->cmd, a->type, a->start, a->len));
}

static void another(int cmd, short type, off_t start, off_t len, int error)
{
	struct attempt a = {cmd, type, start, len, error};

	finished(child(attempts, &a));
}

static void which_conflict(void)
{
	int fd = opened(O_RDWR);

	works(set(fd, F_RDLCK, 0, 10));
	another(F_SETLK, F_RDLCK, 0, 10, 0);
	another(F_SETLK, F_WRLCK, 0, 10, EAGAIN);
	another(F_SETLK, F_WRLCK, 9, 1, EAGAIN);
	another(F_SETLK, F_WRLCK, 10, 1, 0);
	another(F_OFD_SETLK, F_RDLCK, 0, 0, 0);
	another(F_OFD_SETLK, F_WRLCK, 5, 0, EAGAIN);
	works(set(fd, F_WRLCK, 0, 10));
	another(F_SETLK, F_RDLCK, 0, 1, EAGAIN);
	another(F_OFD_SETLK, F_RDLCK, 9, 5, EAGAIN);
	another(F_SETLK, F_UNLCK, 0, 0, 0);
	another(F_SETLK, F_RDLCK, 10, 0, 0);
}

static void asks_who_holds(void *arg)
{
	struct flock l = {.l_type = F_RDLCK, .l_start = 0, .l_len = 0};

	works(fcntl(opened(O_RDWR), F_GETLK, &l));
	equal(l.l_type, F_WRLCK);
	equal(l.l_start, 100);
	equal(l.l_len, 50);
	equal(l.l_whence, SEEK_SET);
	equal(l.l_pid, getppid());
	l = (struct flock){.l_type = F_WRLCK, .l_start = 150, .l_len = 0};
	works(fcntl(opened(O_RDWR), F_GETLK, &l));
	equal(l.l_type, F_UNLCK);
}

static void who_holds_it(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = 100, .l_len = 50};
	int fd = opened(O_RDWR), other = opened(O_RDWR);

	works(fcntl(fd, F_SETLK, &l));
	works(fcntl(other, F_GETLK, &l));
	equal(l.l_type, F_UNLCK);
	finished(child(asks_who_holds, NULL));
	l = (struct flock){.l_type = F_RDLCK, .l_start = 0, .l_len = 0};
	works(fcntl(other, F_OFD_GETLK, &l));
	equal(l.l_type, F_WRLCK);
	/* For remote locks the kernel reports an open file's lock, whichever process asks. */
	equal(l.l_pid, getenv("RMEMFS_TEST_REMOTE_LOCKS") ? -1 : getpid());
	works(set(fd, F_UNLCK, 0, 0));
	works(set_open(fd, F_WRLCK, 0, 1));
	l = (struct flock){.l_type = F_RDLCK, .l_start = 0, .l_len = 0};
	works(fcntl(other, F_OFD_GETLK, &l));
	equal(l.l_type, F_WRLCK);
	equal(l.l_pid, -1);
}

/* A process's locks go with the first descriptor of the file that it closes, whichever that is. */
static void a_process_closes_any(void)
{
	int fd = opened(O_RDWR), other = opened(O_RDONLY);

	works(set(fd, F_WRLCK, 0, 20));
	another(F_SETLK, F_WRLCK, 0, 1, EAGAIN);
	works(close(other));
	another(F_SETLK, F_WRLCK, 0, 1, 0);
	works(set(fd, F_WRLCK, 0, 20));
	works(close((int)works(dup(fd))));
	another(F_SETLK, F_WRLCK, 0, 1, 0);
}

static void an_open_file_closes_last(void)
{
	int fd = opened(O_RDWR), other = opened(O_RDONLY), copy = (int)works(dup(fd));

	works(set_open(fd, F_WRLCK, 0, 20));
	works(close(other));
	works(close(fd));
	another(F_OFD_SETLK, F_WRLCK, 0, 1, EAGAIN);
	works(close(copy));
	another(F_OFD_SETLK, F_WRLCK, 0, 1, 0);
}

static void child_of_a_holder(void *arg)
{
	int fd = *(int *)arg;

	fails(set(fd, F_WRLCK, 0, 1), EAGAIN);
	works(set(fd, F_UNLCK, 0, 0));
	works(close(fd));
}

static void child_of_an_open_file(void *arg)
{
	int fd = *(int *)arg;

	works(set_open(fd, F_WRLCK, 0, 20));
	works(set_open(fd, F_UNLCK, 10, 10));
	works(close(fd));
}

static void across_fork(void)
{
	int fd = opened(O_RDWR);

	works(set(fd, F_WRLCK, 0, 20));
	finished(child(child_of_a_holder, &fd));
	same(as_others_see(), "wwwwwwwwwwwwwwwwwwww");
	works(set(fd, F_UNLCK, 0, 0));
	works(set_open(fd, F_WRLCK, 0, 20));
	finished(child(child_of_an_open_file, &fd));
	same(as_others_see(), "wwwwwwwwww..........");
}

static void across_exec(void)
{
	int status, ends[2];
	pid_t pid;
	char c;

	works(close(opened(O_RDWR)));
	works(pipe(ends));
	pid = (pid_t)works(fork());
	if (pid == 0) {
		works(set(opened(O_RDWR), F_WRLCK, 0, 5));
		works(dup2(ends[1], 1));
		execlp("sh", "sh", "-c", "echo; exec sleep 100", NULL);
		_exit(1);
	}
	equal(read(ends[0], &c, 1), 1);
	same(as_others_see(), "wwwww...............");
	works(kill(pid, SIGKILL));
	works(waitpid(pid, &status, 0));
	same(as_others_see(), "....................");
}

static void of_one_process(void)
{
	int one = opened(O_RDWR), two = opened(O_RDWR);

	works(set(one, F_WRLCK, 0, 10));
	works(set(two, F_WRLCK, 0, 10));
	fails(set_open(one, F_WRLCK, 0, 10), EAGAIN);
	works(set(two, F_UNLCK, 0, 0));
	works(set_open(one, F_WRLCK, 0, 10));
	fails(set_open(two, F_RDLCK, 9, 10), EAGAIN);
	fails(set(one, F_RDLCK, 0, 1), EAGAIN);
	works(flock(two, LOCK_EX | LOCK_NB));
}

static void what_a_descriptor_must_be(void)
{
	struct flock odd = {.l_type = F_RDLCK, .l_whence = 77};
	int readable = opened(O_RDONLY), writable = opened(O_WRONLY);

	works(set(readable, F_RDLCK, 0, 1));
	fails(set(readable, F_WRLCK, 0, 1), EBADF);
	works(set(writable, F_WRLCK, 0, 1));
	fails(set(writable, F_RDLCK, 0, 1), EBADF);
	fails(set_open(readable, F_WRLCK, 0, 1), EBADF);
	fails(set(readable, 77, 0, 1), EINVAL);
	fails(set(readable, F_RDLCK, -1, 1), EINVAL);
	fails(fcntl(readable, F_SETLK, &odd), EINVAL);
	fails(set(99, F_RDLCK, 0, 1), EBADF);
	odd = (struct flock){.l_type = F_RDLCK, .l_pid = 5};
	fails(fcntl(readable, F_OFD_SETLK, &odd), EINVAL);
	fails(fcntl(readable, F_SETLK, (struct flock *)1), EFAULT);
}

static void where_ranges_begin(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -5, .l_len = 2};
	int fd;

	make("f", "01234567890123456789");
	fd = opened(O_RDWR);
	works(fcntl(fd, F_SETLK, &l));
	same(as_others_see(), "...............ww...");
	l = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_CUR, .l_start = 0, .l_len = 3};
	works(lseek(fd, 4, SEEK_SET));
	works(fcntl(fd, F_SETLK, &l));
	same(as_others_see(), "....rrr........ww...");
	works(set(fd, F_WRLCK, 10, -3));
	same(as_others_see(), "....rrrwww.....ww...");
}

static void waits_for(void *arg)
{
	const struct attempt *a = arg;
	int fd = opened(O_RDWR);

	works(lock(fd, a->cmd, a->type, a->start, a->len));
}

static void blocking(void)
{
	struct attempt process = {F_SETLKW, F_WRLCK, 0, 5, 0};
	struct attempt open_file = {F_OFD_SETLKW, F_RDLCK, 5, 5, 0};
	int fd = opened(O_RDWR);
	pid_t one, two;

	works(set(fd, F_WRLCK, 0, 10));
	one = child(waits_for, &process);
	two = child(waits_for, &open_file);
	until_waiting(2);
	works(set(fd, F_UNLCK, 0, 0));
	finished(one);
	finished(two);
}

static void does_nothing(int sig)
{
}

static void is_interrupted(void *arg)
{
	const struct sigaction action = {.sa_handler = does_nothing};
	const struct attempt *a = arg;

	works(sigaction(SIGUSR1, &action, NULL));
	fails(lock(opened(O_RDWR), a->cmd, a->type, a->start, a->len), EINTR);
}

static void interrupted(void)
{
	struct attempt process = {F_SETLKW, F_WRLCK, 0, 5, 0};
	struct attempt open_file = {F_OFD_SETLKW, F_WRLCK, 0, 5, 0};
	int fd = opened(O_RDWR);
	pid_t pids[2];

	works(set(fd, F_WRLCK, 0, 10));
	pids[0] = child(is_interrupted, &process);
	pids[1] = child(is_interrupted, &open_file);
	for (int i = 0; i < 2; i++) {
		until_waiting(2 - (unsigned)i);
		works(kill(pids[i], SIGUSR1));
		finished(pids[i]);
	}
	works(set(fd, F_UNLCK, 0, 0));
	same(as_others_see(), "....................");
}

/* The child holds the second byte and waits for the first, which we hold. */
static void holds_one_and_waits(void *arg)
{
	const int *ends = arg;
	int fd = opened(O_RDWR);

	works(set(fd, F_WRLCK, 1, 1));
	equal(write(ends[1], "x", 1), 1);
	works(lock(fd, F_SETLKW, F_WRLCK, 0, 1));
}

static void deadlock(void)
{
	int fd = opened(O_RDWR), ends[2];
	pid_t pid;
	char c;

	works(pipe(ends));
	works(set(fd, F_WRLCK, 0, 1));
	pid = child(holds_one_and_waits, ends);
	equal(read(ends[0], &c, 1), 1);
	until_waiting(1);
	fails(lock(fd, F_SETLKW, F_WRLCK, 1, 1), EDEADLK);
	works(set(fd, F_UNLCK, 0, 1));
	finished(pid);
}

static void with_lockf(void)
{
	int fd = opened(O_RDWR);

	works(lseek(fd, 5, SEEK_SET));
	works(lockf(fd, F_LOCK, 10));
	same(as_others_see(), ".....wwwwwwwwww.....");
	works(lockf(fd, F_TEST, 10));
	works(lockf(fd, F_ULOCK, 5));
	same(as_others_see(), "..........wwwww.....");
}

static const struct syscall_case table[] = {
	{"ranges are split and merged", ranges_split_and_merge},
	{"which locks conflict", which_conflict},
	{"F_GETLK and F_OFD_GETLK", who_holds_it},
	{"a process's locks end when it closes any descriptor", a_process_closes_any},
	{"an open file's locks end with its last descriptor", an_open_file_closes_last},
	{"a child has an open file's locks, not its parent's", across_fork},
	{"locks go on across exec", across_exec},
	{"two descriptors of one process", of_one_process},
	{"what a descriptor must be open for", what_a_descriptor_must_be},
	{"where ranges begin", where_ranges_begin},
	{"who waits gets it", blocking},
	{"who waits is interrupted by a signal", interrupted},
	{"EDEADLK", deadlock},
	{"lockf", with_lockf},
};
SYSCALL_AREA(area_records, table);
