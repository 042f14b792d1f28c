/* syscalls_unlinked.c - open files that have lost their last name. */
#include "syscalls.h"

static int opened_and_unlinked(const char *name)
{
	int fd = (int)works(open(name, O_RDWR | O_CREAT | O_EXCL, 0644));

	works(unlink(name));
	return fd;
}

static void all_is_as_before(void)
{
	struct stat st;
	char buf[8192];
	int fd = opened_and_unlinked("f");

	memset(buf, 'u', sizeof(buf));
	works(fstat(fd, &st));
	equal(st.st_nlink, 0);
	equal(write(fd, buf, sizeof(buf)), sizeof(buf));
	works(fsync(fd));
	works(ftruncate(fd, 100));
	equal(pread(fd, buf, sizeof(buf), 0), 100);
	equal(buf[99], 'u');
	works(ftruncate(fd, 1 << 20));
	equal(pread(fd, buf, 1, 1 << 19), 1);
	equal(buf[0], 0);
	works(fchmod(fd, 0600));
	works(futimens(fd, (struct timespec[2]){{1, 1}, {2, 2}}));
	works(fstat(fd, &st));
	equal(st.st_mode & 07777, 0600);
	equal(st.st_mtim.tv_sec, 2);
	equal(st.st_size, 1 << 20);
	equal(st.st_nlink, 0);
	works(close(fd));
}

static void opened_again_by_number(void)
{
	char path[64];
	int fd = opened_and_unlinked("f"), again;

	equal(write(fd, "text", 4), 4);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = (int)works(open(path, O_RDWR));
	same(text_of_fd(again), "text");
	works(close(fd));
	equal(pwrite(again, "T", 1, 0), 1);
	same(text_of_fd(again), "Text");
	works(ftruncate(again, 2));
	same(text_of_fd(again), "Te");
}

static void no_new_name(void)
{
	char path[64];
	int fd = opened_and_unlinked("f");

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fails(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW), ENOENT);
	equal(inode_of("g"), -1);
}

static void name_used_again(void)
{
	struct stat old, new;
	int fd = opened_and_unlinked("f");

	equal(write(fd, "old", 3), 3);
	make("f", "new");
	same(text_of("f"), "new");
	same(text_of_fd(fd), "old");
	works(fstat(fd, &old));
	works(stat("f", &new));
	holds(old.st_ino != new.st_ino);
	works(close(fd));
	same(text_of("f"), "new");
}

static void read_by_a_child(void *arg)
{
	same(text_of_fd(*(int *)arg), "inherited");
}

static void inherited(void)
{
	int fd = opened_and_unlinked("f");

	equal(write(fd, "inherited", 9), 9);
	finished(child(read_by_a_child, &fd));
	same(text_of_fd(fd), "inherited");
}

static void removed_folder_below(void)
{
	int fd;

	works(mkdir("d", 0755));
	fd = opened_and_unlinked("d/f");
	works(rmdir("d"));
	equal(write(fd, "text", 4), 4);
	same(text_of_fd(fd), "text");
}

static void by_the_other_name(void)
{
	struct stat st;
	int fd;

	make("a", "text");
	works(link("a", "b"));
	fd = (int)works(open("a", O_RDWR));
	works(unlink("a"));
	works(fstat(fd, &st));
	equal(st.st_nlink, 1);
	equal(pwrite(fd, "T", 1, 0), 1);
	same(text_of("b"), "Text");
	works(unlink("b"));
	works(fstat(fd, &st));
	equal(st.st_nlink, 0);
	same(text_of_fd(fd), "Text");
}

static void many_of_them(void)
{
	int fds[200];

	for (int i = 0; i < 200; i++) {
		fds[i] = opened_and_unlinked("f");
		equal(write(fds[i], &i, sizeof(i)), sizeof(i));
	}
	for (int i = 0; i < 200; i++) {
		int value = -1;

		equal(pread(fds[i], &value, sizeof(value), 0), sizeof(value));
		equal(value, i);
		works(close(fds[i]));
	}
}

/* Open FIFOs: the kernel does not tell the filesystem that they are open. */
static void special_files(void)
{
	struct stat st;
	int fds[200];

	for (int i = 0; i < 200; i++) {
		works(mkfifo("p", 0644));
		fds[i] = (int)works(open("p", O_RDWR));
		works(unlink("p"));
	}
	for (int i = 0; i < 200; i++) {
		works(fchmod(fds[i], 0600));
		works(futimens(fds[i], (struct timespec[2]){{1, 1}, {2, 2}}));
		works(fstat(fds[i], &st));
		equal(st.st_mode, S_IFIFO | 0600);
		equal(st.st_mtim.tv_sec, 2);
		equal(st.st_nlink, 0);
		equal(write(fds[i], "text", 4), 4);
		equal(read(fds[i], (char[4]){0}, 4), 4);
		works(close(fds[i]));
	}
}

static const struct syscall_case table[] = {
	{"everything is as before, but for the name", all_is_as_before},
	{"opened again by its number", opened_again_by_number},
	{"it gets no new name", no_new_name},
	{"its name is used again", name_used_again},
	{"a child inherits it", inherited},
	{"its folder is removed, too", removed_folder_below},
	{"one name goes and another stays", by_the_other_name},
	{"many of one name", many_of_them},
	{"FIFOs that are open", special_files},
};
SYSCALL_AREA(area_unlinked, table);
