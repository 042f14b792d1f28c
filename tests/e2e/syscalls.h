/* syscalls.h - macros and helpers for the tables of system calls.
 *
 * Each area is a table of cases. A case has a name and a function, which runs in a process of its
 * own, in an empty folder of its own, with umask 0. The function consists of such expectations:
 *
 *     works(mkdir("d", 0755));                  the call's value, which is not -1
 *     fails(mkdir("d", 0755), EEXIST);          -1 with this errno
 *     equal(mode_of("d"), 0755);                two numbers
 *     same(target_of("l"), "nowhere");          two strings
 *     holds(access_is("f", R_OK));              true
 *
 * The first expectation that fails ends the case: it names the line, the call, and both values.
 *
 * A case that needs privileges has NEEDS_ROOT, and does not run for ordinary users; NOT_ROOT is the
 * opposite. The table itself is proved on tmpfs. If tmpfs behaves otherwise in a case, its
 * `differs` says how, and why.
 */
#ifndef RMEMFS_TESTS_SYSCALLS_H
#define RMEMFS_TESTS_SYSCALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/util.h"

enum { NEEDS_ROOT = 1, NOT_ROOT = 2 };

struct syscall_case {
	const char *name;
	void (*run)(void);
	unsigned needs;
	const char *differs; /* how tmpfs differs, or NULL */
};

struct syscall_area {
	const char *name;
	const struct syscall_case *cases;
	size_t ncases;
};

/* Defines an area from its table. */
#define SYSCALL_AREA(area, table)                                              \
	const struct syscall_area area = {.name = &#area[sizeof("area_") - 1], \
		.cases = (table),                                              \
		.ncases = ARRAY_SIZE(table)}

extern const struct syscall_area area_paths, area_names, area_links, area_rename, area_remove,
	area_permissions, area_owners, area_open, area_directories, area_times, area_special,
	area_truncate, area_unlinked, area_io, area_limits, area_flock, area_records;

/* ---- expectations ---------------------------------------------------------------------------- */

#define works(call)            expect_works(__FILE__, __LINE__, #call, (call))
#define fails(call, error)     expect_fails(__FILE__, __LINE__, #call, (errno = 0, (call)), (error))
#define equal(value, expected) expect_equal(__FILE__, __LINE__, #value, (value), (expected))
#define same(value, expected)  expect_same(__FILE__, __LINE__, #value, (value), (expected))
#define holds(condition)       expect_true(__FILE__, __LINE__, #condition, (condition))

long expect_works(const char *file, int line, const char *call, long value);
void expect_fails(const char *file, int line, const char *call, long value, int error);
void expect_equal(
	const char *file, int line, const char *what, long long value, long long expected);
void expect_same(
	const char *file, int line, const char *what, const char *value, const char *expected);
void expect_true(const char *file, int line, const char *what, bool value);

/* ---- helpers of cases ------------------------------------------------------------------------ */

/* None of these ids has an account or is in another's group. */
enum { ALICE = 41001, BOB = 41002, THEIR_GROUP = 42000 };

/* Root acts as this user with these groups, until as_root(). */
void as(uid_t uid, gid_t gid);
void as_with_group(uid_t uid, gid_t gid, gid_t also);
void as_root(void);

/* A name of n bytes, and a path of n bytes to the current folder; valid until the next two
 * calls. */
const char *name_of(size_t n);
const char *path_of(size_t n);

/* Makes a file with these bytes. */
void make(const char *path, const char *text);
void make_mode(const char *path, mode_t mode);
/* Returns all bytes of a short file, by its path or by an open descriptor. */
const char *text_of(const char *path);
const char *text_of_fd(int fd);

/* lstat's fields; -1 if there is no such file. */
long long mode_of(const char *path); /* without the type */
long long type_of(const char *path);
long long links_of(const char *path);
long long size_of(const char *path);
long long inode_of(const char *path);
long long uid_of(const char *path);
long long gid_of(const char *path);
const char *target_of(const char *path);

/* Runs fn in a process of its own, with the parent's ids; if it fails, the case fails. */
pid_t child(void (*fn)(void *arg), void *arg);
void finished(pid_t pid);

#endif
