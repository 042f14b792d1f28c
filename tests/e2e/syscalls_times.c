/* syscalls_times.c - the times that each call changes, and the rights to set them. */
#include "syscalls.h"

#include <sys/time.h>
#include <sys/xattr.h>
#include <time.h>
#include <utime.h>

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	works(lstat(path, &st));
	return st;
}

/* Waits until new stamps are later than `since`: those of new names and those of written data,
 * which may come from different clocks. */
static void let_time_pass(const struct stat *since)
{
	int fd = (int)works(open("probe", O_WRONLY | O_CREAT, 0644));

	do {
		works(chmod(".", 0755));
		equal(pwrite(fd, "p", 1, 0), 1);
	} while (!later(stat_of(".").st_ctim, since->st_ctim) ||
		 !later(stat_of("probe").st_ctim, since->st_ctim));
	works(close(fd));
}

static void does_nothing(void)
{
	works(access("d/f", F_OK));
}

static void does_write(void)
{
	int fd = (int)works(open("d/f", O_WRONLY));

	equal(write(fd, "x", 1), 1);
	works(close(fd));
}

static void does_write_nothing(void)
{
	int fd = (int)works(open("d/f", O_WRONLY));

	equal(write(fd, "x", 0), 0);
	works(close(fd));
}

static void does_truncate_shorter(void)
{
	works(truncate("d/f", 1));
}

static void does_truncate_longer(void)
{
	works(truncate("d/f", 100));
}

static void does_truncate_to_same(void)
{
	works(truncate("d/f", 4));
}

static void does_ftruncate_to_same(void)
{
	int fd = (int)works(open("d/f", O_WRONLY));

	works(ftruncate(fd, 4));
	works(close(fd));
}

static void does_open_truncating(void)
{
	works(close((int)works(open("d/f", O_WRONLY | O_TRUNC))));
}

static void does_open_creating(void)
{
	works(close((int)works(open("d/f", O_WRONLY | O_CREAT, 0644))));
}

static void does_chmod(void)
{
	works(chmod("d/f", 0600));
}

static void does_chown(void)
{
	works(chown("d/f", geteuid(), getegid()));
}

static void does_utimensat(void)
{
	const struct timespec old[2] = {{1000000000, 1}, {1000000000, 2}};

	works(utimensat(AT_FDCWD, "d/f", old, 0));
}

static void does_link(void)
{
	works(link("d/f", "d/new"));
}

static void does_link_elsewhere(void)
{
	works(link("d/f", "new"));
}

static void does_unlink_other_name(void)
{
	works(unlink("d/second"));
}

static void does_rename(void)
{
	works(rename("d/second", "d/third"));
}

static void does_rename_elsewhere(void)
{
	works(rename("d/second", "new"));
}

static void does_rename_over(void)
{
	works(rename("d/other", "d/second"));
}

static void does_create(void)
{
	make("d/new", "");
}

static void does_mkdir(void)
{
	works(mkdir("d/new", 0755));
}

static void does_mknod(void)
{
	works(mkfifo("d/new", 0644));
}

static void does_symlink(void)
{
	works(symlink("x", "d/new"));
}

static void does_unlink(void)
{
	works(unlink("d/other"));
}

static void does_rmdir(void)
{
	works(rmdir("d/sub"));
}

static void does_mkdir_below(void)
{
	works(mkdir("d/sub/new", 0755));
}

static void does_fail(void)
{
	fails(mkdir("d/f", 0755), EEXIST);
	fails(rmdir("d"), ENOTEMPTY);
	fails(rename("d/f", "d/sub"), EISDIR);
	fails(open("d/f", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
}

static void does_exchange(void)
{
	works(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/other", RENAME_EXCHANGE));
	works(renameat2(AT_FDCWD, "d/f", AT_FDCWD, "d/other", RENAME_EXCHANGE));
}

/* Another file replaces one of its names. */
static void does_lose_a_name(void)
{
	make("new", "");
	works(rename("new", "d/second"));
}

static void does_whiteout(void)
{
	works(renameat2(AT_FDCWD, "d/second", AT_FDCWD, "new", RENAME_WHITEOUT));
}

static void does_rename_onto_itself(void)
{
	works(rename("d/f", "d/second"));
	works(rename("d/f", "d/f"));
}

static void does_move_a_directory_out(void)
{
	works(rename("d/sub", "new"));
}

static void does_setxattr(void)
{
	works(setxattr("d/f", "user.name", "value", 5, 0));
}

static void does_allocate(void)
{
	int fd = (int)works(open("d/f", O_WRONLY));

	works(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10000));
	works(close(fd));
}

static void does_copy(void)
{
	int from = (int)works(open("d/other", O_RDONLY)), to = (int)works(open("d/f", O_WRONLY));

	equal(copy_file_range(from, NULL, to, NULL, 4, 0), 4);
	works(close(from));
	works(close(to));
}

static void does_read(void)
{
	struct stat st;

	works(stat("d/f", &st));
	same(text_of("d/f"), "text");
	works(close((int)works(open("d", O_RDONLY | O_DIRECTORY))));
	works(listxattr("d/f", NULL, 0));
	works(fsync((int)works(open("d/f", O_RDONLY))));
}

static void does_fail_by_rights(void)
{
	if (geteuid() != 0)
		return;
	as(ALICE, ALICE);
	fails(chmod("d/f", 0600), EPERM);
	fails(chown("d/f", ALICE, (gid_t)-1), EPERM);
	fails(unlink("d/f"), EACCES);
	fails(rename("d/f", "d/new"), EACCES);
	fails(mkdir("d/new", 0755), EACCES);
	fails(open("d/f", O_WRONLY | O_TRUNC), EACCES);
	fails(truncate("d/f", 0), EACCES);
	fails(setxattr("d/f", "user.name", "value", 5, 0), EACCES);
	as_root();
}

enum { MTIME = 1, CTIME = 2, BOTH = 3 };

/* Effects on d/f, whose other name is d/second, and on the folder d. */
static const struct effect {
	const char *name;
	void (*does)(void);
	unsigned on_file, on_folder;
} effects[] = {
	{"access", does_nothing, 0, 0},
	{"write", does_write, BOTH, 0},
	{"write of nothing", does_write_nothing, 0, 0},
	{"truncate shorter", does_truncate_shorter, BOTH, 0},
	{"truncate longer", does_truncate_longer, BOTH, 0},
	{"truncate to the same", does_truncate_to_same, BOTH, 0},
	{"ftruncate to the same", does_ftruncate_to_same, BOTH, 0},
	{"O_TRUNC", does_open_truncating, BOTH, 0},
	{"O_CREAT of what is there", does_open_creating, 0, 0},
	{"chmod", does_chmod, CTIME, 0},
	{"chown", does_chown, CTIME, 0},
	{"utimensat", does_utimensat, CTIME, 0},
	{"link", does_link, CTIME, BOTH},
	{"link elsewhere", does_link_elsewhere, CTIME, 0},
	{"unlink of another name", does_unlink_other_name, CTIME, BOTH},
	{"rename", does_rename, CTIME, BOTH},
	{"rename elsewhere", does_rename_elsewhere, CTIME, BOTH},
	{"rename over another name", does_rename_over, CTIME, BOTH},
	{"create", does_create, 0, BOTH},
	{"mkdir", does_mkdir, 0, BOTH},
	{"mknod", does_mknod, 0, BOTH},
	{"symlink", does_symlink, 0, BOTH},
	{"unlink", does_unlink, 0, BOTH},
	{"rmdir", does_rmdir, 0, BOTH},
	{"mkdir below", does_mkdir_below, 0, 0},
	{"RENAME_EXCHANGE", does_exchange, CTIME, BOTH},
	{"rename over one of its names", does_lose_a_name, CTIME, BOTH},
	{"RENAME_WHITEOUT", does_whiteout, CTIME, BOTH},
	{"rename onto itself", does_rename_onto_itself, 0, 0},
	{"a directory moves out", does_move_a_directory_out, 0, BOTH},
	{"setxattr", does_setxattr, CTIME, 0},
	{"fallocate that keeps the size", does_allocate, BOTH, 0},
	{"copy_file_range", does_copy, BOTH, 0},
	{"what reads", does_read, 0, 0},
	{"what fails", does_fail, 0, 0},
	{"what fails by rights", does_fail_by_rights, 0, 0},
};

static void make_folder(void)
{
	const struct timespec old[2] = {{1000000000, 1}, {1000000000, 2}};

	works(mkdir("d", 0755));
	works(mkdir("d/sub", 0755));
	make("d/f", "text");
	make("d/other", "more");
	works(link("d/f", "d/second"));
	works(utimensat(AT_FDCWD, "d/f", old, 0));
	works(utimensat(AT_FDCWD, "d", old, 0));
}

static unsigned changes(const struct stat *before, const struct stat *after)
{
	return (later(after->st_mtim, before->st_mtim) ? MTIME : 0) |
	       (later(after->st_ctim, before->st_ctim) ? CTIME : 0);
}

static void what_changes_what(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		struct stat file, folder, file_after, folder_after;

		make_folder();
		file = stat_of("d/f");
		folder = stat_of("d");
		let_time_pass(&file);
		let_time_pass(&folder);
		effects[i].does();
		file_after = stat_of("d/f");
		folder_after = stat_of("d");
		expect_equal(effects[i].name, 0, "on the file", changes(&file, &file_after),
			effects[i].on_file);
		expect_equal(effects[i].name, 0, "on the folder", changes(&folder, &folder_after),
			effects[i].on_folder);
		works(system("rm -rf d new"));
	}
}

/* All stamps of a new file are the same, and not earlier than the folder's before. */
static void stamps_of_what_is_new(void)
{
	struct stat before = stat_of("."), st;

	let_time_pass(&before);
	make("f", "");
	st = stat_of("f");
	holds(later(st.st_mtim, before.st_mtim));
	equal(st.st_ctim.tv_nsec, st.st_mtim.tv_nsec);
	equal(st.st_atim.tv_nsec, st.st_mtim.tv_nsec);
	works(mkdir("d", 0755));
	st = stat_of("d");
	equal(st.st_ctim.tv_nsec, st.st_mtim.tv_nsec);
	equal(stat_of(".").st_mtim.tv_nsec, st.st_mtim.tv_nsec);
}

static void set_to_the_nanosecond(void)
{
	static const struct timespec times[] = {
		{1, 1},
		{0, 0},
		{-1, 999999999},
		{-2000000000, 5},
		{2147483647, 999999999},
		{4294967296, 123456789},
		{8000000000, 1},
	};

	make("f", "");
	works(mkdir("d", 0755));
	works(symlink("f", "l"));
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		const struct timespec both[2] = {times[i], times[ARRAY_SIZE(times) - 1 - i]};

		for (const char *name = "f"; name; name = *name == 'f'   ? "d"
							  : *name == 'd' ? "l"
									 : NULL) {
			struct stat st;

			works(utimensat(AT_FDCWD, name, both, AT_SYMLINK_NOFOLLOW));
			st = stat_of(name);
			equal(st.st_atim.tv_sec, both[0].tv_sec);
			equal(st.st_atim.tv_nsec, both[0].tv_nsec);
			equal(st.st_mtim.tv_sec, both[1].tv_sec);
			equal(st.st_mtim.tv_nsec, both[1].tv_nsec);
		}
	}
}

static void now_and_omit(void)
{
	const struct timespec old[2] = {{1000, 1}, {2000, 2}};
	const struct timespec mtime[2] = {{0, UTIME_OMIT}, {3000, 3}};
	const struct timespec atime[2] = {{4000, 4}, {0, UTIME_OMIT}};
	const struct timespec none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	const struct timespec one_now[2] = {{5000, 5}, {0, UTIME_NOW}};
	const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	struct stat st, was;

	make("f", "");
	works(utimensat(AT_FDCWD, "f", old, 0));
	works(utimensat(AT_FDCWD, "f", mtime, 0));
	st = stat_of("f");
	equal(st.st_atim.tv_sec, 1000);
	equal(st.st_mtim.tv_sec, 3000);
	works(utimensat(AT_FDCWD, "f", atime, 0));
	was = stat_of("f");
	equal(was.st_atim.tv_sec, 4000);
	equal(was.st_mtim.tv_nsec, 3);
	let_time_pass(&was);
	works(utimensat(AT_FDCWD, "f", none, 0));
	st = stat_of("f");
	equal(st.st_mtim.tv_sec, 3000);
	equal(st.st_ctim.tv_nsec, was.st_ctim.tv_nsec);
	works(utimensat(AT_FDCWD, "f", one_now, 0));
	st = stat_of("f");
	equal(st.st_atim.tv_sec, 5000);
	holds(st.st_mtim.tv_sec > 1000000);
	equal(st.st_mtim.tv_nsec, st.st_ctim.tv_nsec);
	works(utimensat(AT_FDCWD, "f", now, 0));
	st = stat_of("f");
	equal(st.st_atim.tv_nsec, st.st_mtim.tv_nsec);
	holds(st.st_atim.tv_sec > 1000000);
}

static void wrong_times(void)
{
	const struct timespec much[2] = {{0, 1000000000}, {0, 0}};
	const struct timespec less[2] = {{0, 0}, {0, -5}};

	make("f", "");
	fails(utimensat(AT_FDCWD, "f", much, 0), EINVAL);
	fails(utimensat(AT_FDCWD, "f", less, 0), EINVAL);
	fails(utimensat(AT_FDCWD, "f", NULL, 0x8000), EINVAL);
	fails(futimens(99, NULL), EBADF);
	fails(futimens((int)works(open("f", O_PATH)), NULL), EBADF);
}

static void older_calls(void)
{
	const struct utimbuf times = {.actime = 100, .modtime = 200};
	const struct timeval values[2] = {{300, 5}, {400, 6}};

	make("f", "");
	works(utime("f", &times));
	equal(stat_of("f").st_mtim.tv_sec, 200);
	works(utimes("f", values));
	equal(stat_of("f").st_atim.tv_sec, 300);
	equal(stat_of("f").st_mtim.tv_nsec, 6000);
	works(utime("f", NULL));
	holds(stat_of("f").st_mtim.tv_sec > 1000);
}

/* A caller who may write may set them to now. Only the owner may set other times. */
static void who_may_set_them(void)
{
	const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	const struct timespec one_now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
	const struct timespec none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	const struct timespec old[2] = {{1, 1}, {1, 1}};

	make_mode("writable", 0666);
	make_mode("readable", 0644);
	make_mode("owned", 0);
	works(chown("owned", ALICE, ALICE));
	as(ALICE, ALICE);
	works(utimensat(AT_FDCWD, "writable", NULL, 0));
	works(utimensat(AT_FDCWD, "writable", now, 0));
	fails(utimensat(AT_FDCWD, "writable", one_now, 0), EPERM);
	fails(utimensat(AT_FDCWD, "writable", old, 0), EPERM);
	works(utimensat(AT_FDCWD, "writable", none, 0));
	fails(utimensat(AT_FDCWD, "readable", NULL, 0), EACCES);
	fails(utimensat(AT_FDCWD, "readable", now, 0), EACCES);
	fails(utimensat(AT_FDCWD, "readable", old, 0), EPERM);
	works(utimensat(AT_FDCWD, "readable", none, 0));
	works(utimensat(AT_FDCWD, "owned", NULL, 0));
	works(utimensat(AT_FDCWD, "owned", old, 0));
	works(utimensat(AT_FDCWD, "owned", one_now, 0));
}

/* Times that were set stay, even if earlier writes are committed later. */
static void set_after_a_write(void)
{
	const struct timespec old[2] = {{1000, 1}, {2000, 2}};
	struct stat st;
	int fd = (int)works(open("f", O_RDWR | O_CREAT, 0644));

	equal(write(fd, "text", 4), 4);
	works(futimens(fd, old));
	works(fsync(fd));
	works(close(fd));
	st = stat_of("f");
	equal(st.st_mtim.tv_sec, 2000);
	equal(st.st_mtim.tv_nsec, 2);
	equal(st.st_atim.tv_sec, 1000);
}

static const struct syscall_case table[] = {
	{"what changes mtime and ctime, of file and folder", what_changes_what},
	{"times of what is new", stamps_of_what_is_new},
	{"times are kept to the nanosecond, far ones too", set_to_the_nanosecond},
	{"UTIME_NOW and UTIME_OMIT", now_and_omit},
	{"times that can't be", wrong_times},
	{"utime and utimes", older_calls},
	{"who may set them", who_may_set_them, NEEDS_ROOT},
	{"times that are set after a write stay", set_after_a_write},
};
SYSCALL_AREA(area_times, table);
