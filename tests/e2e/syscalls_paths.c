/* syscalls_paths.c - every call that takes a path, with every kind of path that can't be
 * resolved. */
#include "syscalls.h"

#include <sys/inotify.h>
#include <sys/statfs.h>

#include "common/base/sanitized.h"

/* The calls, each with valid arguments except for the path. */
struct path_call {
	const char *name;
	int (*call)(const char *path);
	bool makes;    /* its path names something new */
	bool nofollow; /* the last name may be a link that leads nowhere */
};

static int call_open(const char *path)
{
	return open(path, O_RDONLY);
}

static int call_create(const char *path)
{
	return open(path, O_WRONLY | O_CREAT, 0644);
}

static int call_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static int call_lstat(const char *path)
{
	struct stat st;

	return lstat(path, &st);
}

static int call_statx(const char *path)
{
	struct statx stx;

	return statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &stx);
}

static int call_statfs(const char *path)
{
	struct statfs st;

	return statfs(path, &st);
}

static int call_access(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS);
}

static int call_chmod(const char *path)
{
	return chmod(path, 0644);
}

static int call_chown(const char *path)
{
	return chown(path, (uid_t)-1, (gid_t)-1);
}

static int call_lchown(const char *path)
{
	return lchown(path, (uid_t)-1, (gid_t)-1);
}

static int call_truncate(const char *path)
{
	return truncate(path, 0);
}

static int call_utimensat(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static int call_readlink(const char *path)
{
	char target[16];

	return (int)readlink(path, target, sizeof(target));
}

static int call_chdir(const char *path)
{
	return chdir(path);
}

static int call_open_directory(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY);
}

static int call_execve(const char *path)
{
	char *const none[] = {NULL};

	return execve(path, none, none);
}

static int call_inotify(const char *path)
{
	return inotify_add_watch(inotify_init(), path, IN_MODIFY);
}

static int call_unlink(const char *path)
{
	return unlink(path);
}

static int call_rmdir(const char *path)
{
	return rmdir(path);
}

static int call_rename_from(const char *path)
{
	return rename(path, "renamed");
}

static int call_rename_to(const char *path)
{
	return rename("file", path);
}

static int call_link_from(const char *path)
{
	return link(path, "linked");
}

static int call_link_to(const char *path)
{
	return link("file", path);
}

static int call_mkdir(const char *path)
{
	return mkdir(path, 0755);
}

static int call_mknod(const char *path)
{
	return mknod(path, S_IFREG | 0644, 0);
}

static int call_mkfifo(const char *path)
{
	return mkfifo(path, 0644);
}

static int call_symlink(const char *path)
{
	return symlink("anywhere", path);
}

static const struct path_call calls[] = {
	{"open", call_open},
	{"open with O_CREAT", call_create, .makes = true},
	{"stat", call_stat},
	{"lstat", call_lstat, .nofollow = true},
	{"statx", call_statx},
	{"statfs", call_statfs},
	{"access", call_access},
	{"chmod", call_chmod},
	{"chown", call_chown},
	{"lchown", call_lchown, .nofollow = true},
	{"truncate", call_truncate},
	{"utimensat", call_utimensat},
	{"readlink", call_readlink, .nofollow = true},
	{"chdir", call_chdir},
	{"open with O_DIRECTORY", call_open_directory},
	{"execve", call_execve},
	{"inotify_add_watch", call_inotify},
	{"unlink", call_unlink, .nofollow = true},
	{"rmdir", call_rmdir, .nofollow = true},
	{"rename from", call_rename_from, .nofollow = true},
	{"rename to", call_rename_to, .makes = true, .nofollow = true},
	{"link from", call_link_from, .nofollow = true},
	{"link to", call_link_to, .makes = true, .nofollow = true},
	{"mkdir", call_mkdir, .makes = true, .nofollow = true},
	{"mknod", call_mknod, .makes = true, .nofollow = true},
	{"mkfifo", call_mkfifo, .makes = true, .nofollow = true},
	{"symlink", call_symlink, .makes = true, .nofollow = true},
};

enum which { ALL, WHICH_FOLLOW, WHICH_NEED };

static bool is_asked(const struct path_call *c, enum which which)
{
	if (which == WHICH_FOLLOW)
		return !c->nofollow && !c->makes;
	return which == ALL || !c->makes;
}

/* All of these calls end with this errno. */
static void all_fail(const char *path, enum which which, int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (!is_asked(&calls[i], which))
			continue;
		errno = 0;
		expect_fails(calls[i].name, 0, path, calls[i].call(path), error);
	}
}

static void file_as_directory(void)
{
	make("file", "");
	all_fail("file/name", ALL, ENOTDIR);
	all_fail("file/.", ALL, ENOTDIR);
	all_fail("file/..", ALL, ENOTDIR);
}

static void missing_directory(void)
{
	make("file", "");
	all_fail("missing/name", ALL, ENOENT);
}

static void missing_file(void)
{
	all_fail("missing", WHICH_NEED, ENOENT);
}

static void empty_path(void)
{
	make("file", "");
	all_fail("", ALL, ENOENT);
}

static void long_name(void)
{
	char *below = NULL;

	make("file", "");
	all_fail(name_of(256), ALL, ENAMETOOLONG);
	works(asprintf(&below, "%s/name", name_of(256)));
	all_fail(below, ALL, ENAMETOOLONG);
	free(below);
}

static void long_path(void)
{
	make("file", "");
	all_fail(path_of(4096), ALL, ENAMETOOLONG);
	make(path_of(4095), "here");
	same(text_of("f"), "here");
	make(path_of(4094), "there");
	same(text_of("f"), "there");
}

static void loop_on_the_way(void)
{
	make("file", "");
	works(symlink("two", "one"));
	works(symlink("one", "two"));
	all_fail("one/name", ALL, ELOOP);
}

static void loop_at_the_end(void)
{
	works(symlink("loop", "loop"));
	all_fail("loop", WHICH_FOLLOW, ELOOP);
	fails(open("loop", O_WRONLY | O_CREAT, 0644), ELOOP);
}

static void forty_links(void)
{
	char from[24], to[24] = "file";

	make("file", "far");
	for (int i = 1; i <= 41; i++) {
		snprintf(from, sizeof(from), "link.%d", i);
		works(symlink(to, from));
		strcpy(to, from);
	}
	same(text_of("link.40"), "far");
	fails(open("link.41", O_RDONLY), ELOOP);
}

static void dangling_link(void)
{
	works(symlink("nowhere", "link"));
	all_fail("link", WHICH_FOLLOW, ENOENT);
	all_fail("link/name", ALL, ENOENT);
}

/* Sanitizers read the paths of many calls before the kernel does. */
static void bad_address(void)
{
	if (IS_SANITIZED)
		return;
	make("file", "");
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		errno = 0;
		expect_fails(calls[i].name, 0, "(char *)1", calls[i].call((const char *)1), EFAULT);
	}
}

/* A closed folder refuses everybody but root, also its owner. */
static void closed_directory(void)
{
	works(chmod(".", 0777));
	works(mkdir("closed", 0755));
	works(mkdir("closed/open", 0755));
	make("closed/open/name", "");
	make("file", "");
	works(chmod("file", 0666));
	works(chmod("closed", 0666));
	if (geteuid() == 0)
		as(ALICE, ALICE);
	all_fail("closed/open", ALL, EACCES);
	all_fail("closed/open/name", ALL, EACCES);
	all_fail("closed/missing", ALL, EACCES);
	all_fail("closed/..", ALL, EACCES);
}

static const struct syscall_case table[] = {
	{"a file is no directory", file_as_directory},
	{"a directory that is missing", missing_directory},
	{"a file that is missing", missing_file},
	{"the empty path", empty_path},
	{"a name of 256 bytes", long_name},
	{"a path of 4096 bytes, of 4095 and 4094", long_path},
	{"links in a circle on the way", loop_on_the_way},
	{"a link to itself at the end", loop_at_the_end},
	{"forty links are followed, not one more", forty_links},
	{"a link that leads nowhere", dangling_link},
	{"no address", bad_address},
	{"a directory that may not be searched", closed_directory},
};
SYSCALL_AREA(area_paths, table);
