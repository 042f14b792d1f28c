/* test_squash_request.c - sessions whose users are squashed and not: inodes that they make, and a
 * decision for each RPC. test_squash_change.c has changes of inodes. */
#include <linux/fs.h>

#include "server/namespace/squash_request.h"
#include "tests/unit/server/squash_fixture.h"

/* ---- inodes that are made -------------------------------------------------------------------- */

static const struct {
	uint16_t op;
	uint32_t mode;
} makers[] = {
	{RPC_CREATE, S_IFREG | 0644},
	{RPC_TMPFILE, S_IFREG | 0644},
	{RPC_MKNOD, S_IFREG | 0644},
	{RPC_MKNOD, S_IFIFO | 0644},
	{RPC_MKNOD, S_IFSOCK | 0644},
	{RPC_MKDIR, S_IFDIR | 0755},
	{RPC_SYMLINK, S_IFLNK | 0777},
};

static void make__gives_the_owner_that_may_be(void **state)
{
	static const struct {
		const struct squash *squash;
		uint32_t uid, gid, uid_made, gid_made;
	} cases[] = {
		{&none, 0, 0, 0, 0},
		{&none, ALICE, STAFF, ALICE, STAFF},
		{&root, 0, 0, ANON, NOGROUP},
		{&root, ALICE, 0, ALICE, NOGROUP},
		{&root, 0, STAFF, ANON, STAFF},
		{&root, ALICE, STAFF, ALICE, STAFF},
		{&root, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
		{&all, 0, 0, ANON, NOGROUP},
		{&all, ALICE, STAFF, ANON, NOGROUP},
		{&all, ANON, NOGROUP, ANON, NOGROUP},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t m = 0; m < ARRAY_SIZE(makers); m++) {
			const struct attr *attr = &fx.rep.entry.attr;

			fx.ctx.squash = *cases[i].squash;
			assert_int_equal(
				make(makers[m].op, makers[m].mode, 0, cases[i].uid, cases[i].gid),
				0);
			assert_int_equal(attr->uid, cases[i].uid_made);
			assert_int_equal(attr->gid, cases[i].gid_made);
			assert_owner(attr->ino, cases[i].uid_made, cases[i].gid_made);
		}
}

/* The directory's owner wants that, not the client. */
static void make__takes_the_group_of_a_directory_with_set_group_id(void **state)
{
	static const uint32_t groups[] = {0, STAFF};

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		uint64_t dir;

		fx.ctx.squash = none;
		assert_int_equal(make(RPC_MKDIR, S_IFDIR | 02777, 0, 0, groups[g]), 0);
		dir = fx.rep.entry.attr.ino;
		for (size_t k = 1; k < ARRAY_SIZE(kinds); k++)
			for (size_t m = 0; m < ARRAY_SIZE(makers); m++) {
				fx.ctx.squash = *kinds[k];
				assert_int_equal(
					make_in(dir, makers[m].op, makers[m].mode, 0, 0, 0), 0);
				assert_owner(fx.rep.entry.attr.ino, ANON, groups[g]);
			}
	}
}

static void make__refuses_set_id_bits(void **state)
{
	static const uint32_t bits[] = {S_ISUID, S_ISGID, S_ISUID | S_ISGID};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t m = 0; m < ARRAY_SIZE(makers); m++)
			for (size_t b = 0; b < ARRAY_SIZE(bits); b++) {
				uint64_t before = fx_usage().inodes;
				bool file =
					makers[m].op != RPC_MKDIR && makers[m].op != RPC_SYMLINK;
				int status;

				fx.ctx.squash = *kinds[k];
				status = make(
					makers[m].op, makers[m].mode | bits[b], 0, ALICE, STAFF);
				if (k && file)
					assert_refused(status);
				else
					assert_int_equal(status, 0);
				assert_int_equal(fx_usage().inodes, before + !status);
				if (makers[m].op == RPC_MKDIR)
					assert_mode(fx.rep.entry.attr.ino, 0755 | bits[b]);
			}
}

static void make__sticky_bits_are_no_privilege(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		fx.ctx.squash = *kinds[k];
		assert_int_equal(make(RPC_CREATE, S_IFREG | 01644, 0, ALICE, STAFF), 0);
		assert_mode(fx.rep.entry.attr.ino, 01644);
	}
}

static void mknod__refuses_devices(void **state)
{
	static const struct {
		uint32_t mode, rdev;
		bool device;
	} cases[] = {
		{S_IFCHR | 0666, 0x103, true},
		{S_IFBLK | 0666, 0x800, true},
		{S_IFBLK | 0666, 0, true},
		{S_IFCHR, 0, false}, /* a whiteout */
		{S_IFIFO | 0666, 0x103, false},
	};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			int status;

			fx.ctx.squash = *kinds[k];
			status = make(RPC_MKNOD, cases[i].mode, cases[i].rdev, 0, 0);
			if (k && cases[i].device)
				assert_refused(status);
			else
				assert_int_equal(status, 0);
			if (!status)
				assert_owner(fx.rep.entry.attr.ino, k ? ANON : 0, k ? NOGROUP : 0);
		}
}

static void rename__leaves_a_whiteout_of_the_owner_that_may_be(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		char from[16], to[16];
		struct rpc_rename rename = {.parent = ROOT_INO,
			.new_parent = ROOT_INO,
			.flags = RENAME_WHITEOUT,
			.uid = 0,
			.gid = 0};

		snprintf(from, sizeof(from), "from%zu", k);
		snprintf(to, sizeof(to), "to%zu", k);
		rename.name = fx_str(from);
		rename.new_name = fx_str(to);
		fx.ctx.squash = none;
		fx_file(ROOT_INO, from);
		fx.ctx.squash = *kinds[k];
		assert_int_equal(FX_RUN(.op = RPC_RENAME, .rename = rename), 0);
		assert_int_equal(fx_lookup(ROOT_INO, from), 0);
		assert_true(S_ISCHR(fx.rep.entry.attr.mode));
		assert_owner(fx.rep.entry.attr.ino, k ? ANON : 0, k ? NOGROUP : 0);
	}
}

/* A file that is there is opened, whoever owns it: that is the daemon's to check. */
static void create__opens_what_is_there(void **state)
{
	struct rpc_create create = {
		.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = fx_str("there")};
	uint64_t ino;

	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = create), 0);
	ino = fx.rep.entry.attr.ino;
	fx.ctx.squash = all;
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = create), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
	assert_owner(ino, 0, 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* QUOTA names the owner of a file that is written, which need not be the caller. */
static void quota__is_of_any_owner(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct rpc_request req = {.op = RPC_QUOTA, .quota = {QUOTA_USER, 0, 3, false}};
		struct rpc_str why = {0};

		assert_int_equal(squash_request(kinds[k], &req, &why), 0);
		assert_int_equal(req.quota.id, 0);
	}
}

static const uint16_t with_rule[] = {RPC_SETATTR, RPC_CREATE, RPC_TMPFILE, RPC_MKNOD, RPC_MKDIR,
	RPC_SYMLINK, RPC_RENAME, RPC_COMMIT, RPC_SETXATTR, RPC_REMOVEXATTR};
static const uint16_t without_rule[] = {RPC_LOOKUP, RPC_GETATTR, RPC_READLINK, RPC_READDIR,
	RPC_EXTENTS, RPC_STATFS, RPC_GETXATTR, RPC_LISTXATTR, RPC_UNPROTECT, RPC_GETLK, RPC_LINK,
	RPC_UNLINK, RPC_RMDIR, RPC_GRANT, RPC_RETURN, RPC_STAGE, RPC_FALLOCATE, RPC_COPY, RPC_QUOTA,
	RPC_LEASE, RPC_LOCK, RPC_CONVERT, RPC_NAMES};
/* They never come to execute_request(); MAKE has a rule for each of its files (test_make). */
static const uint16_t elsewhere[] = {RPC_ATTACH, RPC_REGIONS, RPC_PING, RPC_BYE, RPC_STATUS,
	RPC_SNAPSHOT, RPC_WHO, RPC_CANCEL, RPC_RELOAD, RPC_EVICT, RPC_LOG, RPC_AUTH, RPC_TRIAL,
	RPC_FROZEN, RPC_MAKE};

static bool has(const uint16_t *ops, size_t n, unsigned op)
{
	while (n)
		if (ops[--n] == op)
			return true;
	return false;
}

/* Where all names are empty, each byte of a request counts. */
static void request__each_op_has_a_rule_or_needs_none(void **state)
{
	for (unsigned op = 0; op < RPC_OP_MAX; op++) {
		struct rpc_request req, before;
		struct rpc_str why = {0};
		bool rule = has(with_rule, ARRAY_SIZE(with_rule), op);

		if (!rpc_op_info(op)->name)
			continue;
		if (!rule && !has(without_rule, ARRAY_SIZE(without_rule), op) &&
			!has(elsewhere, ARRAY_SIZE(elsewhere), op))
			fail_msg("%s: does it name an owner, a mode or an attribute?",
				rpc_op_info(op)->name);
		memset(&req, 0, sizeof(req));
		req.op = (uint16_t)op;
		before = req;
		assert_int_equal(squash_request(&none, &req, &why), 0);
		assert_memory_equal(&req, &before, sizeof(req));
		assert_int_equal(squash_request(&root, &req, &why), 0);
		if (!rule)
			assert_memory_equal(&req, &before, sizeof(req));
	}
}

static void expect_settled(const struct squash *squash, struct rpc_request *req)
{
	struct rpc_request once;
	struct rpc_str why = {0};

	assert_int_equal(squash_request(squash, req, &why), 0);
	once = *req;
	assert_int_equal(squash_request(squash, req, &why), 0);
	assert_memory_equal(req, &once, sizeof(once));
	assert_int_equal(why.len, 0);
}

/* A request that waits runs again, and one that a killed server has not answered comes again. */
static void request__twice_changes_nothing_more(void **state)
{
	for (size_t k = 1; k < ARRAY_SIZE(kinds); k++) {
		struct rpc_request req;

		for (size_t i = 0; i < ARRAY_SIZE(with_rule); i++) {
			memset(&req, 0, sizeof(req));
			req.op = with_rule[i];
			expect_settled(kinds[k], &req);
		}
		memset(&req, 0, sizeof(req));
		req.op = RPC_SETATTR;
		req.setattr.valid = SET_OWNERS | SET_MODE;
		req.setattr.uid = k == 1 ? 0 : ANON;
		req.setattr.gid = k == 1 ? 0 : NOGROUP;
		expect_settled(kinds[k], &req);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SQUASH_TEST(make__gives_the_owner_that_may_be),
		SQUASH_TEST(make__takes_the_group_of_a_directory_with_set_group_id),
		SQUASH_TEST(make__refuses_set_id_bits),
		SQUASH_TEST(make__sticky_bits_are_no_privilege),
		SQUASH_TEST(mknod__refuses_devices),
		SQUASH_TEST(rename__leaves_a_whiteout_of_the_owner_that_may_be),
		SQUASH_TEST(create__opens_what_is_there),
		SQUASH_TEST(quota__is_of_any_owner),
		SQUASH_TEST(request__each_op_has_a_rule_or_needs_none),
		SQUASH_TEST(request__twice_changes_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
