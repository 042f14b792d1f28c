/* keeper.c - keeps a file open and does to it what the lines of its standard input say. For each
 * line it prints the result: "ok", the line that it has read, or the error's name.
 *
 *     keeper PATH     opens it for reading and writing, creates it if it is missing; "ok"
 *
 *     write TEXT      appends it, with a newline
 *     fill            appends lines until one can't be written
 *     read [OFFSET]   prints the line there, by default the file's first one; "nothing" at its end
 *     hole [OFFSET]   prints where the next hole is, then "ok"
 *     fsync, close, quit
 *     map             shared; then:
 *     load            prints the first line as the mapping has it, or "SIGBUS"
 *     store TEXT      into the first line
 *     msync
 *     chmod, chown, touch, xattr
 *     link PATH       gives it another name
 *     flock, unflock  without waiting
 *     record, release a lock of the whole file, by fcntl(2), without waiting
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static void say(const char *words)
{
	puts(words);
	fflush(stdout);
}

static void say_result(long result)
{
	say(result < 0 ? strerrorname_np(errno) : "ok");
}

static void append(int fd, const char *text)
{
	char line[512];
	int len = snprintf(line, sizeof(line), "%s\n", text);
	off_t end = lseek(fd, 0, SEEK_END);

	say_result(end < 0 ? -1 : pwrite(fd, line, (size_t)len, end));
}

static void fill(int fd)
{
	static const char line[] = "one line of many\n";
	off_t at = lseek(fd, 0, SEEK_END);

	while (pwrite(fd, line, sizeof(line) - 1, at) == (ssize_t)sizeof(line) - 1)
		at += (off_t)sizeof(line) - 1;
	say_result(-1);
}

static void read_line(int fd, const char *offset)
{
	char line[512] = "";
	ssize_t n = pread(fd, line, sizeof(line) - 1, atoll(offset));

	line[strcspn(line, "\n")] = '\0';
	if (n < 0)
		say_result(-1);
	else
		say(n ? line : "nothing");
}

static void find_hole(int fd, const char *offset)
{
	off_t at = lseek(fd, atoll(offset), SEEK_HOLE);

	if (at >= 0)
		printf("%lld\n", (long long)at);
	say_result(at);
}

enum { MAPPED = 4096 };
static char *mapped;
static sigjmp_buf caught;

static void on_sigbus(int sig)
{
	siglongjmp(caught, sig);
}

static void map(int fd)
{
	signal(SIGBUS, on_sigbus);
	mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	say_result(mapped == MAP_FAILED ? -1 : 0);
}

static void load(void)
{
	char line[512];
	size_t len;

	if (sigsetjmp(caught, 1)) {
		say("SIGBUS");
		return;
	}
	len = strnlen(mapped, sizeof(line) - 1);
	memcpy(line, mapped, len);
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	say(line);
}

static void store(const char *text)
{
	if (sigsetjmp(caught, 1)) {
		say("SIGBUS");
		return;
	}
	for (size_t i = 0; text[i]; i++)
		mapped[i] = text[i];
	say("ok");
}

static void lock_all(int fd, short type)
{
	struct flock lock = {.l_type = type};

	say_result(fcntl(fd, F_SETLK, &lock));
}

static void obey(int fd, const char *word, const char *rest)
{
	if (strcmp(word, "write") == 0)
		append(fd, rest);
	else if (strcmp(word, "fill") == 0)
		fill(fd);
	else if (strcmp(word, "read") == 0)
		read_line(fd, rest);
	else if (strcmp(word, "hole") == 0)
		find_hole(fd, rest);
	else if (strcmp(word, "map") == 0)
		map(fd);
	else if (strcmp(word, "load") == 0)
		load();
	else if (strcmp(word, "store") == 0)
		store(rest);
	else if (strcmp(word, "msync") == 0)
		say_result(msync(mapped, MAPPED, MS_SYNC));
	else if (strcmp(word, "fsync") == 0)
		say_result(fsync(fd));
	else if (strcmp(word, "close") == 0)
		say_result(close(fd));
	else if (strcmp(word, "chmod") == 0)
		say_result(fchmod(fd, 0600));
	else if (strcmp(word, "chown") == 0)
		say_result(fchown(fd, 12, 34));
	else if (strcmp(word, "touch") == 0)
		say_result(futimens(fd, NULL));
	else if (strcmp(word, "xattr") == 0)
		say_result(fsetxattr(fd, "user.name", "value", 5, 0));
	else if (strcmp(word, "link") == 0)
		say_result(linkat(fd, "", AT_FDCWD, rest, AT_EMPTY_PATH));
	else if (strcmp(word, "flock") == 0)
		say_result(flock(fd, LOCK_EX | LOCK_NB));
	else if (strcmp(word, "unflock") == 0)
		say_result(flock(fd, LOCK_UN));
	else if (strcmp(word, "record") == 0)
		lock_all(fd, F_WRLCK);
	else if (strcmp(word, "release") == 0)
		lock_all(fd, F_UNLCK);
	else
		errx(2, "no such command: %s", word);
}

int main(int argc, char **argv)
{
	char line[512];
	int fd;

	if (argc != 2)
		errx(2, "keeper PATH");
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	say_result(fd);
	while (fd >= 0 && fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n") != 0) {
		char *rest;

		line[strcspn(line, "\n")] = '\0';
		rest = line + strcspn(line, " ");
		if (*rest)
			*rest++ = '\0';
		obey(fd, line, rest);
	}
	return 0;
}
