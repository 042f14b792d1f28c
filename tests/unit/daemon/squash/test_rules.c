/* The rights that each request of a squashed caller needs, op by op. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/util.h"
#include "common/rpc/rpc.h"
#include "daemon/squash/rules.h"

enum { ANON = 65534, ALICE = 41001, DIR = 5, OTHER_DIR = 6, EXEC = 0x20 };

static struct request req;
static struct rules_fact facts[RULES_INODES];
static bool write_back;

static int setup(void **state)
{
	memset(&req, 0, sizeof(req));
	memset(facts, 0, sizeof(facts));
	write_back = false;
	req.uid = req.gid = ANON;
	req.node = req.args.node2 = DIR;
	req.args.name = req.args.name2 = "name";
	return 0;
}

/* The set of all accesses within these permissions. */
static access_set set_of(unsigned permissions)
{
	const struct attr attr = {.mode = permissions << 6};

	return access_set_of_mode(&attr, 0, 0);
}

/* The inode is uid's, and the caller has these permissions. */
static void is(enum rules_inode inode, uint32_t mode, uint32_t uid, unsigned permissions)
{
	facts[inode] = (struct rules_fact){
		.known = true,
		.mode = mode,
		.uid = uid,
		.gid = uid,
		.allowed = set_of(permissions),
	};
}

static int result(void)
{
	enum rules_inode ask;

	return rules_check(&req, facts, write_back, &ask);
}

static enum rules_inode asked(void)
{
	enum rules_inode ask = RULES_INODES;

	assert_int_equal(rules_check(&req, facts, write_back, &ask), RULES_ASK);
	return ask;
}

/* Only these permissions of the request's inode are enough, and nothing else is asked for. */
static void needs_exactly(unsigned needed, uint32_t type)
{
	facts[RULES_NODE].known = false;
	assert_int_equal(asked(), RULES_NODE);
	for (unsigned permissions = 0; permissions <= 7; permissions++) {
		is(RULES_NODE, type | 0777, ALICE, permissions);
		assert_int_equal(result(), needed & ~permissions ? -EACCES : 0);
	}
}

/* ---- no check -------------------------------------------------------------------------------- */

static void check__nothing_by_an_open_file_or_of_attributes(void **state)
{
	static const enum request_op ops[] = {OP_GETATTR, OP_STATX, OP_READLINK, OP_READ, OP_WRITE,
		OP_STATFS, OP_RELEASE, OP_RELEASEDIR, OP_FSYNC, OP_FSYNCDIR, OP_FLUSH, OP_LSEEK,
		OP_FALLOCATE, OP_COPY, OP_LISTXATTR, OP_GETLK, OP_SETLK, OP_FORGET, OP_REMOUNT};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		req.op = ops[i];
		assert_int_equal(result(), 0);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static void lookup__searches(void **state)
{
	req.op = OP_LOOKUP;
	needs_exactly(ACCESS_EXECUTE, S_IFDIR);
	facts[RULES_NODE].known = false;
	req.args.name = ".";
	assert_int_equal(result(), 0);
	req.args.name = "..";
	assert_int_equal(result(), 0);
	req.args.name = "...";
	assert_int_equal(asked(), RULES_NODE);
}

static void make__writes_and_searches(void **state)
{
	static const enum request_op ops[] = {
		OP_CREATE, OP_TMPFILE, OP_MKDIR, OP_SYMLINK, OP_LINK, OP_MKNOD};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		req.op = ops[i];
		req.args.mode = S_IFREG | 0644;
		needs_exactly(ACCESS_WRITE | ACCESS_EXECUTE, S_IFDIR);
	}
}

static void mknod__makes_no_device(void **state)
{
	req.op = OP_MKNOD;
	is(RULES_NODE, S_IFDIR | 0777, ANON, 7);
	req.args.rdev = 0x103;
	req.args.mode = S_IFBLK | 0600;
	assert_int_equal(result(), -EPERM);
	req.args.mode = S_IFCHR | 0600;
	assert_int_equal(result(), -EPERM);
	is(RULES_NODE, S_IFDIR | 0755, ALICE, 5);
	assert_int_equal(result(), -EACCES);
	is(RULES_NODE, S_IFDIR | 0777, ANON, 7);
	req.args.rdev = 0; /* a whiteout */
	assert_int_equal(result(), 0);
	req.args.mode = S_IFIFO | 0600;
	assert_int_equal(result(), 0);
	req.args.mode = S_IFSOCK | 0600;
	assert_int_equal(result(), 0);
}

static void remove__writes_and_searches(void **state)
{
	req.op = OP_UNLINK;
	needs_exactly(ACCESS_WRITE | ACCESS_EXECUTE, S_IFDIR);
	req.op = OP_RMDIR;
	needs_exactly(ACCESS_WRITE | ACCESS_EXECUTE, S_IFDIR);
}

static void remove__from_a_sticky_directory(void **state)
{
	req.op = OP_UNLINK;
	is(RULES_NODE, S_IFDIR | 01777, ALICE, 7);
	assert_int_equal(asked(), RULES_CHILD);
	is(RULES_CHILD, S_IFREG | 0666, ALICE, 6);
	assert_int_equal(result(), -EPERM);
	is(RULES_CHILD, S_IFREG | 0, ANON, 0);
	assert_int_equal(result(), 0);
	facts[RULES_CHILD] = (struct rules_fact){.known = true, .missing = true};
	assert_int_equal(result(), 0);
	/* The directory's owner removes all of them. */
	facts[RULES_CHILD].known = false;
	is(RULES_NODE, S_IFDIR | 01700, ANON, 7);
	assert_int_equal(result(), 0);
}

static void rename__within_a_directory(void **state)
{
	req.op = OP_RENAME;
	is(RULES_NODE, S_IFDIR | 0755, ALICE, 5);
	assert_int_equal(result(), -EACCES);
	is(RULES_NODE, S_IFDIR | 0777, ALICE, 7);
	assert_int_equal(result(), 0);
}

static void rename__over_a_name_of_a_sticky_directory(void **state)
{
	req.op = OP_RENAME;
	is(RULES_NODE, S_IFDIR | 01777, ALICE, 7);
	assert_int_equal(asked(), RULES_CHILD);
	is(RULES_CHILD, S_IFREG | 0644, ALICE, 4);
	assert_int_equal(result(), -EPERM);
	is(RULES_CHILD, S_IFREG | 0644, ANON, 6);
	assert_int_equal(asked(), RULES_CHILD2);
	is(RULES_CHILD2, S_IFREG | 0644, ALICE, 4);
	assert_int_equal(result(), -EPERM);
	facts[RULES_CHILD2] = (struct rules_fact){.known = true, .missing = true};
	assert_int_equal(result(), 0);
}

static void rename__of_a_directory_to_another_parent(void **state)
{
	req.op = OP_RENAME;
	req.args.node2 = OTHER_DIR;
	is(RULES_NODE, S_IFDIR | 0777, ALICE, 7);
	assert_int_equal(asked(), RULES_NODE2);
	is(RULES_NODE2, S_IFDIR | 0755, ALICE, 5);
	assert_int_equal(result(), -EACCES);
	is(RULES_NODE2, S_IFDIR | 0777, ALICE, 7);
	assert_int_equal(asked(), RULES_CHILD);
	is(RULES_CHILD, S_IFDIR | 0755, ALICE, 5);
	assert_int_equal(result(), -EACCES);
	is(RULES_CHILD, S_IFREG | 0644, ALICE, 4);
	assert_int_equal(result(), 0);
	is(RULES_CHILD, S_IFDIR | 0777, ALICE, 7);
	assert_int_equal(result(), 0);
	req.args.flags = RENAME_EXCHANGE;
	assert_int_equal(asked(), RULES_CHILD2);
	is(RULES_CHILD2, S_IFDIR | 0755, ALICE, 5);
	assert_int_equal(result(), -EACCES);
	is(RULES_CHILD2, S_IFREG | 0600, ALICE, 0);
	assert_int_equal(result(), 0);
}

/* ---- open ------------------------------------------------------------------------------------ */

static void open__by_its_flags(void **state)
{
	static const struct {
		uint32_t flags;
		unsigned needed;
	} cases[] = {
		{O_RDONLY, ACCESS_READ},
		{O_WRONLY, ACCESS_WRITE},
		{O_WRONLY | O_APPEND, ACCESS_WRITE},
		{O_RDWR, ACCESS_READ | ACCESS_WRITE},
		{O_ACCMODE, ACCESS_READ | ACCESS_WRITE},
		{O_RDONLY | O_TRUNC, ACCESS_READ | ACCESS_WRITE},
		{O_RDONLY | EXEC, ACCESS_EXECUTE},
	};

	req.op = OP_OPEN;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		req.args.flags = cases[i].flags;
		needs_exactly(cases[i].needed, S_IFREG);
	}
}

static void open__without_a_new_access_time_is_the_owners(void **state)
{
	req.op = OP_OPEN;
	req.args.flags = O_RDONLY | O_NOATIME;
	is(RULES_NODE, S_IFREG | 0644, ALICE, 4);
	assert_int_equal(result(), -EPERM);
	is(RULES_NODE, S_IFREG | 0600, ALICE, 0);
	assert_int_equal(result(), -EACCES);
	is(RULES_NODE, S_IFREG | 0600, ANON, 6);
	assert_int_equal(result(), 0);
}

static void list__reads(void **state)
{
	req.op = OP_OPENDIR;
	needs_exactly(ACCESS_READ, S_IFDIR);
	req.op = OP_READDIR;
	needs_exactly(ACCESS_READ, S_IFDIR);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* The result for the owner, and for others with these permissions. */
static void sets(uint32_t valid, unsigned permissions, int owner, int other)
{
	req.op = OP_SETATTR;
	req.args.set.valid = valid;
	is(RULES_NODE, S_IFREG | 0644, ANON, permissions);
	assert_int_equal(result(), owner);
	is(RULES_NODE, S_IFREG | 0644, ALICE, permissions);
	assert_int_equal(result(), other);
}

static void setattr__size_writes_unless_the_file_is_open(void **state)
{
	sets(SET_SIZE, 5, -EACCES, -EACCES);
	sets(SET_SIZE, ACCESS_WRITE, 0, 0);
	sets(SET_SIZE | SET_MTIME_NOW, ACCESS_WRITE, 0, 0);
	req.args.has_fh = true;
	sets(SET_SIZE, 0, 0, 0);
}

static void setattr__mode_is_the_owners(void **state)
{
	sets(SET_MODE, 0, 0, -EPERM);
	req.args.has_fh = true; /* fchmod(2) needs the same */
	sets(SET_MODE, 7, 0, -EPERM);
}

static void setattr__owner_stays(void **state)
{
	req.args.set.uid = ANON;
	sets(SET_UID, 0, 0, -EPERM);
	req.args.set.uid = ALICE;
	sets(SET_UID, 7, -EPERM, -EPERM);
	req.args.set.uid = 0;
	sets(SET_UID, 7, -EPERM, -EPERM);
}

static void setattr__group_is_one_of_the_callers(void **state)
{
	req.op = OP_SETATTR;
	req.args.set.valid = SET_GID;
	is(RULES_NODE, S_IFREG | 0644, ANON, 6);
	facts[RULES_NODE].gid = ALICE;
	req.args.set.gid = ALICE; /* as it is */
	assert_int_equal(result(), 0);
	req.args.set.gid = ANON; /* the caller's */
	assert_int_equal(result(), 0);
	req.args.set.gid = 0;
	assert_int_equal(result(), -EPERM);
	req.args.set.valid = SET_OWNERS;
	req.args.set.uid = ANON;
	req.args.set.gid = ANON;
	assert_int_equal(result(), 0);
	is(RULES_NODE, S_IFREG | 0644, ALICE, 7);
	assert_int_equal(result(), -EPERM);
}

static void setattr__times_of_now_need_a_writer_others_the_owner(void **state)
{
	sets(SET_ATIME_NOW | SET_MTIME_NOW, 0, 0, -EACCES);
	sets(SET_ATIME_NOW | SET_MTIME_NOW, ACCESS_WRITE, 0, 0);
	sets(SET_ATIME_NOW, 7, 0, -EPERM);
	sets(SET_MTIME_NOW, 7, 0, -EPERM);
	sets(SET_ATIME | SET_MTIME, 7, 0, -EPERM);
	sets(SET_ATIME_NOW | SET_MTIME, 7, 0, -EPERM);
}

/* The kernel of a writeback cache sends no SET_MTIME_NOW, and tells times for its own sake. */
static void setattr__times_of_a_writeback_cache(void **state)
{
	write_back = true;
	sets(SET_MTIME | SET_CTIME, 0, 0, 0);
	sets(SET_CTIME, 0, 0, 0);
	sets(SET_ATIME_NOW | SET_MTIME | SET_CTIME, ACCESS_WRITE, 0, 0);
	sets(SET_ATIME_NOW | SET_MTIME | SET_CTIME, 0, 0, -EACCES);
	sets(SET_ATIME | SET_MTIME | SET_CTIME, 7, 0, -EPERM);
}

/* chown(2) of neither user nor group, and what writing takes away. */
static void setattr__of_nothing(void **state)
{
	req.op = OP_SETATTR;
	assert_int_equal(result(), 0);
}

/* ---- extended attributes --------------------------------------------------------------------- */

static void getxattr__reads(void **state)
{
	req.op = OP_GETXATTR;
	req.args.name = "user.note";
	needs_exactly(ACCESS_READ, S_IFREG);
	facts[RULES_NODE].known = false;
	req.args.name = "trusted.note";
	assert_int_equal(result(), -ENODATA);
	/* The kernel itself reads these. */
	req.args.name = "system.posix_acl_access";
	assert_int_equal(result(), 0);
	req.args.name = "security.capability";
	assert_int_equal(result(), 0);
}

static void change_xattr__writes_or_is_the_owners(void **state)
{
	static const enum request_op ops[] = {OP_SETXATTR, OP_REMOVEXATTR};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		req.op = ops[i];
		req.args.name = "user.note";
		needs_exactly(ACCESS_WRITE, S_IFREG);
		is(RULES_NODE, S_IFDIR | 01777, ALICE, 7);
		assert_int_equal(result(), -EPERM);
		is(RULES_NODE, S_IFDIR | 01777, ANON, 7);
		assert_int_equal(result(), 0);
		req.args.name = "trusted.note";
		assert_int_equal(result(), -EPERM);
		req.args.name = "security.other";
		assert_int_equal(result(), -EPERM);
		req.args.name = "security.capability";
		assert_int_equal(result(), ops[i] == OP_REMOVEXATTR ? 0 : -EPERM);
		req.args.name = "system.posix_acl_default";
		assert_int_equal(result(), 0);
		is(RULES_NODE, S_IFDIR | 0777, ALICE, 7);
		assert_int_equal(result(), -EPERM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(check__nothing_by_an_open_file_or_of_attributes, setup),
		cmocka_unit_test_setup(lookup__searches, setup),
		cmocka_unit_test_setup(make__writes_and_searches, setup),
		cmocka_unit_test_setup(mknod__makes_no_device, setup),
		cmocka_unit_test_setup(remove__writes_and_searches, setup),
		cmocka_unit_test_setup(remove__from_a_sticky_directory, setup),
		cmocka_unit_test_setup(rename__within_a_directory, setup),
		cmocka_unit_test_setup(rename__over_a_name_of_a_sticky_directory, setup),
		cmocka_unit_test_setup(rename__of_a_directory_to_another_parent, setup),
		cmocka_unit_test_setup(open__by_its_flags, setup),
		cmocka_unit_test_setup(open__without_a_new_access_time_is_the_owners, setup),
		cmocka_unit_test_setup(list__reads, setup),
		cmocka_unit_test_setup(setattr__size_writes_unless_the_file_is_open, setup),
		cmocka_unit_test_setup(setattr__mode_is_the_owners, setup),
		cmocka_unit_test_setup(setattr__owner_stays, setup),
		cmocka_unit_test_setup(setattr__group_is_one_of_the_callers, setup),
		cmocka_unit_test_setup(setattr__times_of_now_need_a_writer_others_the_owner, setup),
		cmocka_unit_test_setup(setattr__times_of_a_writeback_cache, setup),
		cmocka_unit_test_setup(setattr__of_nothing, setup),
		cmocka_unit_test_setup(getxattr__reads, setup),
		cmocka_unit_test_setup(change_xattr__writes_or_is_the_owners, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
