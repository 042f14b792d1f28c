/* syscalls_remove.c - unlink(2) and rmdir(2). */
#include "syscalls.h"

#include <sys/mount.h>

static void unlink_every_type(void)
{
	make("f", "");
	works(mkfifo("p", 0644));
	works(symlink("f", "l"));
	works(mknod("s", S_IFSOCK | 0644, 0));
	works(unlink("l"));
	equal(type_of("f"), S_IFREG);
	works(unlink("f"));
	works(unlink("p"));
	works(unlink("s"));
	fails(unlink("f"), ENOENT);
}

static void unlink_of_a_directory(void)
{
	works(mkdir("d", 0755));
	fails(unlink("d"), EISDIR);
	works(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
	make("f", "");
	fails(unlinkat(AT_FDCWD, "f", AT_REMOVEDIR), ENOTDIR);
	fails(unlinkat(AT_FDCWD, "f", 0x1000), EINVAL);
	fails(unlinkat(99, "f", 0), EBADF);
}

static void rmdir_of_a_full_directory(void)
{
	works(mkdir("d", 0755));
	make("d/f", "");
	fails(rmdir("d"), ENOTEMPTY);
	works(unlink("d/f"));
	works(mkdir("d/e", 0755));
	fails(rmdir("d"), ENOTEMPTY);
	works(rmdir("d/e"));
	works(symlink("x", "d/l"));
	fails(rmdir("d"), ENOTEMPTY);
	works(unlink("d/l"));
	works(rmdir("d"));
}

static void rmdir_of_others(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	works(symlink("d", "l"));
	fails(rmdir("f"), ENOTDIR);
	fails(rmdir("l"), ENOTDIR);
	fails(rmdir("missing"), ENOENT);
}

static void link_counts_of_parents(void)
{
	equal(links_of("."), 2);
	works(mkdir("d", 0755));
	works(mkdir("e", 0755));
	make("f", "");
	equal(links_of("."), 4);
	works(rmdir("d"));
	equal(links_of("."), 3);
	works(unlink("f"));
	equal(links_of("."), 3);
}

static void mounted_upon(void)
{
	works(mkdir("d", 0755));
	works(mkdir("e", 0755));
	works(mount("none", "d", "tmpfs", 0, "size=4k"));
	errno = 0;
	if (rmdir("d") == 0 || errno != EBUSY) {
		umount("d");
		fails(rmdir("d"), EBUSY);
	}
	if (rename("e", "d") == 0 || errno != EBUSY) {
		umount("d");
		fails(rename("e", "d"), EBUSY);
	}
	works(umount("d"));
	works(rmdir("d"));
}

static const struct syscall_case table[] = {
	{"unlink removes every type but directories", unlink_every_type},
	{"unlink and directories", unlink_of_a_directory},
	{"rmdir of what is not empty", rmdir_of_a_full_directory},
	{"rmdir of what is no directory", rmdir_of_others},
	{"subdirectories count in their parent's links", link_counts_of_parents},
	{"what is mounted upon stays", mounted_upon, NEEDS_ROOT},
};
SYSCALL_AREA(area_remove, table);
