/* syscalls_links.c - hard and symbolic links. */
#include "syscalls.h"

static void links_count(void)
{
	make("a", "one");
	works(mkdir("d", 0755));
	works(mkdir("e", 0755));
	works(link("a", "b"));
	works(link("b", "d/c"));
	works(link("d/c", "e/d"));
	equal(links_of("a"), 4);
	equal(links_of("e/d"), 4);
	equal(inode_of("e/d"), inode_of("a"));
	works(unlink("a"));
	equal(links_of("d/c"), 3);
	same(text_of("b"), "one");
	make("b", "two");
	same(text_of("e/d"), "two");
	works(chmod("b", 0600));
	equal(mode_of("d/c"), 0600);
	works(unlink("b"));
	works(unlink("d/c"));
	equal(links_of("e/d"), 1);
	same(text_of("e/d"), "two");
}

static void link_of_a_directory(void)
{
	works(mkdir("d", 0755));
	fails(link("d", "x"), EPERM);
	works(symlink("d", "l"));
	fails(linkat(AT_FDCWD, "l", AT_FDCWD, "x", AT_SYMLINK_FOLLOW), EPERM);
	equal(links_of("d"), 2);
}

static void link_of_a_symbolic_link(void)
{
	make("f", "");
	works(symlink("f", "l"));
	works(link("l", "m"));
	equal(type_of("m"), S_IFLNK);
	equal(links_of("l"), 2);
	same(target_of("m"), "f");
	works(linkat(AT_FDCWD, "l", AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
	equal(inode_of("g"), inode_of("f"));
}

static void link_of_special_files(void)
{
	works(mkfifo("p", 0644));
	works(mknod("s", S_IFSOCK | 0644, 0));
	works(link("p", "q"));
	works(link("s", "t"));
	equal(type_of("q"), S_IFIFO);
	equal(type_of("t"), S_IFSOCK);
	equal(links_of("t"), 2);
}

static void link_errors(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	fails(link("missing", "x"), ENOENT);
	fails(link("f", "f"), EEXIST);
	fails(link("f", "d"), EEXIST);
	fails(linkat(AT_FDCWD, "f", AT_FDCWD, "x", 0x8000), EINVAL);
	fails(linkat(99, "f", AT_FDCWD, "x", 0), EBADF);
}

static void link_by_descriptor(void)
{
	char path[64];
	int fd;

	make("f", "by number");
	fd = (int)works(open("f", O_RDONLY));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	works(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
	same(text_of("g"), "by number");
	works(unlink("f"));
	works(unlink("g"));
	fails(linkat(AT_FDCWD, path, AT_FDCWD, "h", AT_SYMLINK_FOLLOW), ENOENT);
	equal(inode_of("h"), -1);
}

static void targets_of_all_lengths(void)
{
	static const size_t lengths[] = {1, 59, 60, 1023, 1900, 1901, 4000, 4094, 4095};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		char *target = calloc(1, 5000);

		memset(target, 't', lengths[i]);
		works(symlink(target, "link"));
		works(lstat("link", &st));
		equal(st.st_size, lengths[i]);
		same(target_of("link"), target);
		works(unlink("link"));
		free(target);
	}
	fails(symlink(name_of(4096), "link"), ENAMETOOLONG);
	fails(symlink("", "link"), ENOENT);
}

static void targets_are_kept_as_they_are(void)
{
	static const char *const targets[] = {"/", "..", "a//b/./c/", "\n \t\\", "\xff\xfe"};

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		works(symlink(targets[i], "link"));
		same(target_of("link"), targets[i]);
		works(unlink("link"));
	}
}

static void readlink_cuts_short(void)
{
	char buf[8] = "-------";

	works(symlink("target", "link"));
	equal(readlink("link", buf, 3), 3);
	same(buf, "tar----");
	fails(readlink("link", buf, 0), EINVAL);
	make("f", "");
	works(mkdir("d", 0755));
	fails(readlink("f", buf, sizeof(buf)), EINVAL);
	fails(readlink("d", buf, sizeof(buf)), EINVAL);
}

static void symbolic_links_are_followed(void)
{
	works(mkdir("d", 0755));
	make("d/f", "found");
	works(symlink("d", "dir"));
	works(symlink("dir/f", "file"));
	works(symlink("../dir/../file", "d/back"));
	same(text_of("dir/back"), "found");
	works(chmod("file", 0640));
	equal(mode_of("d/f"), 0640);
	equal(mode_of("file"), 0777);
	works(truncate("file", 2));
	same(text_of("d/f"), "fo");
	works(rename("d", "moved"));
	fails(open("file", O_RDONLY), ENOENT);
	works(unlink("file"));
	same(text_of("moved/f"), "fo");
}

static void owner_of_a_link(void)
{
	make("f", "");
	works(symlink("f", "l"));
	works(lchown("l", 41, 42));
	equal(uid_of("l"), 41);
	equal(gid_of("l"), 42);
	equal(uid_of("f"), 0);
	fails(fchmodat(AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW), EOPNOTSUPP);
	equal(mode_of("l"), 0777);
}

static const struct syscall_case table[] = {
	{"links count, and share one file", links_count},
	{"no directory is linked", link_of_a_directory},
	{"a symbolic link is linked itself, or what it leads to", link_of_a_symbolic_link},
	{"FIFOs and sockets are linked", link_of_special_files},
	{"links that can't be", link_errors},
	{"a descriptor is linked as long as its file has a name", link_by_descriptor},
	{"targets of 1 to 4095 bytes", targets_of_all_lengths},
	{"targets are kept byte by byte", targets_are_kept_as_they_are},
	{"readlink gives what fits", readlink_cuts_short},
	{"symbolic links are followed", symbolic_links_are_followed},
	{"a symbolic link has its own owner, and no mode", owner_of_a_link, NEEDS_ROOT},
};
SYSCALL_AREA(area_links, table);
