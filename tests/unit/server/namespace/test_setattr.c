/* test_setattr.c - changes of modes, owners and access control lists that were requested by an
 * outdated state. */
#include <linux/posix_acl.h>
#include <linux/xattr.h>

#include "common/rpc/acl.h"
#include "tests/unit/server/xattr_fixture.h"

enum { ALICE = 1000, BOB = 1001, STAFF = 50, OTHERS = 51 };

static uint64_t make_file(uint32_t mode, uint32_t uid, uint32_t gid)
{
	static unsigned n;
	char name[16];
	uint64_t ino;

	snprintf(name, sizeof(name), "file%u", n++);
	ino = fx_file(ROOT_INO, name);
	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino,
							   .valid = SET_MODE | SET_UID | SET_GID,
							   .mode = mode,
							   .uid = uid,
							   .gid = gid}),
		0);
	return ino;
}

/* ---- privileges ------------------------------------------------------------------------------ */

static void privileges__are_taken_from_the_mode_that_there_is(void **state)
{
	static const struct {
		uint32_t valid;
		struct id_range groups;
		uint32_t mode, left;
	} cases[] = {
		{SET_UID, {0, UINT32_MAX}, 0755, 0755},
		{SET_UID, {0, UINT32_MAX}, 04755, 0755},
		{SET_GID, {0, UINT32_MAX}, 04600, 0600},
		{SET_UID, {0, UINT32_MAX}, 06755, 0755},
		{SET_UID, {0, UINT32_MAX}, 02755, 0755},
		/* Set-group-id without execution is no privilege. */
		{SET_UID, {0, UINT32_MAX}, 07644, 03644},
		{SET_UID, {STAFF, STAFF}, 06644, 02644},
		{SET_UID | SET_GID, {STAFF, STAFF}, 06644, 02644},
		{SET_UID, {OTHERS, OTHERS}, 06644, 0644},
		{SET_UID, {1, 0}, 06644, 0644},
		{SET_UID, {1, 0}, 02644, 02644},
		{SET_ATIME_NOW, {1, 0}, 06755, 0755},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ino = make_file(cases[i].mode, ALICE, STAFF);
		const struct rpc_setattr set = {.ino = ino,
			.valid = cases[i].valid | SET_NO_PRIVILEGES,
			.uid = BOB,
			.gid = OTHERS,
			.rights = {true, ID_RANGE_ALL, cases[i].groups}};

		assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
		assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | cases[i].left);
		assert_int_equal(fx_attr(ino).mode, S_IFREG | cases[i].left);
	}
}

static void privileges__a_mode_that_is_set_and_directories_keep(void **state)
{
	uint64_t file = make_file(0644, ALICE, STAFF), dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(
		FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = file,
						  .valid = SET_MODE | SET_UID | SET_NO_PRIVILEGES,
						  .mode = 04755,
						  .uid = BOB}),
		0);
	assert_int_equal(fx_attr(file).mode, S_IFREG | 04755);
	assert_int_equal(FX_RUN(.op = RPC_SETATTR,
				 .setattr = {.ino = dir, .valid = SET_MODE, .mode = 06755}),
		0);
	assert_int_equal(
		FX_RUN(.op = RPC_SETATTR,
			.setattr = {.ino = dir, .valid = SET_UID | SET_NO_PRIVILEGES, .uid = BOB}),
		0);
	assert_int_equal(fx_attr(dir).mode, S_IFDIR | 06755);
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* The two are the same in all that SETATTR sets. */
static void assert_same(const struct attr *a, const struct attr *b)
{
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->atime, b->atime);
	assert_int_equal(a->mtime, b->mtime);
}

static void rights__are_of_the_owner_that_there_is(void **state)
{
	static const struct {
		uint32_t valid;
		bool bound;
		struct id_range owners;
		int status;
	} cases[] = {
		{SET_MODE, true, {ALICE, ALICE}, 0},
		{SET_MODE, true, {BOB, BOB}, -EPERM},
		{SET_UID, true, {BOB, BOB}, -EPERM},
		{SET_MTIME, true, {0, ALICE - 1}, -EPERM},
		{SET_MTIME, true, {0, ALICE}, 0},
		{SET_GID, true, {0, UINT32_MAX}, 0},
		{SET_MODE, true, {1, 0}, -EPERM},
		{SET_MODE, false, {BOB, BOB}, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ino = make_file(0640, ALICE, STAFF);
		struct attr before = fx_attr(ino), after;
		const struct rpc_setattr set = {.ino = ino,
			.valid = cases[i].valid,
			.mode = 04777,
			.uid = BOB,
			.gid = OTHERS,
			.mtime = 77,
			.rights = {cases[i].bound, cases[i].owners, ID_RANGE_NONE}};

		fx.ctx.now++;
		assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), cases[i].status);
		after = fx_attr(ino);
		assert_int_equal(after.ctime, before.ctime + (cases[i].status == 0));
		if (cases[i].status)
			assert_same(&before, &after);
	}
}

static void rights__set_group_id_is_of_the_group_that_there_is(void **state)
{
	static const struct {
		uint32_t valid;
		bool bound;
		struct id_range groups;
		uint32_t left;
	} cases[] = {
		{SET_MODE, true, {STAFF, STAFF}, 06755},
		{SET_MODE, true, {OTHERS, OTHERS}, 04755},
		{SET_MODE, true, {1, 0}, 04755},
		{SET_MODE | SET_GID, true, {OTHERS, OTHERS}, 06755},
		{SET_MODE | SET_GID, true, {STAFF, STAFF}, 04755},
		{SET_MODE, false, {1, 0}, 06755},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct rpc_setattr set = {.ino = make_file(0640, ALICE, STAFF),
			.valid = cases[i].valid,
			.mode = 06755,
			.gid = OTHERS,
			.rights = {cases[i].bound, {ALICE, ALICE}, cases[i].groups}};

		assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
		assert_int_equal(fx_attr(set.ino).mode, S_IFREG | cases[i].left);
	}
}

/* ---- access control lists -------------------------------------------------------------------- */

#define ACCESS  XATTR_NAME_POSIX_ACL_ACCESS
#define DEFAULT XATTR_NAME_POSIX_ACL_DEFAULT

/* rwxr-x---, and all rights for ALICE. */
static const struct acl list = {
	5, {{ACL_USER_OBJ, 7, UINT32_MAX}, {ACL_USER, 7, ALICE}, {ACL_GROUP_OBJ, 5, UINT32_MAX},
		   {ACL_MASK, 5, UINT32_MAX}, {ACL_OTHER, 0, UINT32_MAX}}};

static int set_list(uint64_t ino, const char *name, const struct acl *acl, struct rights rights)
{
	uint8_t buf[ACL_BYTES_MAX];
	uint32_t len = (uint32_t)acl_encode(acl, buf);

	return FX_RUN(.op = RPC_SETXATTR, .setxattr = {.ino = ino,
						  .total = len,
						  .rights = rights,
						  .name = fx_str(name),
						  .tail = {buf, len}});
}

static int remove_list(uint64_t ino, const char *name, struct rights rights)
{
	return FX_RUN(.op = RPC_REMOVEXATTR,
		.removexattr = {.ino = ino, .name = fx_str(name), .rights = rights});
}

static const struct {
	struct rights rights;
	int status;
} by_owner[] = {
	{{true, {ALICE, ALICE}, ID_RANGE_ALL}, 0},
	{{true, {BOB, BOB}, ID_RANGE_ALL}, -EPERM},
	{{true, {ALICE + 1, UINT32_MAX}, ID_RANGE_ALL}, -EPERM},
	{{true, {1, 0}, ID_RANGE_ALL}, -EPERM},
	{{false, {BOB, BOB}, ID_RANGE_ALL}, 0},
};

static void lists__are_set_by_the_owner_that_there_is(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(by_owner); i++) {
		uint64_t ino = make_file(0600, ALICE, STAFF);
		struct attr before = fx_attr(ino), after;

		fx.ctx.now++;
		assert_int_equal(
			set_list(ino, ACCESS, &list, by_owner[i].rights), by_owner[i].status);
		after = fx_attr(ino);
		assert_int_equal(after.ctime, before.ctime + (by_owner[i].status == 0));
		if (by_owner[i].status)
			assert_same(&before, &after);
		else
			assert_int_equal(after.mode, S_IFREG | 0750);
		assert_int_equal(fx_getxattr(ino, ACCESS) > 0, by_owner[i].status == 0);
	}
}

static void lists__are_removed_by_the_owner_that_there_is(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(by_owner); i++) {
		uint64_t ino = make_file(0600, ALICE, STAFF);

		assert_int_equal(set_list(ino, ACCESS, &list, (struct rights){0}), 0);
		assert_int_equal(remove_list(ino, ACCESS, by_owner[i].rights), by_owner[i].status);
		assert_int_equal(fx_getxattr(ino, ACCESS) > 0, by_owner[i].status != 0);
	}
}

static void lists__of_directories_likewise(void **state)
{
	const struct rights bobs = {true, {BOB, BOB}, ID_RANGE_ALL};
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(set_list(dir, DEFAULT, &list, bobs), -EPERM);
	assert_int_equal(fx_flags(dir), 0);
	assert_int_equal(set_list(dir, DEFAULT, &list, (struct rights){0}), 0);
	assert_int_equal(remove_list(dir, DEFAULT, bobs), -EPERM);
	assert_true(fx_flags(dir) & ATTR_DEFAULT_ACL);
	assert_int_equal(
		FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = dir, .valid = SET_UID, .uid = BOB}),
		0);
	assert_int_equal(remove_list(dir, DEFAULT, bobs), 0);
	assert_int_equal(fx_flags(dir), 0);
}

/* The same rule as in chmod(2). */
static void lists__set_group_id_is_of_the_group_that_there_is(void **state)
{
	static const struct {
		struct rights rights;
		uint32_t left;
	} cases[] = {
		{{true, {ALICE, ALICE}, {STAFF, STAFF}}, 06750},
		{{true, {ALICE, ALICE}, {OTHERS, OTHERS}}, 04750},
		{{true, {ALICE, ALICE}, {1, 0}}, 04750},
		{{false, {1, 0}, {1, 0}}, 06750},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ino = make_file(06777, ALICE, STAFF);

		assert_int_equal(set_list(ino, ACCESS, &list, cases[i].rights), 0);
		assert_int_equal(fx_attr(ino).mode, S_IFREG | cases[i].left);
	}
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, fx_set_up, fx_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(privileges__are_taken_from_the_mode_that_there_is),
		CASE(privileges__a_mode_that_is_set_and_directories_keep),
		CASE(rights__are_of_the_owner_that_there_is),
		CASE(rights__set_group_id_is_of_the_group_that_there_is),
		CASE(lists__are_set_by_the_owner_that_there_is),
		CASE(lists__are_removed_by_the_owner_that_there_is),
		CASE(lists__of_directories_likewise),
		CASE(lists__set_group_id_is_of_the_group_that_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
