/* test_server_setattr.c - changes of modes and owners that were asked for by what is not so any
 * more. */
#include "tests/unit/meta_fixture.h"

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
		/* Not of a privilege. */
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
			.groups = cases[i].groups};

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

/* In what SETATTR sets. */
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
		struct id_range owners;
		int status;
	} cases[] = {
		{SET_MODE | SET_IF_OWNED, {ALICE, ALICE}, 0},
		{SET_MODE | SET_IF_OWNED, {BOB, BOB}, -EPERM},
		{SET_UID | SET_IF_OWNED, {BOB, BOB}, -EPERM},
		{SET_MTIME | SET_IF_OWNED, {0, ALICE - 1}, -EPERM},
		{SET_MTIME | SET_IF_OWNED, {0, ALICE}, 0},
		{SET_GID | SET_IF_OWNED, {0, UINT32_MAX}, 0},
		{SET_MODE | SET_IF_OWNED, {1, 0}, -EPERM},
		{SET_MODE, {BOB, BOB}, 0},
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
			.owners = cases[i].owners};

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
		struct id_range groups;
		uint32_t left;
	} cases[] = {
		{SET_MODE | SET_IF_OWNED, {STAFF, STAFF}, 06755},
		{SET_MODE | SET_IF_OWNED, {OTHERS, OTHERS}, 04755},
		{SET_MODE | SET_IF_OWNED, {1, 0}, 04755},
		{SET_MODE | SET_GID | SET_IF_OWNED, {OTHERS, OTHERS}, 06755},
		{SET_MODE | SET_GID | SET_IF_OWNED, {STAFF, STAFF}, 04755},
		{SET_MODE, {1, 0}, 06755},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct rpc_setattr set = {.ino = make_file(0640, ALICE, STAFF),
			.valid = cases[i].valid,
			.mode = 06755,
			.gid = OTHERS,
			.owners = {ALICE, ALICE},
			.groups = cases[i].groups};

		assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
		assert_int_equal(fx_attr(set.ino).mode, S_IFREG | cases[i].left);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
