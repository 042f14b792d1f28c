/* syscalls_directories.c - reading directories, across changes and after their end. */
#include "syscalls.h"

#include <dirent.h>
#include <limits.h>
#include <sys/inotify.h>

enum { MANY = 700 };

static void make_many(void)
{
	char name[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "name.%d", i);
		works(close((int)works(open(name, O_WRONLY | O_CREAT, 0644))));
	}
}

static int number_of(const struct dirent *entry)
{
	return strncmp(entry->d_name, "name.", 5) == 0 ? atoi(entry->d_name + 5) : -1;
}

static DIR *opened(const char *path)
{
	DIR *dir = opendir(path);

	holds(dir != NULL);
	return dir;
}

/* Counts how often each number is listed from here on. */
static unsigned count_rest(DIR *dir, unsigned counts[MANY])
{
	struct dirent *entry;
	unsigned n = 0;

	errno = 0;
	while ((entry = readdir(dir))) {
		int number = number_of(entry);

		if (number >= 0 && number < MANY && counts)
			counts[number]++;
		n += number >= 0;
	}
	equal(errno, 0);
	return n;
}

static void each_name_once(void)
{
	unsigned counts[MANY] = {0};
	DIR *dir;

	make_many();
	dir = opened(".");
	equal(count_rest(dir, counts), MANY);
	for (int i = 0; i < MANY; i++)
		equal(counts[i], 1);
	rewinddir(dir);
	equal(count_rest(dir, NULL), MANY);
	closedir(dir);
}

static void dots_and_types(void)
{
	unsigned seen = 0;
	struct dirent *entry;
	DIR *dir;

	works(mkdir("d", 0755));
	works(mkdir("d/d", 0755));
	make("d/f", "");
	works(symlink("x", "d/l"));
	works(mkfifo("d/p", 0644));
	works(mknod("d/s", S_IFSOCK | 0644, 0));
	dir = opened("d");
	while ((entry = readdir(dir))) {
		char path[300];

		snprintf(path, sizeof(path), "d/%s", entry->d_name);
		equal(DTTOIF(entry->d_type), type_of(path));
		equal(entry->d_ino, inode_of(path));
		seen++;
	}
	equal(seen, 7);
	closedir(dir);
}

/* Names that are removed, added or renamed meanwhile may be listed or not. All others are, and
 * once. */
static void changes_while_reading(void)
{
	unsigned counts[MANY] = {0};
	struct dirent *entry;
	char name[32];
	DIR *dir;

	make_many();
	dir = opened(".");
	for (int i = 0; i < 50; i++) {
		entry = readdir(dir);
		if (number_of(entry) >= 0)
			counts[number_of(entry)]++;
	}
	for (int i = 0; i < MANY; i += 2) {
		snprintf(name, sizeof(name), "name.%d", i);
		works(unlink(name));
		snprintf(name, sizeof(name), "other.%d", i);
		make(name, "");
	}
	count_rest(dir, counts);
	for (int i = 1; i < MANY; i += 2)
		equal(counts[i], 1);
	rewinddir(dir);
	equal(count_rest(dir, NULL), MANY / 2);
	closedir(dir);
}

static void removing_while_reading(void)
{
	struct dirent *entry;
	DIR *dir;

	works(mkdir("d", 0755));
	works(chdir("d"));
	make_many();
	dir = opened(".");
	while ((entry = readdir(dir)))
		if (number_of(entry) >= 0)
			works(unlink(entry->d_name));
	closedir(dir);
	works(chdir(".."));
	works(rmdir("d"));
}

/* Each name is renamed when it is listed. Some are listed again, but not for ever. */
static void renaming_while_reading(void)
{
	struct dirent *entry;
	unsigned n = 0;
	char name[32];
	DIR *dir;

	make_many();
	dir = opened(".");
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		holds(n < 4 * MANY);
		snprintf(name, sizeof(name), "again.%u", n++);
		works(rename(entry->d_name, name));
	}
	closedir(dir);
}

static void positions_stay(void)
{
	long at[MANY + 2] = {0};
	char names[MANY + 2][16] = {""};
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	make_many();
	dir = opened(".");
	for (;; n++) {
		long position = telldir(dir);

		entry = readdir(dir);
		if (!entry)
			break;
		at[n] = position;
		snprintf(names[n], sizeof(names[n]), "%.15s", entry->d_name);
	}
	equal(n, MANY + 2);
	for (int i = 0; i < n; i++) {
		int back = i * 37 % n;

		seekdir(dir, at[back]);
		entry = readdir(dir);
		holds(entry != NULL);
		same(entry->d_name, names[back]);
	}
	/* Also if the name there is gone: readdir returns the next one. */
	works(unlink(names[100]));
	make("new", "");
	seekdir(dir, at[100]);
	entry = readdir(dir);
	holds(strcmp(entry->d_name, names[101]) == 0 || strcmp(entry->d_name, "new") == 0);
	seekdir(dir, at[200]);
	same(readdir(dir)->d_name, names[200]);
	closedir(dir);
}

static void two_readers(void)
{
	DIR *one, *two;

	make_many();
	one = opened(".");
	two = opened(".");
	for (int i = 0; i < 30; i++) {
		char name[256];

		strcpy(name, readdir(one)->d_name);
		same(readdir(two)->d_name, name);
	}
	closedir(one);
	equal(count_rest(two, NULL) > MANY - 31, true);
	closedir(two);
}

static void not_a_directory(void)
{
	char buf[64];
	int fd;

	make("f", "");
	holds(!fdopendir((int)works(open("f", O_RDONLY))) && errno == ENOTDIR);
	fd = (int)works(open(".", O_RDONLY | O_DIRECTORY));
	fails(read(fd, buf, sizeof(buf)), EISDIR);
	fails(write(fd, buf, sizeof(buf)), EBADF);
	fails(pread(fd, buf, sizeof(buf), 0), EISDIR);
	works(fsync(fd));
	works(fdatasync(fd));
	fails(ftruncate(fd, 0), EINVAL);
	fails(truncate(".", 0), EISDIR);
}

static void removed_while_open(void)
{
	struct dirent *entry;
	struct stat st;
	int fd;
	DIR *dir;

	works(mkdir("d", 0755));
	fd = (int)works(open("d", O_RDONLY | O_DIRECTORY));
	dir = opened("d");
	works(rmdir("d"));
	works(fstat(fd, &st));
	equal(st.st_nlink, 0);
	while ((entry = readdir(dir)))
		holds(entry->d_name[0] == '.');
	closedir(dir);
	fails(openat(fd, "f", O_WRONLY | O_CREAT, 0644), ENOENT);
	fails(mkdirat(fd, "d", 0755), ENOENT);
	fails(symlinkat("x", fd, "l"), ENOENT);
	fails(mknodat(fd, "p", S_IFIFO | 0644, 0), ENOENT);
	make("f", "");
	fails(linkat(AT_FDCWD, "f", fd, "g", 0), ENOENT);
	fails(renameat(AT_FDCWD, "f", fd, "g"), ENOENT);
	fails(unlinkat(fd, "f", 0), ENOENT);
	works(fchmod(fd, 0700));
	works(fstat(fd, &st));
	equal(st.st_mode & 07777, 0700);
}

static void removed_working_directory(void)
{
	char path[PATH_MAX];
	int fd;

	works(mkdir("d", 0755));
	works(chdir("d"));
	works(rmdir("../d"));
	holds(!getcwd(path, sizeof(path)) && errno == ENOENT);
	fails(open("f", O_WRONLY | O_CREAT, 0644), ENOENT);
	fails(mkdir("e", 0755), ENOENT);
	fails(stat("f", &(struct stat){0}), ENOENT);
	works(stat(".", &(struct stat){0}));
	works(chmod(".", 0700));
	equal(mode_of("."), 0700);
	equal(links_of("."), 0);
	fd = (int)works(open(".", O_RDONLY | O_DIRECTORY));
	fails(getdents64(fd, path, sizeof(path)), ENOENT);
	works(fchmod(fd, 0750));
	equal(mode_of("."), 0750);
	works(close(fd));
	works(futimens((int)works(open(".", O_RDONLY)), NULL));
	works(chdir(".."));
	works(mkdir("d", 0755));
	holds(getcwd(path, sizeof(path)) != NULL);
}

static void replaced_while_open(void)
{
	struct stat st;
	int fd;

	works(mkdir("a", 0755));
	works(mkdir("b", 0755));
	make("a/f", "from a");
	fd = (int)works(open("b", O_RDONLY | O_DIRECTORY));
	works(rename("a", "b"));
	works(fstat(fd, &st));
	equal(st.st_nlink, 0);
	fails(openat(fd, "f", O_RDONLY), ENOENT);
	same(text_of("b/f"), "from a");
}

static void relative_to_a_descriptor(void)
{
	struct stat st;
	int fd;

	works(mkdir("d", 0755));
	fd = (int)works(open("d", O_RDONLY | O_DIRECTORY));
	works(close((int)works(openat(fd, "f", O_WRONLY | O_CREAT, 0644))));
	works(rename("d", "moved"));
	works(mkdirat(fd, "e", 0700));
	works(fstatat(fd, "e", &st, 0));
	equal(st.st_mode & 07777, 0700);
	works(renameat(fd, "f", fd, "e/f"));
	equal(size_of("moved/e/f"), 0);
	works(fstatat(fd, "", &st, AT_EMPTY_PATH));
	equal(st.st_ino, inode_of("moved"));
	equal(st.st_nlink, 3);
	works(fchdir(fd));
	works(unlinkat(AT_FDCWD, "e/f", 0));
	make("g", "");
	fails(openat((int)works(open("g", O_RDONLY)), "x", O_RDONLY), ENOTDIR);
}

static void depth(void)
{
	char path[PATH_MAX] = "";
	struct stat st;

	for (int i = 0; i < 300; i++)
		strcat(path, i ? "/dir" : "dir");
	for (int i = 0; i < 300; i++) {
		char *at = path + 3 + i * 4;
		char kept = *at;

		*at = '\0';
		works(mkdir(path, 0755));
		*at = kept;
	}
	strcat(path, "/f");
	make(path, "deep");
	same(text_of(path), "deep");
	works(rename("dir/dir", "other"));
	works(stat("other/dir/dir", &st));
	fails(open(path, O_RDONLY), ENOENT);
}

static void watched(void)
{
	_Alignas(struct inotify_event) char buf[1024];
	const struct inotify_event *event = (const void *)buf;
	int fd = (int)works(inotify_init1(IN_NONBLOCK));

	works(inotify_add_watch(fd, ".", IN_CREATE | IN_DELETE | IN_MODIFY));
	fails(read(fd, buf, sizeof(buf)), EAGAIN);
	make("f", "");
	works(read(fd, buf, sizeof(buf)));
	equal(event->mask, IN_CREATE);
	same(event->name, "f");
	make("f", "changed");
	works(read(fd, buf, sizeof(buf)));
	equal(event->mask, IN_MODIFY);
	works(unlink("f"));
	works(read(fd, buf, sizeof(buf)));
	equal(event->mask, IN_DELETE);
}

static const struct syscall_case table[] = {
	{"each name is listed once", each_name_once},
	{"dots, types and inode numbers", dots_and_types},
	{"names come and go while a directory is read", changes_while_reading},
	{"a directory is emptied while it is read", removing_while_reading},
	{"a directory's names are changed while it is read", renaming_while_reading},
	{"telldir and seekdir", positions_stay},
	{"two readers of one directory", two_readers},
	{"directories give and take no bytes", not_a_directory},
	{"a directory that is removed while it is open", removed_while_open},
	{"a working directory that is removed", removed_working_directory},
	{"a directory that is replaced while it is open", replaced_while_open},
	{"names relative to a descriptor", relative_to_a_descriptor},
	{"a path of 300 directories", depth},
	{"inotify tells of changes", watched},
};
SYSCALL_AREA(area_directories, table);
