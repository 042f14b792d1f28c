/* test_squash_change.c - sessions whose users are squashed and not change modes, owners, times and
 * attributes of inodes: SETATTR, COMMIT, SETXATTR, REMOVEXATTR. */
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "common/rpc/acl.h"
#include "tests/unit/server/squash_fixture.h"

/* ---- SETATTR --------------------------------------------------------------------------------- */

/* Changes that need an inode's owner, those that need none, and rights that a client may claim. */
static const uint32_t by_owner[] = {SET_MODE, SET_UID, SET_GID, SET_ATIME, SET_MTIME,
	SET_MODE | SET_CTIME, SET_UID | SET_CTIME, SET_ATIME | SET_CTIME, SET_ATIME | SET_MTIME,
	SET_ATIME | SET_MTIME | SET_CTIME, SET_MODE | SET_MTIME | SET_CTIME,
	SET_UID | SET_NO_PRIVILEGES, SET_MODE | SET_SIZE};
static const uint32_t by_anybody[] = {SET_SIZE, SET_ATIME_NOW, SET_MTIME_NOW,
	SET_ATIME_NOW | SET_MTIME_NOW, SET_NO_PRIVILEGES, SET_NO_CAPS, SET_CTIME,
	SET_MTIME | SET_CTIME, SET_ATIME_NOW | SET_MTIME | SET_CTIME,
	SET_SIZE | SET_MTIME | SET_CTIME};
static const struct rights claims[] = {{false, {0, 0}, {0, 0}}, {true, {0, 0}, {0, 0}},
	{true, {0, UINT32_MAX}, {0, UINT32_MAX}}, {true, {0, ALICE}, {0, STAFF}}};

static int set(uint64_t ino, uint32_t valid, const struct rights *rights)
{
	return FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino,
						 .valid = valid,
						 .mode = 0600,
						 .uid = ANON,
						 .gid = NOGROUP,
						 .size = 5,
						 .rights = *rights});
}

static void setattr__has_no_rights_of_owner_0(void **state)
{
	for (size_t k = 1; k < ARRAY_SIZE(kinds); k++)
		for (size_t r = 0; r < ARRAY_SIZE(claims); r++) {
			uint64_t ino;

			fx.ctx.squash = *kinds[k];
			ino = file_of(0, 0, 0666);
			for (size_t i = 0; i < ARRAY_SIZE(by_owner); i++) {
				struct attr before = fx_attr(ino), after;

				assert_int_equal(set(ino, by_owner[i], &claims[r]), -EPERM);
				after = fx_attr(ino);
				fx_assert_same(&before, &after);
			}
			assert_int_equal(set(ROOT_INO, SET_MODE, &claims[r]), -EPERM);
		}
}

/* The mode, too, gives the right to write. */
static void setattr__of_those_who_write_needs_no_owner(void **state)
{
	const struct rights anybody = {true, ID_RANGE_ALL, ID_RANGE_NONE};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; i < ARRAY_SIZE(by_anybody); i++) {
			fx.ctx.squash = *kinds[k];
			assert_int_equal(set(file_of(0, 0, 0666), by_anybody[i], &claims[0]), 0);
			assert_int_equal(set(file_of(0, 0, 0666), by_anybody[i], &anybody), 0);
		}
}

static void setattr__with_rights_of_others(void **state)
{
	static const struct {
		const struct squash *squash;
		uint32_t owner;
		struct rights rights;
		int status;
	} cases[] = {
		{&none, 0, {.bound = false}, 0},
		{&root, ALICE, {.bound = false}, 0},
		{&root, ALICE, {true, {ALICE, ALICE}, {1, 0}}, 0},
		{&root, ALICE, {true, {0, ALICE}, {1, 0}}, 0},
		{&root, ALICE, {true, {ANON, ANON}, {1, 0}}, -EPERM},
		{&root, ALICE, {true, {0, 0}, {1, 0}}, -EPERM},
		{&root, ALICE, {true, {1, 0}, {1, 0}}, -EPERM},
		{&root, 1, {.bound = false}, 0},
		{&root, UINT32_MAX, {.bound = false}, 0},
		{&all, ANON, {.bound = false}, 0},
		{&all, ANON, {true, {0, UINT32_MAX}, {1, 0}}, 0},
		{&all, ANON, {true, {ALICE, ALICE}, {1, 0}}, -EPERM},
		{&all, ANON, {true, {1, 0}, {1, 0}}, -EPERM},
		{&all, ALICE, {.bound = false}, -EPERM},
		{&all, ALICE, {true, {ALICE, ALICE}, {1, 0}}, -EPERM},
		{&all, ANON - 1, {.bound = false}, -EPERM},
		{&all, ANON + 1, {.bound = false}, -EPERM},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ino = file_of(cases[i].owner, STAFF, 0640);

		fx.ctx.squash = *cases[i].squash;
		assert_int_equal(set(ino, SET_MODE, &cases[i].rights), cases[i].status);
		assert_mode(ino, cases[i].status ? 0640 : 0600);
	}
}

static int chown_to(uint64_t ino, uint32_t valid, uint32_t uid, uint32_t gid)
{
	return FX_RUN(.op = RPC_SETATTR,
		.setattr = {.ino = ino, .valid = valid, .uid = uid, .gid = gid});
}

static void setattr__gives_0_to_the_anonymous(void **state)
{
	uint64_t ino = file_of(ALICE, STAFF, 0640);

	fx.ctx.squash = root;
	assert_int_equal(chown_to(ino, SET_UID, 0, 0), 0);
	assert_int_equal(fx.rep.attr.attr.uid, ANON);
	assert_owner(ino, ANON, STAFF);
	assert_int_equal(chown_to(ino, SET_GID, 0, 0), 0);
	assert_owner(ino, ANON, NOGROUP);
	assert_int_equal(chown_to(ino, SET_OWNERS, ALICE, STAFF), 0);
	assert_owner(ino, ALICE, STAFF);
}

/* As anybody may set the owners that a file has. */
static void setattr__gives_nothing_away_where_all_are_squashed(void **state)
{
	uint64_t ino = file_of(ANON, STAFF, 0640);

	fx.ctx.squash = all;
	assert_refused(chown_to(ino, SET_UID, ALICE, 0));
	assert_refused(chown_to(ino, SET_UID, 0, 0));
	assert_refused(chown_to(ino, SET_GID, 0, STAFF));
	assert_refused(chown_to(ino, SET_OWNERS, ANON, STAFF));
	assert_refused(chown_to(ino, SET_OWNERS, ALICE, NOGROUP));
	assert_owner(ino, ANON, STAFF);
	assert_int_equal(chown_to(ino, SET_UID, ANON, 0), 0);
	assert_int_equal(chown_to(ino, SET_OWNERS, ANON, NOGROUP), 0);
	assert_owner(ino, ANON, NOGROUP);
}

/* Else a file of another client, with such a bit and with bytes of this one, would run as the new
 * owner. */
static void setattr__of_owners_leaves_no_set_id_bits(void **state)
{
	static const uint32_t valid[] = {SET_UID, SET_GID, SET_OWNERS};

	for (size_t i = 0; i < ARRAY_SIZE(valid); i++) {
		uint64_t ino = file_of(ANON, NOGROUP, 06755), dir;
		uint64_t locked = file_of(ANON, NOGROUP, 02644);

		fx.ctx.squash = none;
		dir = fx_dir(ROOT_INO, valid[i] == SET_UID ? "a" : valid[i] == SET_GID ? "b" : "c");
		assert_int_equal(FX_RUN(.op = RPC_SETATTR,
					 .setattr = {.ino = dir, .valid = SET_MODE, .mode = 02755}),
			0);
		fx.ctx.squash = root;
		assert_refused(FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino,
								 .valid = valid[i] | SET_MODE,
								 .mode = 06755,
								 .uid = ALICE,
								 .gid = STAFF}));
		assert_int_equal(chown_to(ino, valid[i], ALICE, STAFF), 0);
		assert_mode(ino, 0755);
		/* Else the next chmod(2) would make it a program. */
		assert_int_equal(chown_to(locked, valid[i] | SET_NO_PRIVILEGES, ALICE, STAFF), 0);
		assert_mode(locked, 0644);
		assert_int_equal(chown_to(dir, valid[i], ALICE, STAFF), 0);
		assert_mode(dir, 02755);
		fx.ctx.squash = none;
	}
}

static int chmod_to(uint64_t ino, uint32_t mode)
{
	return FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_MODE, .mode = mode});
}

static void setattr__adds_no_set_id_bit(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		uint64_t ino = file_of(ANON, NOGROUP, 0755), dir;

		fx.ctx.squash = *kinds[k];
		for (uint32_t bits = S_ISGID; bits <= (S_ISUID | S_ISGID); bits += S_ISGID) {
			int status = chmod_to(ino, 0711 | bits);

			if (k)
				assert_refused(status);
			else
				assert_int_equal(status, 0);
			assert_mode(ino, k ? 0755 : 0711 | bits);
		}
		assert_int_equal(chmod_to(ino, 01700), 0);
		assert_mode(ino, 01700);
		assert_int_equal(make(RPC_MKDIR, S_IFDIR | 0755, 0, ANON, NOGROUP), 0);
		dir = fx.rep.entry.attr.ino;
		assert_int_equal(chmod_to(dir, 07775), 0);
		assert_mode(dir, 07775);
	}
}

/* Another client, which may, has set it. */
static void setattr__keeps_a_set_id_bit_that_is_there(void **state)
{
	uint64_t ino = file_of(ALICE, STAFF, 04755);

	fx.ctx.squash = root;
	assert_int_equal(chmod_to(ino, 04711), 0);
	assert_mode(ino, 04711);
	assert_refused(chmod_to(ino, 06711));
	assert_int_equal(chmod_to(ino, 0711), 0);
	assert_refused(chmod_to(ino, 04711));
	assert_mode(ino, 0711);
}

/* No squashed user is in group 0. */
static void setattr__leaves_no_set_group_id_on_a_directory_of_group_0(void **state)
{
	for (size_t k = 1; k < ARRAY_SIZE(kinds); k++) {
		uint64_t dir;

		fx.ctx.squash = none;
		assert_int_equal(make(RPC_MKDIR, S_IFDIR | 0755, 0, ANON, 0), 0);
		dir = fx.rep.entry.attr.ino;
		fx.ctx.squash = *kinds[k];
		assert_int_equal(chmod_to(dir, 02775), 0);
		assert_mode(dir, 0775);
	}
}

/* ---- COMMIT ---------------------------------------------------------------------------------- */

static void commit(uint64_t ino, uint32_t flags, uint32_t mode, uint32_t uid, uint32_t gid)
{
	uint64_t size = fx_attr(ino).size + 1;

	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = {.ino = ino,
							  .flags = flags | COMMIT_SIZE,
							  .size = size,
							  .mode = mode,
							  .uid = uid,
							  .gid = gid}),
		0);
	assert_int_equal(fx.rep.attr.attr.size, size);
}

static void commit__leaves_out_what_may_not_be_set(void **state)
{
	static const struct {
		const struct squash *squash;
		uint32_t uid, gid, mode; /* that the file has */
		uint32_t flags, set_mode, set_uid, set_gid;
		uint32_t uid_left, gid_left, mode_left;
	} cases[] = {
		{&none, 0, 0, 0644, SET_MODE | SET_OWNERS, 04755, 7, 8, 7, 8, 04755},
		{&root, 0, 0, 0644, SET_MODE | SET_OWNERS, 0777, ALICE, STAFF, 0, 0, 0644},
		{&root, ALICE, STAFF, 0644, SET_MODE, 06755, 0, 0, ALICE, STAFF, 0755},
		{&root, ALICE, STAFF, 0644, SET_OWNERS, 0, 0, 0, ANON, NOGROUP, 0644},
		{&root, ALICE, STAFF, 0644, SET_OWNERS, 0, 7, 8, 7, 8, 0644},
		{&root, ALICE, STAFF, 06755, SET_UID, 0, 7, 8, 7, STAFF, 0755},
		{&root, ALICE, STAFF, 06755, SET_MODE | SET_GID, 06711, 7, 8, ALICE, 8, 0711},
		{&root, ALICE, STAFF, 06755, SET_MODE, 06711, 0, 0, ALICE, STAFF, 06711},
		{&root, ALICE, STAFF, 02644, SET_GID, 0, 7, 8, ALICE, 8, 0644},
		{&root, ALICE, STAFF, 06755, 0, 0, 0, 0, ALICE, STAFF, 06755},
		{&all, ALICE, STAFF, 0644, SET_MODE, 0777, 0, 0, ALICE, STAFF, 0644},
		{&all, ANON, STAFF, 0644, SET_MODE, 04755, 0, 0, ANON, STAFF, 0755},
		{&all, ANON, STAFF, 0644, SET_OWNERS, 0, ALICE, 0, ANON, STAFF, 0644},
		{&all, 0, 0, 04755, SET_OWNERS, 0, ANON, NOGROUP, 0, 0, 04755},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ino = file_of(cases[i].uid, cases[i].gid, cases[i].mode);

		fx.ctx.squash = *cases[i].squash;
		commit(ino, cases[i].flags, cases[i].set_mode, cases[i].set_uid, cases[i].set_gid);
		assert_owner(ino, cases[i].uid_left, cases[i].gid_left);
		assert_mode(ino, cases[i].mode_left);
	}
}

/* ---- extended attributes --------------------------------------------------------------------- */

static void setxattr__refuses_what_needs_capabilities(void **state)
{
	static const char *const names[] = {XATTR_NAME_CAPS, "security.selinux", "security.ima",
		"trusted.overlay.opaque", "trusted.x"};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			uint64_t ino = file_of(ANON, NOGROUP, 0644);
			bool caps = i == 0;

			fx.ctx.squash = *kinds[k];
			if (k) {
				assert_refused(fx_set(ino, names[i], "new"));
				assert_int_equal(fx_getxattr(ino, names[i]), caps ? 4 : -ENODATA);
				fx.ctx.squash = none;
			}
			assert_int_equal(fx_set(ino, names[i], "new"), 0);
			fx.ctx.squash = *kinds[k];
			fx_expect_value(ino, names[i], "new", 3);
			if (k && !caps) {
				assert_refused(fx_removexattr(ino, names[i]));
				fx_expect_value(ino, names[i], "new", 3);
			} else {
				assert_int_equal(fx_removexattr(ino, names[i]), 0);
			}
		}
}

/* Users of the file's group, or all, may have the right to write it. */
static void setxattr__of_users_needs_no_owner(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		uint64_t ino = file_of(0, 0, 0666);

		fx.ctx.squash = *kinds[k];
		assert_int_equal(fx_set(ino, "user.trusted.x", "value"), 0);
		fx_expect_value(ino, "user.trusted.x", "value", 5);
		assert_int_equal(fx_removexattr(ino, "user.trusted.x"), 0);
		/* A write takes a file's capabilities away. */
		assert_int_equal(fx_removexattr(ino, XATTR_NAME_CAPS), 0);
	}
}

/* u::rw-,u:0:rwx,g::r--,m::rwx,o::r-- */
static size_t list_for_root(uint8_t buf[ACL_BYTES_MAX])
{
	struct acl acl = {.n = 5,
		.entries = {
			{ACL_USER_OBJ, 6, ACL_UNDEFINED_ID},
			{ACL_USER, 7, 0},
			{ACL_GROUP_OBJ, 4, ACL_UNDEFINED_ID},
			{ACL_MASK, 7, ACL_UNDEFINED_ID},
			{ACL_OTHER, 4, ACL_UNDEFINED_ID},
		}};

	return acl_encode(&acl, buf);
}

static int set_list(uint64_t ino, const char *name, uint32_t stage, const struct rights *rights)
{
	uint8_t buf[ACL_BYTES_MAX];
	uint32_t len = (uint32_t)list_for_root(buf), staged = stage ? 4 : 0;

	if (stage)
		assert_int_equal(fx_stage(stage, 0, buf, staged), 0);
	return FX_RUN(.op = RPC_SETXATTR, .setxattr = {.ino = ino,
						  .stage = stage,
						  .total = len,
						  .rights = *rights,
						  .name = fx_str(name),
						  .tail = {buf + staged, len - staged}});
}

static int remove_list(uint64_t ino, const struct rights *rights)
{
	return FX_RUN(.op = RPC_REMOVEXATTR,
		.removexattr = {ino, fx_str(XATTR_NAME_POSIX_ACL_ACCESS), *rights});
}

static void setxattr__of_a_list_has_no_rights_of_others(void **state)
{
	static const struct {
		const struct squash *squash;
		uint32_t owner;
		int status;
	} cases[] = {
		{&none, 0, 0},
		{&root, 0, -EPERM},
		{&root, ALICE, 0},
		{&all, 0, -EPERM},
		{&all, ALICE, -EPERM},
		{&all, ANON, 0},
	};
	const struct rights any = {.bound = false};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (uint32_t stage = 0; stage < 2; stage++) {
			uint64_t ino = file_of(cases[i].owner, STAFF, 0644);
			uint8_t list[ACL_BYTES_MAX];
			int err = cases[i].status;

			fx.ctx.squash = *cases[i].squash;
			assert_int_equal(
				set_list(ino, XATTR_NAME_POSIX_ACL_ACCESS, stage, &any), err);
			assert_mode(ino, err ? 0644 : 0674);
			/* Entries are as they were sent: they give rights, and no ownership. */
			if (!err)
				fx_expect_value(ino, XATTR_NAME_POSIX_ACL_ACCESS, list,
					list_for_root(list));
			assert_int_equal(remove_list(ino, &any), err);
		}
}

static void setxattr__of_a_list_by_its_claim(void **state)
{
	fx.ctx.squash = root;
	for (size_t r = 0; r < ARRAY_SIZE(claims); r++) {
		assert_int_equal(
			set_list(file_of(0, 0, 0644), XATTR_NAME_POSIX_ACL_ACCESS, 0, &claims[r]),
			-EPERM);
		assert_int_equal(remove_list(file_of(0, 0, 0644), &claims[r]), -EPERM);
		assert_int_equal(
			set_list(ROOT_INO, XATTR_NAME_POSIX_ACL_DEFAULT, 0, &claims[r]), -EPERM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SQUASH_TEST(setattr__has_no_rights_of_owner_0),
		SQUASH_TEST(setattr__of_those_who_write_needs_no_owner),
		SQUASH_TEST(setattr__with_rights_of_others),
		SQUASH_TEST(setattr__gives_0_to_the_anonymous),
		SQUASH_TEST(setattr__gives_nothing_away_where_all_are_squashed),
		SQUASH_TEST(setattr__of_owners_leaves_no_set_id_bits),
		SQUASH_TEST(setattr__adds_no_set_id_bit),
		SQUASH_TEST(setattr__keeps_a_set_id_bit_that_is_there),
		SQUASH_TEST(setattr__leaves_no_set_group_id_on_a_directory_of_group_0),
		SQUASH_TEST(commit__leaves_out_what_may_not_be_set),
		SQUASH_TEST(setxattr__refuses_what_needs_capabilities),
		SQUASH_TEST(setxattr__of_users_needs_no_owner),
		SQUASH_TEST(setxattr__of_a_list_has_no_rights_of_others),
		SQUASH_TEST(setxattr__of_a_list_by_its_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
