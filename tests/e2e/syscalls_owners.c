/* syscalls_owners.c - chmod(2) and chown(2): the rights to call them, and their effects on
 * set-user-id, set-group-id and the groups of new files. */
#include "syscalls.h"

static void chmod_by_others(void)
{
	make_mode("f", 0666);
	works(mkdir("d", 0777));
	as(ALICE, ALICE);
	fails(chmod("f", 0644), EPERM);
	fails(chmod("d", 0755), EPERM);
	fails(fchmod((int)works(open("f", O_RDWR)), 0644), EPERM);
	as_root();
	equal(mode_of("f"), 0666);
	works(chown("f", ALICE, ALICE));
	as(ALICE, ALICE);
	works(chmod("f", 0600));
	works(fchmod((int)works(open("f", O_RDWR)), 0640));
	equal(mode_of("f"), 0640);
}

/* A caller outside the file's group can't set set-group-id. */
static void chmod_by_a_non_member(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	works(chown("f", ALICE, THEIR_GROUP));
	works(chown("d", ALICE, THEIR_GROUP));
	as(ALICE, ALICE);
	works(chmod("f", 06755));
	equal(mode_of("f"), 04755);
	works(chmod("d", 02755));
	equal(mode_of("d"), 0755);
	as_with_group(ALICE, ALICE, THEIR_GROUP);
	works(chmod("f", 06755));
	equal(mode_of("f"), 06755);
	works(chmod("d", 02755));
	equal(mode_of("d"), 02755);
}

static void sticky_files(void)
{
	make("f", "");
	works(chmod("f", 01644));
	equal(mode_of("f"), 01644);
	works(chmod("f", 07777));
	equal(mode_of("f"), 07777);
}

static void chown_by_root(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	works(chown("f", 1, 2));
	works(chown("f", (uid_t)-1, 3));
	equal(uid_of("f"), 1);
	equal(gid_of("f"), 3);
	works(chown("f", 4, (gid_t)-1));
	equal(uid_of("f"), 4);
	equal(gid_of("f"), 3);
	works(chown("d", 0x7ffffffe, 0xfffffffe));
	equal(uid_of("d"), 0x7ffffffe);
	equal(gid_of("d"), 0xfffffffe);
	works(symlink("f", "l"));
	works(chown("l", 7, 7));
	equal(uid_of("f"), 7);
	equal(uid_of("l"), 0);
	works(fchown((int)works(open("f", O_RDONLY)), 8, 8));
	equal(gid_of("f"), 8);
	works(fchownat(AT_FDCWD, "l", 9, 9, AT_SYMLINK_NOFOLLOW));
	equal(uid_of("l"), 9);
	equal(uid_of("f"), 8);
}

static void chown_by_the_owner(void)
{
	make("f", "");
	works(chown("f", ALICE, ALICE));
	as_with_group(ALICE, ALICE, THEIR_GROUP);
	fails(chown("f", BOB, (gid_t)-1), EPERM);
	fails(chown("f", (uid_t)-1, BOB), EPERM);
	fails(chown("f", BOB, THEIR_GROUP), EPERM);
	works(chown("f", ALICE, THEIR_GROUP));
	equal(gid_of("f"), THEIR_GROUP);
	works(chown("f", (uid_t)-1, ALICE));
	works(chown("f", (uid_t)-1, (gid_t)-1));
	equal(gid_of("f"), ALICE);
}

static void chown_by_others(void)
{
	make_mode("f", 0666);
	as(ALICE, ALICE);
	works(chown("f", (uid_t)-1, (gid_t)-1));
	fails(chown("f", ALICE, (gid_t)-1), EPERM);
	fails(chown("f", (uid_t)-1, ALICE), EPERM);
	fails(lchown("f", ALICE, ALICE), EPERM);
}

/* Returns the mode of f, owned by uid, after does() has run as uid. */
static long long mode_after(mode_t mode, uid_t uid, void (*does)(void))
{
	make("f", "text");
	works(chown("f", uid, uid));
	works(chmod("f", mode));
	if (uid)
		as(uid, uid);
	does();
	as_root();
	mode = (mode_t)mode_of("f");
	works(unlink("f"));
	return mode;
}

static void does_chown_to_same(void)
{
	works(chown("f", geteuid(), getegid()));
}

static void does_write(void)
{
	int fd = (int)works(open("f", O_WRONLY));

	equal(write(fd, "x", 1), 1);
	works(close(fd));
}

static void does_write_direct(void)
{
	_Alignas(4096) static char page[4096];
	int fd = (int)works(open("f", O_WRONLY | O_DIRECT));

	equal(write(fd, page, sizeof(page)), sizeof(page));
	works(close(fd));
}

static void does_append_to_open(void)
{
	int fd = (int)works(open("f", O_RDWR | O_APPEND));

	equal(read(fd, (char[1]){0}, 1), 1);
	equal(write(fd, "x", 1), 1);
	works(close(fd));
}

static void does_truncate(void)
{
	works(truncate("f", 1));
}

static void does_truncate_to_same(void)
{
	works(truncate("f", 4));
}

static void does_ftruncate(void)
{
	int fd = (int)works(open("f", O_WRONLY));

	works(ftruncate(fd, 2));
	works(close(fd));
}

static void does_open_truncating(void)
{
	works(close((int)works(open("f", O_WRONLY | O_TRUNC))));
}

static void does_read(void)
{
	same(text_of("f"), "text");
}

static void does_write_nothing(void)
{
	int fd = (int)works(open("f", O_WRONLY));

	equal(write(fd, "x", 0), 0);
	works(close(fd));
}

static void does_rename(void)
{
	as_root();
	works(link("f", "g"));
	works(rename("g", "h"));
	works(unlink("h"));
}

/* Effects on set-user-id and set-group-id, if an ordinary user does it and if root does it. */
static const struct loss {
	const char *name;
	void (*does)(void);
	mode_t by_user, by_root; /* of 06777 */
	mode_t group_by_user;    /* of 02666: not executable, so it is no privilege */
} losses[] = {
	{"chown", does_chown_to_same, 0777, 0777, 02666},
	{"write", does_write, 0777, 06777, 02666},
	{"write past the cache", does_write_direct, 0777, 06777, 02666},
	{"write at the end", does_append_to_open, 0777, 06777, 02666},
	{"truncate", does_truncate, 0777, 06777, 02666},
	{"truncate to the same size", does_truncate_to_same, 0777, 06777, 02666},
	{"ftruncate", does_ftruncate, 0777, 06777, 02666},
	{"O_TRUNC", does_open_truncating, 0777, 06777, 02666},
	{"read", does_read, 06777, 06777, 02666},
	{"write of nothing", does_write_nothing, 06777, 06777, 02666},
	{"link and rename", does_rename, 06777, 06777, 02666},
};

static void privileges_are_lost(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		const struct loss *l = &losses[i];

		expect_equal(l->name, 0, "06777 by a user", mode_after(06777, ALICE, l->does),
			l->by_user);
		expect_equal(
			l->name, 0, "06777 by root", mode_after(06777, 0, l->does), l->by_root);
		expect_equal(l->name, 0, "02666 by a user", mode_after(02666, ALICE, l->does),
			l->group_by_user);
		expect_equal(l->name, 0, "0644 by a user", mode_after(0644, ALICE, l->does), 0644);
	}
}

/* Each type but directories loses them by chown, also by its owner or by root. */
static void privileges_of_special_files(void)
{
	static const mode_t types[] = {S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		works(mknod("f", types[i] | 0644, 0));
		works(chown("f", ALICE, ALICE));
		works(chmod("f", 06555));
		works(chown("f", BOB, (gid_t)-1));
		equal(mode_of("f"), 0555);
		works(chown("f", ALICE, ALICE));
		works(chmod("f", 06555));
		as_with_group(ALICE, ALICE, THEIR_GROUP);
		works(lchown("f", (uid_t)-1, THEIR_GROUP));
		equal(mode_of("f"), 0555);
		works(chmod("f", 02644));
		works(chown("f", ALICE, ALICE));
		equal(mode_of("f"), 02644);
		as_root();
		works(unlink("f"));
	}
}

/* The descriptor that has written shows the new mode at once. */
static void privileges_seen_at_once(void)
{
	struct stat st;
	int fd;

	make("f", "");
	for (int flags = O_WRONLY; flags <= O_RDWR; flags += O_RDWR - O_WRONLY) {
		works(chmod("f", 06777));
		as(ALICE, ALICE);
		fd = (int)works(open("f", flags));
		works(fstat(fd, &st));
		equal(st.st_mode, S_IFREG | 06777);
		equal(write(fd, "x", 1), 1);
		works(fstat(fd, &st));
		equal(st.st_mode, S_IFREG | 0777);
		equal(mode_of("f"), 0777);
		works(close(fd));
		as_root();
	}
}

static void directories_keep_theirs(void)
{
	works(mkdir("d", 0755));
	works(chmod("d", 06777));
	works(chown("d", ALICE, ALICE));
	equal(mode_of("d"), 06777);
	as(ALICE, ALICE);
	make("d/f", "x");
	works(unlink("d/f"));
	equal(mode_of("d"), 06777);
}

static void group_of_the_maker(void)
{
	works(mkdir("d", 0777));
	as(ALICE, BOB);
	make("d/f", "");
	works(mkdir("d/d", 0755));
	works(mkfifo("d/p", 0644));
	works(symlink("x", "d/l"));
	as_root();
	for (const char *c = "fdpl"; *c; c++) {
		char path[] = {'d', '/', *c, '\0'};

		equal(uid_of(path), ALICE);
		equal(gid_of(path), BOB);
	}
}

static void group_of_the_folder(void)
{
	works(mkdir("d", 0755));
	works(chown("d", 0, THEIR_GROUP));
	works(chmod("d", 02777));
	as(ALICE, ALICE);
	make("d/f", "");
	works(mkdir("d/d", 0755));
	works(mkfifo("d/p", 0644));
	works(symlink("x", "d/l"));
	works(mknod("d/s", S_IFSOCK | 0644, 0));
	for (const char *c = "fdpls"; *c; c++) {
		char path[] = {'d', '/', *c, '\0'};

		equal(uid_of(path), ALICE);
		equal(gid_of(path), THEIR_GROUP);
	}
	equal(mode_of("d/d"), 02755);
	equal(mode_of("d/f"), 0644);
	works(mkdir("d/d/e", 0700));
	equal(mode_of("d/d/e"), 02700);
	equal(gid_of("d/d/e"), THEIR_GROUP);
}

/* A caller outside the folder's group can't make a program with that group. */
static void set_group_id_in_the_folder(void)
{
	works(mkdir("d", 0755));
	works(chown("d", 0, THEIR_GROUP));
	works(chmod("d", 02777));
	as(ALICE, ALICE);
	works(open("d/program", O_WRONLY | O_CREAT, 06755));
	equal(mode_of("d/program"), 04755);
	works(open("d/data", O_WRONLY | O_CREAT, 02644));
	equal(mode_of("d/data"), 02644);
	works(mknod("d/node", S_IFREG | 02755, 0));
	equal(mode_of("d/node"), 0755);
	as_with_group(ALICE, ALICE, THEIR_GROUP);
	works(open("d/ours", O_WRONLY | O_CREAT, 02755));
	equal(mode_of("d/ours"), 02755);
}

static void made_with_set_user_id(void)
{
	works(close((int)works(open("f", O_WRONLY | O_CREAT, 07755))));
	equal(mode_of("f"), 07755);
	works(mkdir("d", 01777));
	equal(mode_of("d"), 01777);
}

static const struct syscall_case table[] = {
	{"chmod is the owner's", chmod_by_others, NEEDS_ROOT},
	{"chmod by who is not in the group", chmod_by_a_non_member, NEEDS_ROOT},
	{"sticky, set-user-id and set-group-id of files", sticky_files},
	{"chown by root", chown_by_root, NEEDS_ROOT},
	{"chown by the owner, to groups he is in", chown_by_the_owner, NEEDS_ROOT},
	{"chown by others", chown_by_others, NEEDS_ROOT},
	{"what takes set-user-id and set-group-id away", privileges_are_lost, NEEDS_ROOT},
	{"chown takes them from special files, too", privileges_of_special_files, NEEDS_ROOT},
	{"who has written sees that they are gone", privileges_seen_at_once, NEEDS_ROOT},
	{"directories keep theirs", directories_keep_theirs, NEEDS_ROOT},
	{"what is made has its maker's owner and group", group_of_the_maker, NEEDS_ROOT},
	{"in a set-group-id folder it has the folder's group", group_of_the_folder, NEEDS_ROOT},
	{"set-group-id of what is made there", set_group_id_in_the_folder, NEEDS_ROOT},
	{"set-user-id and sticky from the start", made_with_set_user_id},
};
SYSCALL_AREA(area_owners, table);
