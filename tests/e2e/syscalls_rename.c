/* syscalls_rename.c - rename(2) and renameat2(2). */
#include "syscalls.h"

static int exchange(const char *a, const char *b)
{
	return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static int noreplace(const char *a, const char *b)
{
	return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE);
}

static void every_type_moves(void)
{
	long long inode;

	make("f", "moved");
	works(mkdir("d", 0755));
	works(mkfifo("p", 0644));
	works(symlink("target", "l"));
	works(mknod("s", S_IFSOCK | 0644, 0));
	inode = inode_of("f");
	for (const char *c = "fpls"; *c; c++) {
		char from[] = {*c, '\0'}, to[] = {'d', '/', *c, '\0'};
		long long type = type_of(from);

		works(rename(from, to));
		equal(type_of(from), -1);
		equal(type_of(to), type);
	}
	equal(inode_of("d/f"), inode);
	same(text_of("d/f"), "moved");
	same(target_of("d/l"), "target");
	works(rename("d", "e"));
	same(text_of("e/f"), "moved");
}

static void file_over_file(void)
{
	long long inode;

	make("a", "new");
	make("b", "old");
	works(link("b", "kept"));
	inode = inode_of("a");
	works(rename("a", "b"));
	equal(inode_of("b"), inode);
	equal(inode_of("a"), -1);
	same(text_of("b"), "new");
	same(text_of("kept"), "old");
	equal(links_of("kept"), 1);
}

static void over_an_open_file(void)
{
	struct stat st;
	int fd;

	make("a", "new");
	make("b", "old");
	fd = (int)works(open("b", O_RDWR));
	works(rename("a", "b"));
	works(fstat(fd, &st));
	equal(st.st_nlink, 0);
	same(text_of_fd(fd), "old");
	equal(pwrite(fd, "very old", 8, 0), 8);
	same(text_of_fd(fd), "very old");
	same(text_of("b"), "new");
}

static void types_that_do_not_match(void)
{
	make("f", "kept");
	works(mkdir("d", 0755));
	works(symlink("d", "l"));
	works(mkfifo("p", 0644));
	fails(rename("f", "d"), EISDIR);
	fails(rename("d", "f"), ENOTDIR);
	fails(rename("d", "l"), ENOTDIR);
	fails(rename("d", "p"), ENOTDIR);
	fails(rename("l", "d"), EISDIR);
	fails(rename("p", "d"), EISDIR);
	works(rename("p", "f"));
	equal(type_of("f"), S_IFIFO);
	works(rename("f", "l"));
	equal(type_of("l"), S_IFIFO);
}

static void directory_over_directory(void)
{
	works(mkdir("a", 0755));
	works(mkdir("empty", 0755));
	works(mkdir("full", 0755));
	make("a/f", "in a");
	make("full/g", "in full");
	fails(rename("a", "full"), ENOTEMPTY);
	same(text_of("full/g"), "in full");
	equal(links_of("."), 5);
	works(rename("a", "empty"));
	same(text_of("empty/f"), "in a");
	equal(links_of("."), 4);
}

static void directory_into_itself(void)
{
	works(mkdir("a", 0755));
	works(mkdir("a/b", 0755));
	works(mkdir("a/b/c", 0755));
	fails(rename("a", "a/x"), EINVAL);
	fails(rename("a", "a/b/c/x"), EINVAL);
	fails(rename("a", "a/b/c"), EINVAL);
	fails(rename("a/b/c", "a"), ENOTEMPTY);
	fails(rename("a/b", "a"), ENOTEMPTY);
	works(rename("a/b/c", "c"));
	works(rename("a", "c/a"));
	equal(type_of("c/a/b"), S_IFDIR);
}

static void links_of_directories(void)
{
	works(mkdir("a", 0755));
	works(mkdir("b", 0755));
	works(mkdir("a/d", 0755));
	works(mkdir("b/e", 0755));
	works(rename("a/d", "b/d"));
	equal(links_of("a"), 2);
	equal(links_of("b"), 4);
	equal(inode_of("b/d/.."), inode_of("b"));
	works(rename("b/d", "b/e"));
	equal(links_of("b"), 3);
	works(rename("b/e", "a/e"));
	equal(links_of("b"), 2);
	equal(links_of("a"), 3);
	works(rmdir("a/e"));
	works(rmdir("a"));
	works(rmdir("b"));
}

static void onto_itself(void)
{
	make("a", "one");
	works(link("a", "b"));
	works(rename("a", "a"));
	works(rename("a", "b"));
	same(text_of("a"), "one");
	equal(links_of("b"), 2);
	works(mkdir("d", 0755));
	works(rename("d", "d"));
	fails(noreplace("a", "a"), EEXIST);
	fails(noreplace("a", "b"), EEXIST);
}

static void noreplace_refuses(void)
{
	make("a", "a");
	make("b", "b");
	works(mkdir("d", 0755));
	works(symlink("nowhere", "l"));
	fails(noreplace("a", "b"), EEXIST);
	fails(noreplace("a", "d"), EEXIST);
	fails(noreplace("a", "l"), EEXIST);
	fails(noreplace("d", "a"), EEXIST);
	fails(noreplace("missing", "c"), ENOENT);
	fails(noreplace("d", "d/x"), EINVAL);
	same(text_of("b"), "b");
	works(noreplace("a", "c"));
	works(noreplace("d", "e"));
	same(text_of("c"), "a");
}

static void exchange_swaps(void)
{
	works(mkdir("d", 0755));
	works(mkdir("d/sub", 0755));
	make("d/f", "below");
	make("a", "above");
	fails(exchange("a", "missing"), ENOENT);
	fails(exchange("missing", "a"), ENOENT);
	fails(exchange("d", "d/sub"), EINVAL);
	fails(exchange("d/sub", "d"), EINVAL);
	works(exchange("a", "a"));
	works(exchange("a", "d/f"));
	same(text_of("a"), "below");
	same(text_of("d/f"), "above");
	works(exchange("a", "d/sub"));
	equal(type_of("a"), S_IFDIR);
	equal(type_of("d/sub"), S_IFREG);
	equal(links_of("d"), 2);
	equal(links_of("."), 4);
	equal(inode_of("a/.."), inode_of("."));
	works(exchange("a", "d"));
	same(text_of("a/f"), "above");
	works(symlink("nowhere", "l"));
	works(exchange("l", "a"));
	same(text_of("l/f"), "above");
	same(target_of("a"), "nowhere");
}

static void flags_that_do_not_go_together(void)
{
	make("a", "");
	make("b", "");
	fails(renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
	fails(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE | RENAME_WHITEOUT), EINVAL);
	fails(renameat2(AT_FDCWD, "a", AT_FDCWD, "c", 0x80), EINVAL);
	fails(renameat2(99, "a", AT_FDCWD, "c", 0), EBADF);
	equal(inode_of("c"), -1);
}

static void whiteout(void)
{
	struct stat st;

	make("a", "moved");
	make("b", "replaced");
	works(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_WHITEOUT));
	same(text_of("b"), "moved");
	works(lstat("a", &st));
	equal(st.st_mode, S_IFCHR);
	equal(st.st_rdev, 0);
	works(unlink("a"));
	works(mkdir("d", 0755));
	works(mkdir("d/e", 0755));
	works(renameat2(AT_FDCWD, "d/e", AT_FDCWD, "f", RENAME_WHITEOUT | RENAME_NOREPLACE));
	equal(type_of("d/e"), S_IFCHR);
	equal(links_of("d"), 2);
	equal(links_of("."), 4);
}

static void another_filesystem(void)
{
	make("f", "here");
	fails(rename("f", "/dev/shm/rmemfs.none"), EXDEV);
	fails(rename("/proc/version", "f"), EXDEV);
	fails(link("f", "/dev/shm/rmemfs.none"), EXDEV);
	fails(link("/proc/version", "x"), EXDEV);
	same(text_of("f"), "here");
}

static const struct syscall_case table[] = {
	{"every type of file moves", every_type_moves},
	{"a file over a file", file_over_file},
	{"a file over an open file", over_an_open_file},
	{"types that do not match", types_that_do_not_match},
	{"a directory over a directory", directory_over_directory},
	{"no directory into itself", directory_into_itself},
	{"link counts and dot-dot of directories that move", links_of_directories},
	{"onto itself, and onto another name of the same file", onto_itself},
	{"RENAME_NOREPLACE", noreplace_refuses},
	{"RENAME_EXCHANGE", exchange_swaps},
	{"flags that do not go together", flags_that_do_not_go_together},
	{"RENAME_WHITEOUT leaves a device 0:0", whiteout},
	{"to and from another filesystem", another_filesystem},
};
SYSCALL_AREA(area_rename, table);
