/* syscalls_names.c - valid names, and slashes and dots at their end. */
#include "syscalls.h"

#include <dirent.h>

static void names_of_255(void)
{
	const char *name = name_of(255);

	make(name, "long");
	same(text_of(name), "long");
	works(unlink(name));
	works(mkdir(name, 0755));
	works(rmdir(name));
	works(symlink("target", name));
	works(rename(name, "other"));
	works(rename("other", name));
	works(unlink(name));
	works(mkfifo(name, 0644));
	works(link(name, "linked"));
	works(unlink(name));
}

/* Each name has one byte twice. */
static void every_byte(void)
{
	bool seen[256] = {false};
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir;

	for (int byte = 1; byte < 256; byte++) {
		char name[] = {'x', (char)byte, (char)byte, '\0'};

		if (byte != '/')
			make(name, name);
	}
	dir = opendir(".");
	holds(dir != NULL);
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (name[0] != 'x')
			continue;
		equal(strlen(name), 3);
		holds(name[1] == name[2] && !seen[(unsigned char)name[1]]);
		seen[(unsigned char)name[1]] = true;
		same(text_of(name), name);
		n++;
	}
	closedir(dir);
	equal(n, 254);
}

static void cases_of_letters(void)
{
	make("name", "small");
	make("Name", "capital");
	make("n", "short");
	same(text_of("name"), "small");
	same(text_of("Name"), "capital");
	fails(unlink("NAME"), ENOENT);
}

static void names_of_dots(void)
{
	make("...", "three");
	make(".a", "hidden");
	make("..a", "hidden twice");
	same(text_of("..."), "three");
	same(text_of("..a"), "hidden twice");
	works(unlink("..."));
	works(rename(".a", ".b"));
}

static void dot_and_dot_dot(void)
{
	make("f", "");
	works(mkdir("d", 0755));
	works(mkdir("d/e", 0755));
	fails(mkdir(".", 0755), EEXIST);
	fails(mkdir("d/..", 0755), EEXIST);
	fails(symlink("x", "."), EEXIST);
	fails(mknod("d/.", S_IFREG | 0644, 0), EEXIST);
	fails(link("f", "d/.."), EEXIST);
	fails(open(".", O_WRONLY | O_CREAT, 0644), EISDIR);
	fails(rmdir("d/."), EINVAL);
	fails(rmdir("d/.."), ENOTEMPTY);
	fails(unlink("d/."), EISDIR);
	fails(unlink("d/.."), EISDIR);
	fails(link(".", "x"), EPERM);
	fails(rename("d/.", "x"), EBUSY);
	fails(rename("d/e/..", "x"), EBUSY);
	fails(rename("d", "d/e/."), EBUSY);
	fails(rename("f", "d/.."), EBUSY);
}

static void slash_after_a_directory(void)
{
	works(mkdir("d/", 0755));
	works(chmod("d/", 0700));
	works(rename("d/", "e/"));
	equal(mode_of("e"), 0700);
	works(symlink("e", "link"));
	equal(type_of("link/"), S_IFDIR);
	fails(rmdir("link/"), ENOTDIR);
	fails(unlink("link/"), ENOTDIR);
	works(rmdir("e/"));
	fails(mkdir("link/", 0755), EEXIST);
}

static void slash_after_a_file(void)
{
	make("f", "");
	fails(open("f/", O_RDONLY), ENOTDIR);
	fails(open("f/", O_WRONLY | O_CREAT, 0644), EISDIR);
	fails(open("new/", O_WRONLY | O_CREAT, 0644), EISDIR);
	fails(unlink("f/"), ENOTDIR);
	fails(truncate("f/", 0), ENOTDIR);
	fails(chmod("f/", 0644), ENOTDIR);
	fails(rename("f/", "g"), ENOTDIR);
	fails(rename("f", "g/"), ENOTDIR);
	fails(link("f", "g/"), ENOENT);
	fails(link("f/", "g"), ENOTDIR);
	fails(symlink("f", "g/"), ENOENT);
	fails(mknod("g/", S_IFREG | 0644, 0), ENOENT);
	fails(mkfifo("g/", 0644), ENOENT);
	works(symlink("f", "link"));
	fails(open("link/", O_RDONLY), ENOTDIR);
}

static void names_that_are_there(void)
{
	make("f", "kept");
	works(mkdir("d", 0755));
	works(symlink("nowhere", "l"));
	for (const char *name = "f"; name; name = *name == 'f' ? "d" : *name == 'd' ? "l" : NULL) {
		fails(mkdir(name, 0755), EEXIST);
		fails(mknod(name, S_IFREG | 0644, 0), EEXIST);
		fails(mkfifo(name, 0644), EEXIST);
		fails(symlink("x", name), EEXIST);
		fails(link("f", name), EEXIST);
		fails(open(name, O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	}
	same(text_of("f"), "kept");
	fails(open("nowhere", O_RDONLY), ENOENT);
}

/* Each name is looked up before it is made: the kernel must not keep the negative entry. */
static void made_after_it_was_missing(void)
{
	fails(open("name", O_RDONLY), ENOENT);
	make("name", "now");
	same(text_of("name"), "now");
	works(unlink("name"));
	fails(open("name", O_RDONLY), ENOENT);
	works(mkdir("name", 0755));
	equal(type_of("name"), S_IFDIR);
	works(rmdir("name"));
	works(symlink("x", "name"));
	equal(type_of("name"), S_IFLNK);
}

/* Directories and a name make a path of 4095 bytes, and one with a byte more. */
static void longest_path(void)
{
	enum { NAME = 127, LONGEST = 4095 };
	char path[LONGEST + 2], *at = path;

	while (at + NAME + 1 < path + LONGEST) {
		memset(at, 'd', NAME);
		at[NAME] = '\0';
		works(mkdir(path, 0755));
		at[NAME] = '/';
		at += NAME + 1;
	}
	memset(at, 'f', (size_t)(path + LONGEST - at));
	path[LONGEST] = '\0';
	make(path, "deep");
	same(text_of(path), "deep");
	works(link(path, "linked"));
	works(rename(path, "renamed"));
	works(rename("linked", path));
	works(chmod(path, 0600));
	equal(mode_of(path), 0600);
	works(unlink(path));
	works(mkdir(path, 0755));
	works(rmdir(path));
	works(symlink("target", path));
	same(target_of(path), "target");
	strcpy(path + LONGEST, "f");
	fails(open(path, O_RDONLY), ENAMETOOLONG);
	fails(mkdir(path, 0755), ENAMETOOLONG);
	fails(rename("renamed", path), ENAMETOOLONG);
	/* Remove them here: with the folder's own path in front they are too long for the
	 * teardown. */
	works(system("rm -r d*"));
}

static const struct syscall_case table[] = {
	{"names of 255 bytes", names_of_255},
	{"names of every byte but two", every_byte},
	{"small and capital letters differ", cases_of_letters},
	{"names that begin with dots", names_of_dots},
	{"dot and dot-dot are nobody's to make, move or remove", dot_and_dot_dot},
	{"a slash after a directory", slash_after_a_directory},
	{"a slash after a file", slash_after_a_file},
	{"names that are there", names_that_are_there},
	{"what was missing is found when it is made", made_after_it_was_missing},
	{"a path of 4095 bytes, all of them names", longest_path},
};
SYSCALL_AREA(area_names, table);
