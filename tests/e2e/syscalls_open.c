/* syscalls_open.c - open(2) and its flags. */
#include "syscalls.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

static void exclusive(void)
{
	works(close((int)works(open("f", O_RDWR | O_CREAT | O_EXCL, 0600))));
	equal(mode_of("f"), 0600);
	fails(open("f", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	works(symlink("nowhere", "l"));
	fails(open("l", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	equal(inode_of("nowhere"), -1);
	works(mkdir("d", 0755));
	fails(open("d", O_RDONLY | O_CREAT | O_EXCL, 0600), EEXIST);
}

static void create_through_a_link(void)
{
	works(symlink("target", "l"));
	make("l", "through");
	same(text_of("target"), "through");
	equal(type_of("l"), S_IFLNK);
	works(symlink("missing/target", "m"));
	fails(open("m", O_WRONLY | O_CREAT, 0644), ENOENT);
}

static void nofollow(void)
{
	struct stat st;
	int fd;

	make("f", "");
	works(symlink("f", "l"));
	fails(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
	fails(open("l", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644), ELOOP);
	fd = (int)works(open("l", O_PATH | O_NOFOLLOW));
	works(fstat(fd, &st));
	equal(st.st_mode & S_IFMT, S_IFLNK);
	same(target_of("l"), "f");
	works(mkdir("d", 0755));
	works(symlink("d", "dl"));
	fails(open("dl", O_RDONLY | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
	works(open("dl/../f", O_RDONLY | O_NOFOLLOW));
}

static void directories(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	fails(open("d", O_WRONLY), EISDIR);
	fails(open("d", O_RDWR), EISDIR);
	fails(open("d", O_RDONLY | O_CREAT, 0644), EISDIR);
	fails(open("d", O_RDONLY | O_TRUNC), EISDIR);
	fails(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	fails(open("missing", O_RDONLY | O_DIRECTORY), ENOENT);
	works(open("d", O_RDONLY | O_DIRECTORY));
	fails(open("d", O_RDWR | O_DIRECTORY), EISDIR);
}

static void only_a_path(void)
{
	char buf[4];
	int fd;

	make("f", "text");
	works(chmod("f", 0));
	fd = (int)works(open("f", O_PATH));
	fails(read(fd, buf, sizeof(buf)), EBADF);
	fails(write(fd, buf, sizeof(buf)), EBADF);
	fails(fchmod(fd, 0644), EBADF);
	fails(fchown(fd, 0, 0), EBADF);
	fails(ftruncate(fd, 0), EBADF);
	fails(fsync(fd), EBADF);
	works(fstat(fd, &(struct stat){0}));
	equal(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	works(close(fd));
}

static void truncates(void)
{
	int fd;

	make("f", "text");
	fd = (int)works(open("f", O_RDONLY));
	works(close((int)works(open("f", O_RDWR | O_TRUNC))));
	equal(size_of("f"), 0);
	same(text_of_fd(fd), "");
	make("f", "again");
	works(close((int)works(open("f", O_WRONLY | O_CREAT | O_TRUNC, 0600))));
	equal(size_of("f"), 0);
	equal(mode_of("f"), 0644);
}

static void read_or_write_only(void)
{
	char *volatile nowhere = (char *)1; /* volatile: the compiler must not know it */
	char buf[8] = "";
	int fd;

	make("f", "text");
	fd = (int)works(open("f", O_RDONLY));
	fails(write(fd, "x", 1), EBADF);
	fails(pwrite(fd, "x", 1, 0), EBADF);
	fails(ftruncate(fd, 0), EINVAL);
	fd = (int)works(open("f", O_WRONLY));
	fails(read(fd, buf, sizeof(buf)), EBADF);
	fails(pread(fd, buf, sizeof(buf), 0), EBADF);
	fd = (int)works(open("f", O_RDWR));
	fails(pread(fd, buf, sizeof(buf), -1), EINVAL);
	fails(pwrite(fd, buf, sizeof(buf), -1), EINVAL);
	fails(read(fd, nowhere, 4), EFAULT);
	fails(write(fd, nowhere, 4), EFAULT);
	same(text_of("f"), "text");
}

static void append(void)
{
	int one = (int)works(open("f", O_WRONLY | O_CREAT | O_APPEND, 0644));
	int two = (int)works(open("f", O_WRONLY | O_APPEND));
	int plain = (int)works(open("f", O_RDWR));

	equal(write(one, "a", 1), 1);
	equal(write(two, "b", 1), 1);
	equal(lseek(one, 0, SEEK_SET), 0);
	equal(write(one, "c", 1), 1);
	equal(lseek(one, 0, SEEK_CUR), 3);
	equal(pwrite(two, "d", 1, 0), 1);
	same(text_of("f"), "abcd");
	works(fcntl(plain, F_SETFL, O_APPEND));
	equal(write(plain, "e", 1), 1);
	works(fcntl(plain, F_SETFL, 0));
	equal(pwrite(plain, "A", 1, 0), 1);
	same(text_of("f"), "Abcde");
	works(ftruncate(plain, 1));
	equal(write(one, "z", 1), 1);
	same(text_of("f"), "Az");
}

static void synchronous(void)
{
	static const int flags[] = {O_SYNC, O_DSYNC, O_SYNC | O_APPEND, O_DSYNC | O_TRUNC};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		int fd = (int)works(open("f", O_WRONLY | O_CREAT | flags[i], 0644));

		equal(write(fd, "text", 4), 4);
		works(fdatasync(fd));
		works(fsync(fd));
		works(close(fd));
		works(unlink("f"));
	}
}

static void until_it_runs(pid_t pid, const char *name)
{
	char link[64], target[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	do {
		sched_yield();
		n = readlink(link, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
	} while (!strstr(target, name));
}

/* A file that is open for writing can't be executed, and a running program can't be written. */
static void busy_programs(void)
{
	char *const args[] = {(char *)"./program", (char *)"10", NULL};
	int status, fd;
	pid_t pid;

	works(system("cp /bin/sleep program"));
	fd = (int)works(open("program", O_WRONLY));
	fails(execv("./program", args), ETXTBSY);
	works(close(fd));
	pid = (pid_t)works(fork());
	if (pid == 0) {
		execv("./program", args);
		_exit(1);
	}
	until_it_runs(pid, "/program");
	fails(open("program", O_WRONLY), ETXTBSY);
	fails(truncate("program", 0), ETXTBSY);
	works(chmod("program", 0700));
	works(rename("program", "renamed"));
	works(unlink("renamed"));
	works(kill(pid, SIGKILL));
	works(waitpid(pid, &status, 0));
}

static void fifos(void)
{
	int in, out;

	works(mkfifo("p", 0644));
	fails(open("p", O_WRONLY | O_NONBLOCK), ENXIO);
	in = (int)works(open("p", O_RDONLY | O_NONBLOCK));
	out = (int)works(open("p", O_WRONLY | O_NONBLOCK));
	fails(read(in, (char[4]){0}, 4), EAGAIN);
	equal(write(out, "byte", 4), 4);
	equal(read(in, (char[4]){0}, 4), 4);
	fails(lseek(in, 0, SEEK_SET), ESPIPE);
	fails(ftruncate(out, 0), EINVAL);
	works(close(out));
	equal(read(in, (char[4]){0}, 4), 0);
	works(open("p", O_RDWR | O_TRUNC));
}

static void sockets(void)
{
	works(mknod("s", S_IFSOCK | 0644, 0));
	fails(open("s", O_RDONLY), ENXIO);
	fails(open("s", O_RDWR), ENXIO);
	works(open("s", O_PATH));
}

static void numbers_and_names_are_apart(void)
{
	struct stat st;
	int one, two, third;

	make("f", "text");
	one = (int)works(open("f", O_RDWR));
	two = (int)works(open("f", O_RDWR));
	third = (int)works(dup(one));
	equal(lseek(one, 2, SEEK_SET), 2);
	equal(lseek(two, 0, SEEK_CUR), 0);
	equal(lseek(third, 0, SEEK_CUR), 2);
	equal(write(third, "XT", 2), 2);
	equal(lseek(one, 0, SEEK_CUR), 4);
	works(close(one));
	works(fstat(third, &st));
	equal(st.st_size, 4);
	same(text_of_fd(two), "teXT");
	fails(close(one), EBADF);
	fails(read(one, (char[1]){0}, 1), EBADF);
}

static void seeking(void)
{
	int fd;

	make("f", "0123456789");
	fd = (int)works(open("f", O_RDWR));
	equal(lseek(fd, 3, SEEK_SET), 3);
	equal(lseek(fd, 3, SEEK_CUR), 6);
	equal(lseek(fd, -1, SEEK_END), 9);
	equal(lseek(fd, 100, SEEK_END), 110);
	equal(read(fd, (char[1]){0}, 1), 0);
	equal(size_of("f"), 10);
	fails(lseek(fd, -1, SEEK_SET), EINVAL);
	fails(lseek(fd, -11, SEEK_END), EINVAL);
	fails(lseek(fd, 0, 99), EINVAL);
	equal(lseek(fd, 0, SEEK_CUR), 110);
	equal(write(fd, "x", 1), 1);
	equal(size_of("f"), 111);
}

static void other_flags(void)
{
	int fd;

	make("f", "text");
	works(open("f", O_RDONLY | O_NONBLOCK));
	works(open("f", O_RDONLY | O_NOCTTY | O_CLOEXEC));
	works(open("f", O_RDONLY | O_NOATIME));
	works(open("f", O_RDWR | O_DIRECT));
	fd = (int)works(open("f", O_RDONLY));
	works(fcntl(fd, F_SETFL, O_NONBLOCK));
	works(fcntl(fd, F_SETFL, O_DIRECT));
	equal(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_DIRECT), O_DIRECT);
	same(target_of("/proc/self/fd/0"), target_of("/proc/self/fd/0"));
}

static void noatime_is_the_owners(void)
{
	make_mode("f", 0666);
	as(ALICE, ALICE);
	fails(open("f", O_RDONLY | O_NOATIME), EPERM);
	works(open("f", O_RDONLY));
}

static const struct syscall_case table[] = {
	{"O_EXCL", exclusive},
	{"O_CREAT through a link that leads nowhere", create_through_a_link},
	{"O_NOFOLLOW", nofollow},
	{"directories, O_DIRECTORY", directories},
	{"O_PATH", only_a_path},
	{"O_TRUNC", truncates},
	{"O_RDONLY and O_WRONLY", read_or_write_only},
	{"O_APPEND", append},
	{"O_SYNC and O_DSYNC", synchronous},
	{"ETXTBSY", busy_programs},
	{"FIFOs", fifos},
	{"sockets", sockets},
	{"descriptors that share a position, and that do not", numbers_and_names_are_apart},
	{"lseek", seeking},
	{"other flags", other_flags},
	{"O_NOATIME is the owner's", noatime_is_the_owners, NEEDS_ROOT},
};
SYSCALL_AREA(area_open, table);
