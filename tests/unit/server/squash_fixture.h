/* squash_fixture.h - sessions whose users are squashed and not, and inodes of owners and modes, on top
 * of xattr_fixture.h. */
#ifndef RMEMFS_TESTS_SQUASH_FIXTURE_H
#define RMEMFS_TESTS_SQUASH_FIXTURE_H

#include <linux/xattr.h>

#include "tests/unit/server/xattr_fixture.h"

enum { ALICE = 1000, STAFF = 50, ANON = 65534, NOGROUP = 65533 };

static const struct squash none, root = {SQUASH_ROOT, ANON, NOGROUP},
				 all = {SQUASH_ALL, ANON, NOGROUP};
static const struct squash *const kinds[] = {&none, &root, &all};

static inline struct rpc_str next_name(void)
{
	static unsigned nnames;
	static char name[16];

	snprintf(name, sizeof(name), "n%u", nnames++);
	return fx_str(name);
}

/* By the squash, with a text for people. */
static inline void assert_refused(int status)
{
	assert_int_equal(status, -EPERM);
	assert_true(fx.rep.text.len > 0);
	assert_int_equal(strnlen(fx.rep.text.s, fx.rep.text.len + 1), fx.rep.text.len);
}

/* A file with capabilities, as a client whose users are not squashed has made it. */
static inline uint64_t file_of(uint32_t uid, uint32_t gid, uint32_t mode)
{
	const struct squash squash = fx.ctx.squash;
	uint64_t ino;

	fx.ctx.squash = none;
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = {.parent = ROOT_INO,
							  .mode = S_IFREG | mode,
							  .uid = uid,
							  .gid = gid,
							  .name = next_name()}),
		0);
	ino = fx.rep.entry.attr.ino;
	assert_int_equal(fx_set(ino, XATTR_NAME_CAPS, "caps"), 0);
	fx.ctx.squash = squash;
	return ino;
}

static inline void assert_owner(uint64_t ino, uint32_t uid, uint32_t gid)
{
	struct attr attr = fx_attr(ino);

	assert_int_equal(attr.uid, uid);
	assert_int_equal(attr.gid, gid);
}

static inline void assert_mode(uint64_t ino, uint32_t mode)
{
	assert_int_equal(fx_attr(ino).mode & 07777, mode);
}

/* Any of the operations that make an inode, as the squash of now has it; it is in fx.rep.entry. */
static inline int make_in(
	uint64_t parent, uint16_t op, uint32_t mode, uint32_t rdev, uint32_t uid, uint32_t gid)
{
	struct rpc_create create = {.parent = parent,
		.mode = mode,
		.uid = uid,
		.gid = gid,
		.rdev = rdev,
		.exclusive = true,
		.name = op == RPC_TMPFILE ? (struct rpc_str){0} : next_name(),
		.target = op == RPC_SYMLINK ? fx_str("target") : (struct rpc_str){0}};

	return FX_RUN(.op = op, .create = create);
}

static inline int make(uint16_t op, uint32_t mode, uint32_t rdev, uint32_t uid, uint32_t gid)
{
	return make_in(ROOT_INO, op, mode, rdev, uid, gid);
}

#define SQUASH_TEST(test) cmocka_unit_test_setup_teardown(test, fx_set_up, fx_tear_down)

#endif
