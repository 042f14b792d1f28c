/* syscalls_permissions.c - rights: modes, folders, sticky folders. */
#include "syscalls.h"

#include <sys/inotify.h>
#include <unistd.h>

/* Only the bits of the caller's own class count, even if another class's would allow more. */
static void classes(void)
{
	works(chmod(".", 0755));
	make_mode("f", 0467);
	works(chown("f", ALICE, THEIR_GROUP));
	as_with_group(ALICE, ALICE, THEIR_GROUP);
	works(access("f", F_OK));
	works(open("f", O_RDONLY));
	fails(open("f", O_WRONLY), EACCES);
	fails(open("f", O_RDWR), EACCES);
	as_with_group(BOB, BOB, THEIR_GROUP);
	works(open("f", O_RDWR));
	fails(truncate("missing", 0), ENOENT);
	as(BOB, BOB);
	works(open("f", O_RDWR));
	as_root();
	works(chmod("f", 0640));
	as_with_group(BOB, BOB, THEIR_GROUP);
	works(open("f", O_RDONLY));
	fails(open("f", O_WRONLY), EACCES);
	fails(truncate("f", 0), EACCES);
	as(BOB, BOB);
	fails(open("f", O_RDONLY), EACCES);
	fails(faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS), EACCES);
}

static void own_file_without_rights(void)
{
	make_mode("f", 0);
	fails(open("f", O_RDONLY), EACCES);
	fails(open("f", O_WRONLY), EACCES);
	fails(access("f", R_OK), EACCES);
	fails(truncate("f", 0), EACCES);
	works(access("f", F_OK));
	works(chmod("f", 0200));
	works(open("f", O_WRONLY | O_TRUNC));
	fails(open("f", O_RDONLY), EACCES);
	works(chmod("f", 0400));
	fails(open("f", O_RDONLY | O_TRUNC), EACCES);
	fails(open("f", O_WRONLY | O_CREAT, 0644), EACCES);
}

static void rights_are_checked_at_open(void)
{
	int fd;

	make_mode("f", 0644);
	works(chown(".", ALICE, ALICE));
	works(chown("f", ALICE, ALICE));
	as(ALICE, ALICE);
	fd = (int)works(open("f", O_RDWR));
	works(chmod("f", 0));
	equal(write(fd, "still", 5), 5);
	same(text_of_fd(fd), "still");
	works(ftruncate(fd, 2));
	fails(open("f", O_RDONLY), EACCES);
	fd = (int)works(open("new", O_RDWR | O_CREAT | O_EXCL, 0));
	equal(write(fd, "new", 3), 3);
	same(text_of_fd(fd), "new");
}

static void folder_without_write(void)
{
	works(mkdir("d", 0755));
	make("d/f", "");
	make("f", "");
	works(mkdir("d/sub", 0755));
	works(chown("d/sub", ALICE, ALICE));
	works(chown("d/f", ALICE, ALICE));
	works(chown("f", ALICE, ALICE));
	works(chown(".", ALICE, ALICE));
	as(ALICE, ALICE);
	fails(open("d/g", O_WRONLY | O_CREAT, 0644), EACCES);
	fails(mkdir("d/g", 0755), EACCES);
	fails(mkfifo("d/g", 0644), EACCES);
	fails(symlink("x", "d/g"), EACCES);
	fails(link("f", "d/g"), EACCES);
	fails(unlink("d/f"), EACCES);
	fails(rmdir("d/sub"), EACCES);
	fails(rename("d/f", "d/g"), EACCES);
	fails(rename("d/f", "g"), EACCES);
	fails(rename("f", "d/f"), EACCES);
	works(chmod("d/f", 0600));
	works(open("d/f", O_RDWR | O_CREAT, 0644));
	fails(open("d/f", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
}

/* A directory that moves gets another "..", so the caller needs the right to write to it. */
static void moving_a_directory_that_is_not_ours(void)
{
	works(mkdir("from", 0777));
	works(mkdir("to", 0777));
	works(mkdir("from/d", 0755));
	make_mode("from/f", 0644);
	as(ALICE, ALICE);
	works(rename("from/f", "to/f"));
	works(rename("from/d", "from/e"));
	fails(rename("from/e", "to/e"), EACCES);
	as_root();
	works(chmod("from/e", 0757));
	as(ALICE, ALICE);
	works(rename("from/e", "to/e"));
}

static void sticky_folder(void)
{
	works(mkdir("tmp", 01777));
	works(mkdir("other", 0777));
	make_mode("tmp/alice", 0666);
	works(chown("tmp/alice", ALICE, ALICE));
	works(mkdir("tmp/dir", 0777));
	works(chown("tmp/dir", ALICE, ALICE));
	as(BOB, BOB);
	fails(unlink("tmp/alice"), EPERM);
	fails(rmdir("tmp/dir"), EPERM);
	fails(rename("tmp/alice", "tmp/bob"), EPERM);
	fails(rename("tmp/alice", "other/alice"), EPERM);
	make("tmp/bob", "");
	fails(rename("tmp/bob", "tmp/alice"), EPERM);
	fails(renameat2(AT_FDCWD, "tmp/bob", AT_FDCWD, "tmp/alice", RENAME_EXCHANGE), EPERM);
	works(rename("tmp/bob", "tmp/robert"));
	works(unlink("tmp/robert"));
	works(open("tmp/alice", O_RDWR));
	as(ALICE, ALICE);
	works(unlink("tmp/alice"));
	works(rename("tmp/dir", "other/dir"));
}

static void owner_of_a_sticky_folder(void)
{
	works(mkdir("tmp", 01777));
	works(chown("tmp", ALICE, ALICE));
	make("tmp/a", "");
	make("tmp/b", "");
	works(mkdir("tmp/d", 0755));
	as(ALICE, ALICE);
	works(unlink("tmp/a"));
	works(rename("tmp/b", "tmp/c"));
	works(rmdir("tmp/d"));
}

static void reading_a_folder(void)
{
	int fd;

	works(mkdir("d", 0755));
	make("d/f", "inside");
	works(chmod("d", 0311));
	if (geteuid() == 0)
		as(ALICE, ALICE);
	fails(open("d", O_RDONLY | O_DIRECTORY), EACCES);
	same(text_of("d/f"), "inside");
	fd = (int)works(open("d", O_PATH));
	same(text_of_fd((int)works(openat(fd, "f", O_RDONLY))), "inside");
	fails(inotify_add_watch(inotify_init(), "d", IN_CREATE), EACCES);
}

static void running_a_file(void)
{
	char *const args[] = {(char *)"true", NULL};

	make("f", "#!/bin/sh\nexit 0\n");
	works(chmod("f", 0666));
	fails(execv("f", args), EACCES);
	fails(access("f", X_OK), EACCES);
	works(chmod("f", 0755));
	works(access("f", X_OK));
	make("g", "no program");
	works(chmod("g", 0755));
	fails(execv("g", args), ENOEXEC);
	works(mkdir("d", 0755));
	fails(execv("d", args), EACCES);
}

/* access(2) checks the real user, faccessat(2) with AT_EACCESS the effective one. */
static void access_by_real_user(void)
{
	make_mode("f", 0600);
	works(setresuid(ALICE, 0, 0));
	fails(access("f", R_OK), EACCES);
	works(faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS));
}

static void root_may(void)
{
	works(mkdir("d", 0));
	make_mode("d/f", 0);
	works(chown("d/f", ALICE, ALICE));
	works(chown("d", ALICE, ALICE));
	works(open("d/f", O_RDWR));
	fails(access("d/f", X_OK), EACCES);
	works(chmod("d/f", 0001));
	works(access("d/f", X_OK));
	works(unlink("d/f"));
}

/* Each directory on the way is checked, not only the last one. */
static void every_directory_on_the_way(void)
{
	works(mkdir("a", 0755));
	works(mkdir("a/b", 0755));
	works(mkdir("a/b/c", 0755));
	make("a/b/c/f", "far");
	for (const char *closed = "a"; closed; closed = closed[1] ? NULL : "a/b") {
		works(chmod(closed, 0700));
		as(ALICE, ALICE);
		fails(open("a/b/c/f", O_RDONLY), EACCES);
		fails(open("a/b/c/../c/f", O_RDONLY), EACCES);
		as_root();
		works(chmod(closed, 0711));
		as(ALICE, ALICE);
		same(text_of("a/b/c/f"), "far");
		as_root();
	}
	works(symlink("a/b/c", "l"));
	works(chmod("a/b/c", 0700));
	as(ALICE, ALICE);
	fails(open("l/f", O_RDONLY), EACCES);
}

static void umask_takes_away(void)
{
	umask(027);
	works(open("f", O_WRONLY | O_CREAT, 0777));
	works(mkdir("d", 0777));
	works(mkfifo("p", 0666));
	works(mknod("s", S_IFSOCK | 0777, 0));
	equal(mode_of("f"), 0750);
	equal(mode_of("d"), 0750);
	equal(mode_of("p"), 0640);
	equal(mode_of("s"), 0750);
	umask(0777);
	works(open("g", O_RDWR | O_CREAT, 0666));
	equal(mode_of("g"), 0);
}

static void every_mode(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	for (mode_t mode = 0; mode <= 07777; mode += 0111) {
		works(chmod("f", mode));
		equal(mode_of("f"), mode);
		works(chmod("d", mode));
		equal(mode_of("d"), mode);
	}
	works(chmod("d", 0755));
}

static const struct syscall_case table[] = {
	{"owner, group and others", classes, NEEDS_ROOT},
	{"an owner has no more rights than his bits", own_file_without_rights, NOT_ROOT},
	{"rights are checked when a file is opened", rights_are_checked_at_open, NEEDS_ROOT},
	{"a folder that may not be written", folder_without_write, NEEDS_ROOT},
	{"a directory that moves must be ours to write", moving_a_directory_that_is_not_ours,
		NEEDS_ROOT},
	{"a sticky folder", sticky_folder, NEEDS_ROOT},
	{"the owner of a sticky folder", owner_of_a_sticky_folder, NEEDS_ROOT},
	{"a folder that may be searched and not read", reading_a_folder, NEEDS_ROOT},
	{"what may be run", running_a_file},
	{"access asks for the real user", access_by_real_user, NEEDS_ROOT},
	{"root may, but run only what somebody may", root_may, NEEDS_ROOT},
	{"every directory on the way is asked", every_directory_on_the_way, NEEDS_ROOT},
	{"umask", umask_takes_away},
	{"every mode is kept", every_mode},
};
SYSCALL_AREA(area_permissions, table);
