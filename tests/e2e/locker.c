/* locker.c - takes locks as programs do. KIND is flock, process (F_SETLK) or open (F_OFD_SETLK);
 * TYPE is shared or alone. A record lock covers one byte, at AT. It prints the result: got, busy,
 * interrupted, deadlock. A line on standard input lets it go on.
 *
 *     locker try KIND TYPE PATH AT      at once
 *     locker hold KIND TYPE PATH AT     waits, prints, and keeps it until a line comes
 *     locker pieces PATH N              has N records, of every second byte, until a line comes
 *     locker wait KIND TYPE PATH AT     as hold, unless SIGALRM interrupts it
 *     locker cross PATH ONE OTHER TWO   takes ONE of PATH, prints got, and after a line waits for
 *                                       TWO of OTHER
 *     locker get PATH AT                prints the lock there: free, or TYPE PID START LENGTH
 *     locker close PATH                 locks record 0 by one descriptor, closes another after a
 *                                       line, and keeps the first until the next one
 *     locker spin KIND PATH N           locks and unlocks it N times
 *     locker count KIND PATH N [OTHER]  adds one N times to the number in the file, or in another
 *                                       one, with the file locked
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int opened(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static int records(int fd, int cmd, short type, off_t at)
{
	struct flock lock = {.l_type = type, .l_start = at, .l_len = 1};

	return fcntl(fd, cmd, &lock);
}

/* type: F_RDLCK, F_WRLCK, F_UNLCK. */
static int locked(int fd, const char *kind, short type, off_t at, bool wait)
{
	static const int flocks[] = {[F_RDLCK] = LOCK_SH, [F_WRLCK] = LOCK_EX, [F_UNLCK] = LOCK_UN};

	if (strcmp(kind, "flock") == 0)
		return flock(fd, flocks[type] | (wait ? 0 : LOCK_NB));
	if (strcmp(kind, "process") == 0)
		return records(fd, wait ? F_SETLKW : F_SETLK, type, at);
	return records(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, type, at);
}

static short type_of(const char *word)
{
	return strcmp(word, "alone") == 0 ? F_WRLCK : F_RDLCK;
}

static const char *outcome(int result)
{
	if (result == 0)
		return "got";
	switch (errno) {
	case EAGAIN:
		return "busy";
	case EINTR:
		return "interrupted";
	case EDEADLK:
		return "deadlock";
	default:
		return strerror(errno);
	}
}

static void say(const char *words)
{
	puts(words);
	fflush(stdout);
}

static void until_told(void)
{
	int c;

	do
		c = getchar();
	while (c != EOF && c != '\n');
}

static int take(char **args, bool wait, bool hold)
{
	int fd = opened(args[2]);

	say(outcome(locked(fd, args[0], type_of(args[1]), atol(args[3]), wait)));
	if (hold)
		until_told();
	return 0;
}

static int pieces(char **args)
{
	int fd = opened(args[0]);

	for (long n = atol(args[1]); n; n--)
		if (records(fd, F_OFD_SETLK, F_WRLCK, 2 * (n - 1)) < 0)
			err(1, "%s", args[0]);
	say("got");
	until_told();
	return 0;
}

static void does_nothing(int sig)
{
}

static int wait_for(char **args)
{
	const struct sigaction action = {.sa_handler = does_nothing};

	sigaction(SIGALRM, &action, NULL);
	return take(args, true, true);
}

static int cross(char **args)
{
	say(outcome(records(opened(args[0]), F_SETLKW, F_WRLCK, atol(args[1]))));
	until_told();
	say(outcome(records(opened(args[2]), F_SETLKW, F_WRLCK, atol(args[3]))));
	return 0;
}

static int get(char **args)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = atol(args[1]), .l_len = 1};

	if (fcntl(opened(args[0]), F_GETLK, &lock) < 0)
		err(1, "F_GETLK");
	if (lock.l_type == F_UNLCK)
		puts("free");
	else
		printf("%s %d %jd %jd\n", lock.l_type == F_WRLCK ? "alone" : "shared", lock.l_pid,
			(intmax_t)lock.l_start, (intmax_t)lock.l_len);
	return 0;
}

static int close_another(char **args)
{
	int one = opened(args[0]), two = opened(args[0]);

	say(outcome(records(one, F_SETLKW, F_WRLCK, 0)));
	until_told();
	close(two);
	say("closed");
	until_told();
	close(one);
	return 0;
}

static void add_one(int fd, const char *path)
{
	char text[32] = "";
	long n;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		err(1, "%s can't be read", path);
	n = strtol(text, NULL, 10);
	snprintf(text, sizeof(text), "%ld\n", n + 1);
	if (pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
		err(1, "%s can't be written", path);
}

static int count(char **args)
{
	int fd = opened(args[1]), number = args[3] ? opened(args[3]) : fd;

	for (long n = atol(args[2]); n; n--) {
		if (locked(fd, args[0], F_WRLCK, 0, true) < 0)
			err(1, "%s can't be locked", args[1]);
		add_one(number, args[1]);
		if (locked(fd, args[0], F_UNLCK, 0, true) < 0)
			err(1, "%s can't be unlocked", args[1]);
	}
	return 0;
}

static int spin(char **args)
{
	int fd = opened(args[1]);

	for (long n = atol(args[2]); n; n--)
		if (locked(fd, args[0], F_WRLCK, 0, true) < 0 ||
			locked(fd, args[0], F_UNLCK, 0, true) < 0)
			err(1, "%s", args[1]);
	return 0;
}

int main(int argc, char **argv)
{
	char **args = argv + 2;
	const char *command = argc > 2 ? argv[1] : "";

	if (strcmp(command, "try") == 0 && argc == 6)
		return take(args, false, false);
	if (strcmp(command, "hold") == 0 && argc == 6)
		return take(args, true, true);
	if (strcmp(command, "wait") == 0 && argc == 6)
		return wait_for(args);
	if (strcmp(command, "cross") == 0 && argc == 6)
		return cross(args);
	if (strcmp(command, "get") == 0 && argc == 4)
		return get(args);
	if (strcmp(command, "close") == 0 && argc == 3)
		return close_another(args);
	if (strcmp(command, "pieces") == 0 && argc == 4)
		return pieces(args);
	if (strcmp(command, "spin") == 0 && argc == 5)
		return spin(args);
	if (strcmp(command, "count") == 0 && (argc == 5 || argc == 6))
		return count(args);
	errx(2, "see the head of locker.c");
}
