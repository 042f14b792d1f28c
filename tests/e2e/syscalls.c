/* syscalls.c - checks the errno and the effect of every system call on files: see syscalls.h.
 *
 *     syscalls [--tmpfs] [--user UID] AREA FOLDER
 *
 * Runs the cases of one area below FOLDER, as root or as the user; prints TAP, a line for each
 * case.
 */
#include "syscalls.h"

#include <dirent.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* An emulated machine is slow: see RMEMFS_TEST_SMALL in helpers.bash. */
enum { CASE_SECONDS = 60, CASE_SECONDS_SMALL = 300, TEXT_MAX = 8192 };

/* ---- expectations ---------------------------------------------------------------------------- */

static const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "no error";
}

__attribute__((noreturn, format(printf, 3, 4))) static void differs(
	const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/');
	va_list args;

	printf("# %s:%d: ", base ? base + 1 : file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

long expect_works(const char *file, int line, const char *call, long value)
{
	if (value == -1)
		differs(file, line, "%s: %s", call, error_name(errno));
	return value;
}

void expect_fails(const char *file, int line, const char *call, long value, int error)
{
	int was = errno;

	if (value != -1)
		differs(file, line, "%s is %ld, not %s", call, value, error_name(error));
	if (was != error)
		differs(file, line, "%s: %s, not %s", call, error_name(was), error_name(error));
}

void expect_equal(const char *file, int line, const char *what, long long value, long long expected)
{
	if (value != expected)
		differs(file, line, "%s is %lld (0%llo), not %lld (0%llo)", what, value, value,
			expected, expected);
}

void expect_same(
	const char *file, int line, const char *what, const char *value, const char *expected)
{
	if (strcmp(value, expected) != 0)
		differs(file, line, "%s is \"%.80s\", not \"%.80s\"", what, value, expected);
}

void expect_true(const char *file, int line, const char *what, bool value)
{
	if (!value)
		differs(file, line, "%s does not hold (%s)", what, error_name(errno));
}

/* ---- helpers of cases ------------------------------------------------------------------------ */

void as_root(void)
{
	works(seteuid(0));
	works(setegid(0));
	works(setgroups(0, NULL));
}

void as(uid_t uid, gid_t gid)
{
	as_with_group(uid, gid, gid);
}

void as_with_group(uid_t uid, gid_t gid, gid_t also)
{
	as_root();
	works(setgroups(1, &also));
	works(setegid(gid));
	works(seteuid(uid));
}

static char *one_of_two(void)
{
	static char texts[2][TEXT_MAX];
	static unsigned n;

	return texts[n++ % 2];
}

const char *name_of(size_t n)
{
	char *name = one_of_two();

	memset(name, 'n', n);
	name[n] = '\0';
	return name;
}

const char *path_of(size_t n)
{
	char *path = one_of_two();

	for (size_t i = 0; i < n; i++)
		path[i] = i % 2 ? '/' : '.';
	/* The path ends in a name, whatever its length. */
	path[n - 1] = 'f';
	if (n % 2 == 0)
		path[n - 2] = '/';
	path[n] = '\0';
	return path;
}

void make(const char *path, const char *text)
{
	int fd = (int)works(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));

	equal(write(fd, text, strlen(text)), (long long)strlen(text));
	works(close(fd));
}

void make_mode(const char *path, mode_t mode)
{
	make(path, "");
	works(chmod(path, mode));
}

const char *text_of_fd(int fd)
{
	char *text = one_of_two();
	ssize_t n = works(pread(fd, text, TEXT_MAX - 1, 0));

	text[n] = '\0';
	return text;
}

const char *text_of(const char *path)
{
	int fd = (int)works(open(path, O_RDONLY));
	const char *text = text_of_fd(fd);

	works(close(fd));
	return text;
}

/* One field of lstat(2). */
#define FIELD_OF(name, field)                                          \
	long long name(const char *path)                               \
	{                                                              \
		struct stat st;                                        \
                                                                       \
		return lstat(path, &st) < 0 ? -1 : (long long)(field); \
	}

FIELD_OF(mode_of, st.st_mode & 07777)
FIELD_OF(type_of, st.st_mode &S_IFMT)
FIELD_OF(links_of, st.st_nlink)
FIELD_OF(size_of, st.st_size)
FIELD_OF(inode_of, st.st_ino)
FIELD_OF(uid_of, st.st_uid)
FIELD_OF(gid_of, st.st_gid)

const char *target_of(const char *path)
{
	char *text = one_of_two();
	ssize_t n = works(readlink(path, text, TEXT_MAX - 1));

	text[n] = '\0';
	return text;
}

pid_t child(void (*fn)(void *arg), void *arg)
{
	pid_t pid = (pid_t)works(fork());

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(arg);
		_exit(0);
	}
	return pid;
}

void finished(pid_t pid)
{
	int status = 0;

	equal(waitpid(pid, &status, 0), pid);
	equal(status, 0);
}

/* ---- running --------------------------------------------------------------------------------- */

static const struct syscall_area *const areas[] = {
	&area_paths,
	&area_names,
	&area_links,
	&area_rename,
	&area_remove,
	&area_permissions,
	&area_owners,
	&area_open,
	&area_directories,
	&area_times,
	&area_special,
	&area_truncate,
	&area_unlinked,
	&area_io,
	&area_limits,
	&area_flock,
	&area_records,
};

struct run {
	bool tmpfs;
	uid_t uid;
	const char *folder;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (type == FTW_DNR)
		chmod(path, 0700);
	return remove(path);
}

static void become(uid_t uid)
{
	works(setgroups(0, NULL));
	works(setresgid(uid, uid, uid));
	works(setresuid(uid, uid, uid));
}

/* Runs the case in a process of its own, and never returns. */
static void run_case(const struct run *run, const struct syscall_case *c, const char *folder)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(getenv("RMEMFS_TEST_SMALL") ? CASE_SECONDS_SMALL : CASE_SECONDS);
	umask(0);
	works(mkdir(folder, 0755));
	works(chown(folder, run->uid, run->uid));
	works(chdir(folder));
	if (run->uid)
		become(run->uid);
	c->run();
	_exit(0);
}

static bool passes(const struct run *run, const struct syscall_case *c)
{
	autofree char *folder = NULL;
	int status = -1;
	pid_t pid;

	if (asprintf(&folder, "%s/case", run->folder) < 0)
		abort();
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_case(run, c, folder);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("# ended by %s\n", strsignal(WTERMSIG(status)));
	if (nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0) {
		printf("# %s could not be removed: %s\n", folder, strerror(errno));
		return false;
	}
	return status == 0;
}

static const char *why_left_out(const struct run *run, const struct syscall_case *c)
{
	if (run->uid && c->needs & NEEDS_ROOT)
		return "takes root";
	if (!run->uid && c->needs & NOT_ROOT)
		return "takes an ordinary user";
	return run->tmpfs ? c->differs : NULL;
}

static int run_area(const struct run *run, const struct syscall_area *area)
{
	bool well = true;

	printf("1..%zu\n", area->ncases);
	for (size_t i = 0; i < area->ncases; i++) {
		const struct syscall_case *c = &area->cases[i];
		const char *left_out = why_left_out(run, c);
		bool passed = left_out || passes(run, c);

		printf("%sok %zu - %s%s%s\n", passed ? "" : "not ", i + 1, c->name,
			left_out ? " # not here: " : "", left_out ? left_out : "");
		well &= passed;
	}
	return well ? 0 : 1;
}

static int usage(void)
{
	fprintf(stderr, "usage: syscalls [--tmpfs] [--user UID] AREA FOLDER\nareas:");
	for (size_t i = 0; i < ARRAY_SIZE(areas); i++)
		fprintf(stderr, " %s", areas[i]->name);
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct run run = {.uid = 0};
	int at = 1;

	if (at < argc && strcmp(argv[at], "--tmpfs") == 0) {
		run.tmpfs = true;
		at++;
	}
	if (at + 1 < argc && strcmp(argv[at], "--user") == 0) {
		run.uid = (uid_t)strtoul(argv[at + 1], NULL, 10);
		at += 2;
	}
	if (argc - at != 2)
		return usage();
	run.folder = argv[at + 1];
	for (size_t i = 0; i < ARRAY_SIZE(areas); i++)
		if (strcmp(areas[i]->name, argv[at]) == 0)
			return run_area(&run, areas[i]);
	return usage();
}
