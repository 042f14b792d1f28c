/* test_check_xattr.c - corruptions of extended attributes, of ACLs and of staged values, each named
 * by the check; see corruption.h. */
#include "tests/unit/server/corruption.h"
#include "tests/unit/server/xattr_fixture.h"

#include <linux/posix_acl.h>
#include <linux/xattr.h>

#include "common/rpc/acl.h"
#include "server/record/stage.h"
#include "server/record/xattr.h"

enum { STORE_BYTES = 4 << 20, LONG_BYTES = 10000, STAGED_BYTES = 5000 };

/* ---- the store ------------------------------------------------------------------------------- */

static uint64_t dir, file, plain;
static uint8_t data[LONG_BYTES];

/* user::7 user:1:7 group::5 mask::MASK other::0 */
static size_t make_acl(uint16_t mask, uint8_t buf[ACL_BYTES_MAX])
{
	const struct acl acl = {
		5, {{ACL_USER_OBJ, 7, UINT32_MAX}, {ACL_USER, 7, 1}, {ACL_GROUP_OBJ, 5, UINT32_MAX},
			   {ACL_MASK, mask, UINT32_MAX}, {ACL_OTHER, 0, UINT32_MAX}}};

	return acl_encode(&acl, buf);
}

static int set_up(void **state)
{
	uint8_t acl[ACL_BYTES_MAX];
	size_t len = make_acl(7, acl);

	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, STORE_BYTES);
	fx_pattern(data, sizeof(data), 1);
	dir = fx_dir(ROOT_INO, "dir");
	file = fx_file(ROOT_INO, "file");
	plain = fx_file(ROOT_INO, "plain");
	assert_int_equal(fx_setxattr(file, "user.long", data, LONG_BYTES, 0), 0);
	assert_int_equal(fx_set(file, "user.short", "a value"), 0);
	assert_int_equal(fx_setxattr(file, XATTR_NAME_POSIX_ACL_ACCESS, acl, (uint32_t)len, 0), 0);
	assert_int_equal(fx_setxattr(dir, XATTR_NAME_POSIX_ACL_DEFAULT, acl, (uint32_t)len, 0), 0);
	assert_int_equal(fx_stage(4, 0, data, STAGED_BYTES), 0);
	keep_image();
	return 0;
}

static int tear_down(void **state)
{
	free(image);
	return fx_tear_down(state);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct xattr find(uint64_t ino, const char *name)
{
	struct rpc_str str = fx_str(name);
	struct stored_inode i = load(ino);
	struct xattr x;

	assert_int_equal(xattr_find(fx_volume(), &fx.m->hash, &i, &str, &x), 0);
	return x;
}

/* Sets it like a server that does not know the meaning of attributes. */
static void set(uint64_t ino, const char *name, const void *value, size_t len)
{
	struct rpc_str str = fx_str(name);
	struct xattr x = find(ino, name);
	struct stored_inode i = load(ino);

	assert_int_equal(xattr_put(fx_volume(), &i, &x, &str, value, (uint32_t)len), 0);
	save(&i);
}

static void set_flags(uint64_t ino, uint32_t flags)
{
	struct stored_inode i = load(ino);

	i.attr.flags = flags;
	save(&i);
}

static void put_names_len(uint32_t len)
{
	uint32_t le = htole32(len);

	put(STORE_XATTR, key_of(file), XATTR_HEADER, &le, sizeof(le));
}

/* ---- corruptions: attributes ----------------------------------------------------------------- */

static void part_gone(void)
{
	del(STORE_XVALUE, key_of(file), find(file, "user.long").parts + 2);
}

static void part_shorter(void)
{
	put(STORE_XVALUE, key_of(file), find(file, "user.long").parts + 2, data, 100);
}

static void part_of_another_value(void)
{
	put(STORE_XVALUE, key_of(file), find(file, "user.long").parts + 2, data, XATTR_PART_BYTES);
}

static void part_too_many(void)
{
	put(STORE_XVALUE, key_of(file), find(file, "user.long").parts + 9, data, 10);
}

static void part_of_nobody(void)
{
	put(STORE_XVALUE, key_of(999), 256, data, 10);
}

static void part_of_plain(void)
{
	put(STORE_XVALUE, key_of(plain), 256, data, 10);
}

static void record_of_nobody(void)
{
	put(STORE_XATTR, key_of(999), 256, data, 10);
}

static void record_of_plain(void)
{
	put(STORE_XATTR, key_of(plain), 256, data, 10);
}

static void record_unreadable(void)
{
	put(STORE_XATTR, key_of(file), find(file, "user.short").cookie, "x", 1);
}

static void record_elsewhere(void)
{
	static const char record[] = "\5\0user.value";

	put(STORE_XATTR, key_of(file), UINT64_C(1) << 40, record, sizeof(record) - 1);
}

static void flag_too_many(void)
{
	set_flags(file, ATTR_XATTRS | ATTR_ACL | ATTR_CAPS);
}

static void flag_too_few(void)
{
	set_flags(file, ATTR_XATTRS);
}

static void flag_alone(void)
{
	set_flags(plain, ATTR_DEFAULT_ACL);
}

static void flags_gone(void)
{
	set_flags(file, 0);
}

static void names_longer(void)
{
	put_names_len(500);
}

static void names_of_no_length(void)
{
	del(STORE_XATTR, key_of(file), XATTR_HEADER);
}

static void names_of_impossible_length(void)
{
	put_names_len(XATTR_NAMES_MAX + 1);
}

/* ---- corruptions: ACLs ----------------------------------------------------------------------- */

static void acl_invalid(void)
{
	set(file, XATTR_NAME_POSIX_ACL_ACCESS, "\2\0\0\0value", 9);
}

static void acl_empty(void)
{
	set(dir, XATTR_NAME_POSIX_ACL_DEFAULT, "", 0);
}

static void acl_of_another_mode(void)
{
	uint8_t acl[ACL_BYTES_MAX];

	set(file, XATTR_NAME_POSIX_ACL_ACCESS, acl, make_acl(4, acl));
}

static void mode_of_another_acl(void)
{
	struct stored_inode i = load(file);

	i.attr.mode ^= 0020;
	save(&i);
}

static void default_acl_of_file(void)
{
	uint8_t acl[ACL_BYTES_MAX];

	set(file, XATTR_NAME_POSIX_ACL_DEFAULT, acl, make_acl(7, acl));
}

/* ---- corruptions: staged values -------------------------------------------------------------- */

static uint64_t piece(uint64_t offset)
{
	return UINT64_C(4) << STAGE_SHIFT | offset;
}

static void stage_of_nobody(void)
{
	put(STORE_STAGE, 77, piece(0), data, 10);
}

static void stage_piece_gone(void)
{
	del(STORE_STAGE, fx.ctx.session, piece(0));
}

static void stage_piece_short(void)
{
	put(STORE_STAGE, fx.ctx.session, piece(STAGE_PIECE_BYTES), data, 100);
}

static void stage_piece_elsewhere(void)
{
	put(STORE_STAGE, fx.ctx.session, piece(5), data, 10);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct corruption corruptions[] = {
	{part_gone, "'user.long' of inode N has a value that can't be read"},
	{part_shorter, "'user.long' of inode N has a value that can't be read"},
	{part_of_another_value, "'user.long' of inode N has another value than its sum tells"},
	{part_too_many, "inode N has values of 6 parts, and 7 are there"},
	{part_of_nobody, "table xvalue has records of inode 999, which is not there"},
	{part_of_plain, "inode N has records in table xvalue, and does not say so"},
	{record_of_nobody, "table xattr has records of inode 999, which is not there"},
	{record_of_plain, "inode N has records in table xattr, and does not say so"},
	{record_unreadable, "inode N has attributes that can't be read"},
	{record_elsewhere, "'user.' of inode N has a cookie that is not its name's"},
	{flag_too_many, "inode N says that it has attributes b, and has 3"},
	{flag_too_few, "inode N says that it has attributes 1, and has 3"},
	{flag_alone, "inode N says that it has attributes 4, and has 0"},
	{flags_gone, "inode N has records in table xattr, and does not say so"},
	{names_longer, "inode N has names of N bytes, and says 500"},
	{names_of_no_length, "inode N does not say how long its names are"},
	{names_of_impossible_length, "inode N does not say how long its names are"},
	{acl_invalid, "'system.posix_acl_access' of inode N is no valid ACL"},
	{acl_empty, "'system.posix_acl_default' of inode N is no valid ACL"},
	{acl_of_another_mode, "'system.posix_acl_access' of inode N and mode 100770 disagree"},
	{mode_of_another_acl, "'system.posix_acl_access' of inode N and mode 100750 disagree"},
	{default_acl_of_file, "'system.posix_acl_default' of inode N is no directory's"},
	{stage_of_nobody, "a value is on its way from session 77, which is not there"},
	{stage_piece_gone, "value 4 on its way from session N has a gap before byte 1900"},
	{stage_piece_short, "value 4 on its way from session N has a gap before byte 3800"},
	{stage_piece_elsewhere, "of table stage can't be read"},
};

/* ---- cases ----------------------------------------------------------------------------------- */

static void check__whole_attributes_have_no_problem(void **state)
{
	assert_whole();
}

static void check__names_each_corruption_of_attributes(void **state)
{
	assert_all_named(corruptions, ARRAY_SIZE(corruptions));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(check__whole_attributes_have_no_problem),
		CASE(check__names_each_corruption_of_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
