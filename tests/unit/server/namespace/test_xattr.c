/* test_xattr.c - extended attributes: values of all lengths, lists, stages, and ACLs and
 * capabilities under other operations. */
#include "tests/unit/server/xattr_fixture.h"

#include <linux/posix_acl.h>
#include <linux/xattr.h>

#include "common/rpc/acl.h"
#include "server/namespace/kept_values.h"
#include "server/record/xattr.h"

enum { FILE_MODE = S_IFREG | 0644 };

static uint8_t data[XATTR_VALUE_MAX], other[XATTR_VALUE_MAX];

/* ---- values ---------------------------------------------------------------------------------- */

static void setxattr__is_read_back_whatever_its_length(void **state)
{
	static const uint32_t lengths[] = {0, 1, 100, XATTR_INLINE_MAX - 1, XATTR_INLINE_MAX,
		XATTR_INLINE_MAX + 1, XATTR_PART_BYTES, XATTR_PART_BYTES + 1, 4000, 4096, 12000,
		12001, 16000, 32768, 65535, XATTR_VALUE_MAX};
	uint64_t ino = fx_file(ROOT_INO, "file");

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		char name[16];

		snprintf(name, sizeof(name), "user.%zu", i);
		fx_pattern(data, lengths[i], (unsigned)i);
		assert_int_equal(fx_setxattr(ino, name, data, lengths[i], 0), 0);
		assert_int_equal(fx.rep.attr.attr.flags, ATTR_XATTRS);
	}
	fx_reopen();
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		char name[16];

		snprintf(name, sizeof(name), "user.%zu", i);
		fx_pattern(data, lengths[i], (unsigned)i);
		fx_expect_value(ino, name, data, lengths[i]);
	}
}

/* Replaces each length by each other one: parts come and go. */
static void setxattr__replaces(void **state)
{
	static const uint32_t lengths[] = {0, 30, XATTR_INLINE_MAX, 2000, 5000, XATTR_VALUE_MAX};
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx_pattern(other, 7000, 99);
	assert_int_equal(fx_setxattr(ino, "user.neighbour", other, 7000, 0), 0);
	for (size_t from = 0; from < ARRAY_SIZE(lengths); from++) {
		for (size_t to = 0; to < ARRAY_SIZE(lengths); to++) {
			fx_pattern(data, lengths[from], 1);
			assert_int_equal(fx_setxattr(ino, "user.a", data, lengths[from], 0), 0);
			fx_pattern(data, lengths[to], 2);
			assert_int_equal(fx_setxattr(ino, "user.a", data, lengths[to], 0), 0);
			fx_expect_value(ino, "user.a", data, lengths[to]);
			fx_check();
		}
	}
	fx_expect_value(ino, "user.neighbour", other, 7000);
	assert_int_equal(fx_removexattr(ino, "user.a"), 0);
	fx_expect_value(ino, "user.neighbour", other, 7000);
}

static void setxattr__of_the_same_changes_nothing(void **state)
{
	static const uint32_t lengths[] = {3, 20000};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t ino = fx_file(ROOT_INO, i ? "long" : "short");

		fx_pattern(data, lengths[i], 5);
		fx.ctx.now = 2000;
		assert_int_equal(fx_setxattr(ino, "user.a", data, lengths[i], 0), 0);
		assert_int_equal(fx_attr(ino).ctime, 2000);
		fx.ctx.now = 3000;
		assert_int_equal(fx_setxattr(ino, "user.a", data, lengths[i], 0), 0);
		assert_int_equal(fx_attr(ino).ctime, 2000);
		data[lengths[i] - 1] ^= 1;
		assert_int_equal(fx_setxattr(ino, "user.a", data, lengths[i], 0), 0);
		assert_int_equal(fx_attr(ino).ctime, 3000);
		assert_int_equal(fx_attr(ino).mtime, 1000);
		fx.ctx.now = 1000;
	}
}

static void setxattr__flags(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_setxattr(ino, "user.a", "x", 1, SETXATTR_REPLACE), -ENODATA);
	assert_int_equal(fx_setxattr(ino, "user.a", "x", 1, SETXATTR_CREATE), 0);
	assert_int_equal(fx_setxattr(ino, "user.a", "y", 1, SETXATTR_CREATE), -EEXIST);
	fx_expect_value(ino, "user.a", "x", 1);
	assert_int_equal(fx_setxattr(ino, "user.a", "y", 1, SETXATTR_REPLACE), 0);
	fx_expect_value(ino, "user.a", "y", 1);
}

static void setxattr__names(void **state)
{
	static const struct {
		const char *name;
		int err;
	} cases[] = {
		{"user.a", 0},
		{"trusted.overlay.opaque", 0},
		{"security.selinux", 0},
		{"user.", -EINVAL},
		{"security.", -EINVAL},
		{"user", -EOPNOTSUPP},
		{"system.other", -EOPNOTSUPP},
		{"system.posix_acl", -EOPNOTSUPP},
		{"os2.a", -EOPNOTSUPP},
		{"", -ERANGE},
	};
	uint64_t ino = fx_file(ROOT_INO, "file");
	char name[NAME_BYTES_MAX + 2] = "user.";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(fx_set(ino, cases[i].name, "value"), cases[i].err);
		assert_int_equal(fx_getxattr(ino, cases[i].name), cases[i].err ? cases[i].err : 5);
		assert_int_equal(fx_removexattr(ino, cases[i].name), cases[i].err);
	}
	memset(name + 5, 'x', sizeof(name) - 6);
	assert_int_equal(fx_set(ino, name, "value"), -ERANGE);
	name[NAME_BYTES_MAX] = '\0';
	fx_pattern(data, XATTR_INLINE_MAX, 1);
	assert_int_equal(fx_setxattr(ino, name, data, XATTR_INLINE_MAX, 0), 0);
	fx_expect_value(ino, name, data, XATTR_INLINE_MAX);
}

static void setxattr__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_set(999, "user.a", "x"), -ESTALE);
	assert_int_equal(fx_getxattr(999, "user.a"), -ESTALE);
	assert_int_equal(fx_getxattr(ino, "user.a"), -ENODATA);
	assert_int_equal(fx_removexattr(ino, "user.a"), -ENODATA);
	assert_int_equal(fx_set(ino, "user.b", "x"), 0);
	assert_int_equal(fx_getxattr(ino, "user.a"), -ENODATA);
	assert_int_equal(
		FX_RUN(.op = RPC_GETXATTR, .getxattr = {ino, 2, 0, fx_str("user.b")}), -ERANGE);
	assert_int_equal(FX_RUN(.op = RPC_SETXATTR, .setxattr = {.ino = ino,
							    .stage = 1,
							    .total = XATTR_VALUE_MAX + 1,
							    .name = fx_str("user.a")}),
		-E2BIG);
	fx.ctx.read_only = true;
	assert_int_equal(fx_set(ino, "user.a", "x"), -EROFS);
	assert_int_equal(fx_removexattr(ino, "user.b"), -EROFS);
	assert_int_equal(fx_getxattr(ino, "user.b"), 1);
}

/* ---- values that are kept for their readers -------------------------------------------------- */

static struct kept_values kept;

/* Gets the bytes of user.a from offset on, in fx.rep. */
static int get_part(uint64_t ino, uint32_t offset, uint32_t keep)
{
	return FX_RUN(.op = RPC_GETXATTR, .getxattr = {ino, offset, keep, fx_str("user.a")});
}

/* Gets the rest of the value, which must be `want`. */
static void expect_rest(uint64_t ino, uint32_t offset, uint32_t keep, const uint8_t *want)
{
	while (offset < XATTR_VALUE_MAX) {
		const struct rpc_getxattr_reply *rep = &fx.rep.getxattr;

		assert_int_equal(get_part(ino, offset, keep), 0);
		assert_int_equal(rep->total, XATTR_VALUE_MAX);
		assert_memory_equal(rep->tail.data, want + offset, rep->tail.len);
		offset += rep->tail.len;
	}
}

static uint64_t begin_keeping(void)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx.ctx.kept = &kept;
	fx_pattern(data, sizeof(data), 1);
	fx_pattern(other, sizeof(other), 2);
	assert_int_equal(fx_setxattr(ino, "user.a", data, sizeof(data), 0), 0);
	return ino;
}

static bool keeps_nothing(void)
{
	for (unsigned i = 0; i < GETXATTR_KEPT_MAX; i++)
		if (kept.v[i].data)
			return false;
	return true;
}

static void getxattr__reads_what_it_has_kept_whatever_comes(void **state)
{
	uint64_t ino = begin_keeping();
	uint32_t len;

	assert_int_equal(get_part(ino, 0, 3), 0);
	len = fx.rep.getxattr.tail.len;
	assert_int_equal(fx_setxattr(ino, "user.a", other, sizeof(other), 0), 0);
	assert_int_equal(get_part(ino, 0, 4), 0);
	assert_int_equal(fx_removexattr(ino, "user.a"), 0);
	expect_rest(ino, len, 3, data);
	expect_rest(ino, len, 4, other);
	assert_true(keeps_nothing());
	/* Nothing is kept under this number any more. */
	assert_int_equal(get_part(ino, len, 3), -ERANGE);
}

static void getxattr__keeps_one_value_by_a_number(void **state)
{
	uint64_t ino = begin_keeping(), second = fx_file(ROOT_INO, "second");
	uint32_t len;

	assert_int_equal(get_part(ino, 0, GETXATTR_KEPT_MAX), 0);
	len = fx.rep.getxattr.tail.len;
	assert_int_equal(get_part(second, len, GETXATTR_KEPT_MAX), -ERANGE);
	assert_int_equal(fx_setxattr(second, "user.a", other, sizeof(other), 0), 0);
	assert_int_equal(get_part(second, 0, GETXATTR_KEPT_MAX), 0);
	assert_int_equal(get_part(ino, len, GETXATTR_KEPT_MAX), -ERANGE);
	assert_int_equal(get_part(second, XATTR_VALUE_MAX + 1, GETXATTR_KEPT_MAX), -ERANGE);
	kept_values_drop_all(&kept);
	assert_int_equal(get_part(second, len, GETXATTR_KEPT_MAX), -ERANGE);
}

static void getxattr__keeps_nothing_that_is_read_at_once(void **state)
{
	uint64_t ino = begin_keeping();

	assert_int_equal(fx_set(ino, "user.a", "short"), 0);
	assert_int_equal(get_part(ino, 0, 1), 0);
	assert_true(keeps_nothing());
	assert_int_equal(get_part(ino, 0, GETXATTR_KEPT_MAX + 1), -EINVAL);
	fx.ctx.kept = NULL;
	assert_int_equal(get_part(ino, 0, 1), -EINVAL);
}

/* Every user may open a device or a link, so users' attributes are not allowed there. */
static void setxattr__user_attributes_belong_to_files_and_directories(void **state)
{
	static const struct {
		const char *name;
		uint16_t op;
		uint32_t mode;
	} nodes[] = {
		{"fifo", RPC_MKNOD, S_IFIFO | 0644},
		{"socket", RPC_MKNOD, S_IFSOCK | 0644},
		{"char", RPC_MKNOD, S_IFCHR | 0644},
		{"block", RPC_MKNOD, S_IFBLK | 0644},
		{"symlink", RPC_SYMLINK, S_IFLNK | 0777},
	};

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		uint64_t ino;

		assert_int_equal(fx_make(nodes[i].op, ROOT_INO, nodes[i].name, nodes[i].mode), 0);
		ino = fx.rep.entry.attr.ino;
		assert_int_equal(fx_set(ino, "user.a", "x"), -EPERM);
		assert_int_equal(fx_removexattr(ino, "user.a"), -EPERM);
		assert_int_equal(fx_getxattr(ino, "user.a"), -ENODATA);
		assert_int_equal(fx_set(ino, "trusted.a", "x"), 0);
		fx_expect_value(ino, "trusted.a", "x", 1);
	}
	assert_int_equal(fx_set(fx_dir(ROOT_INO, "dir"), "user.a", "x"), 0);
}

static void removexattr__of_the_last_one_leaves_nothing(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	uint64_t cookies = fx_usage().store_used_bytes;

	fx_pattern(data, 9000, 1);
	assert_int_equal(fx_setxattr(ino, "user.a", data, 9000, 0), 0);
	assert_int_equal(fx_set(ino, "security.capability", "caps"), 0);
	assert_int_equal(fx_flags(ino), ATTR_XATTRS | ATTR_CAPS);
	assert_int_equal(fx_removexattr(ino, "security.capability"), 0);
	assert_int_equal(fx.rep.attr.attr.flags, ATTR_XATTRS);
	fx.ctx.now = 7000;
	assert_int_equal(fx_removexattr(ino, "user.a"), 0);
	assert_int_equal(fx.rep.attr.attr.flags, 0);
	assert_int_equal(fx_attr(ino).ctime, 7000);
	assert_int_equal(fx_getxattr(ino, "user.a"), -ENODATA);
	assert_true(fx_usage().store_used_bytes <= cookies + 2 * PAGE_BYTES);
}

/* ---- lists ----------------------------------------------------------------------------------- */

enum { NAMES_MANY = 700 };

static void list_name(char *name, size_t len, unsigned i)
{
	snprintf(name, len, "user.%u-%.*s", i, (int)(i % 40),
		"a-name-that-is-longer-than-others-in-the-list");
}

/* Lists the names, and returns how many of them have seen[]: each at most once, in order of
 * cookies. */
static unsigned read_list(uint64_t ino, bool seen[NAMES_MANY])
{
	uint64_t cookie = 0;
	unsigned n = 0;

	memset(seen, 0, NAMES_MANY * sizeof(*seen));
	do {
		struct rpc_xattr_entry e;
		struct wire_in r;

		assert_int_equal(FX_RUN(.op = RPC_LISTXATTR, .listxattr = {ino, cookie}), 0);
		r = rpc_tail_reader(&fx.rep.listxattr.tail);
		while (rpc_get_xattr_entry(&r, &e)) {
			unsigned i = (unsigned)strtoul(e.name.s + 5, NULL, 10);
			char name[64];

			list_name(name, sizeof(name), i);
			assert_int_equal(e.name.len, strlen(name));
			assert_memory_equal(e.name.s, name, e.name.len);
			assert_true(i < NAMES_MANY && !seen[i] && e.cookie > cookie);
			seen[i] = true;
			cookie = e.cookie;
			n++;
		}
		assert_false(r.truncated);
	} while (!fx.rep.listxattr.last);
	return n;
}

static void listxattr__gives_each_name_once(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	bool seen[NAMES_MANY];
	char name[64];

	assert_int_equal(read_list(ino, seen), 0);
	for (unsigned i = 0; i < NAMES_MANY; i++) {
		list_name(name, sizeof(name), i);
		assert_int_equal(fx_set(ino, name, name), 0);
	}
	assert_int_equal(read_list(ino, seen), NAMES_MANY);
	for (unsigned i = 0; i < NAMES_MANY; i += 2) {
		list_name(name, sizeof(name), i);
		assert_int_equal(fx_removexattr(ino, name), 0);
	}
	assert_int_equal(read_list(ino, seen), NAMES_MANY / 2);
	for (unsigned i = 0; i < NAMES_MANY; i++)
		assert_int_equal(seen[i], i % 2);
	list_name(name, sizeof(name), 1);
	fx_expect_value(ino, name, name, strlen(name));
}

static void listxattr__errors(void **state)
{
	assert_int_equal(FX_RUN(.op = RPC_LISTXATTR, .listxattr = {999, 0}), -ESTALE);
	assert_int_equal(FX_RUN(.op = RPC_LISTXATTR, .listxattr = {ROOT_INO, UINT64_MAX}), 0);
	assert_true(fx.rep.listxattr.last);
	assert_int_equal(fx.rep.listxattr.tail.len, 0);
}

/* listxattr(2) must be able to return the list. */
static void setxattr__a_list_stays_readable(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	char name[NAME_BYTES_MAX + 1] = "user.";
	unsigned n = 0;
	int status;

	memset(name + 5, 'x', sizeof(name) - 6);
	for (;; n++) {
		snprintf(name + 5, 5, "%04u", n);
		name[9] = 'x';
		status = fx_set(ino, name, "v");
		if (status)
			break;
	}
	assert_int_equal(status, -ENOSPC);
	assert_int_equal(n, XATTR_NAMES_MAX / (NAME_BYTES_MAX + 1));
	snprintf(name + 5, 5, "%04u", 7);
	name[9] = 'x';
	assert_int_equal(fx_set(ino, name, "another value"), 0);
	assert_int_equal(fx_removexattr(ino, name), 0);
	assert_int_equal(fx_set(ino, name, "v"), 0);
}

static void names__may_collide(void **state)
{
	bool seen[NAMES_MANY];
	char name[64];
	uint64_t ino;

	fx.m->hash.bits = 1; /* two hashes, and one of them is made the other */
	ino = fx_file(ROOT_INO, "file");
	for (unsigned i = 0; i < 100; i++) {
		list_name(name, sizeof(name), i);
		assert_int_equal(fx_set(ino, name, name), 0);
	}
	for (unsigned i = 0; i < 100; i += 3) {
		list_name(name, sizeof(name), i);
		assert_int_equal(fx_removexattr(ino, name), 0);
		assert_int_equal(fx_getxattr(ino, name), -ENODATA);
	}
	assert_int_equal(read_list(ino, seen), 66);
	for (unsigned i = 100; i < NAMES_MANY; i++) {
		list_name(name, sizeof(name), i);
		if (fx_set(ino, name, name) == -ENOSPC)
			break;
	}
	assert_int_equal(read_list(ino, seen), 256);
	assert_int_equal(fx_getxattr(ino, "user.none"), -ENODATA);
	assert_int_equal(fx_removexattr(ino, "user.none"), -ENODATA);
	list_name(name, sizeof(name), 50);
	fx_expect_value(ino, name, name, strlen(name));
}

/* ---- stages ---------------------------------------------------------------------------------- */

static uint64_t records_of(enum store_table table)
{
	struct store_key key;
	uint64_t n = 0;
	int err;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	for (err = store_seek(fx.m->store, table, STORE_KEY(0), &key, NULL); !err; n++)
		err = store_next(fx.m->store, table, &key, NULL);
	store_abort(fx.m->store);
	return n;
}

static void stage__parts_of_any_length(void **state)
{
	static const uint32_t steps[] = {1, 7, 1899, 1900, 1901, 4000, 16000};
	uint64_t ino = fx_file(ROOT_INO, "file");

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		uint32_t len = steps[i] < 100 ? 4000 : XATTR_VALUE_MAX, at = 0;

		fx_pattern(data, len, (unsigned)i);
		while (len - at > steps[i]) {
			assert_int_equal(fx_stage(3, at, data + at, steps[i]), 0);
			at += steps[i];
		}
		assert_true(records_of(STORE_STAGE) <= div_round_up(len, 1900));
		fx_check();
		assert_int_equal(fx_setxattr_staged(ino, "user.a", data, len, 0, 3, at), 0);
		fx_expect_value(ino, "user.a", data, len);
		assert_int_equal(records_of(STORE_STAGE), 0);
	}
}

static void stage__begins_anew_at_0(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx_pattern(data, 20000, 1);
	assert_int_equal(fx_stage(9, 0, other, 5000), 0);
	assert_int_equal(fx_stage(9, 5000, other, 9000), 0);
	assert_int_equal(fx_stage(9, 0, data, 16000), 0);
	assert_int_equal(fx_setxattr_staged(ino, "user.a", data, 20000, 0, 9, 16000), 0);
	fx_expect_value(ino, "user.a", data, 20000);
}

static void stage__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_stage(0, 0, data, 10), -EINVAL);
	assert_int_equal(fx_stage(0, 0, data, 0), -EINVAL);
	assert_int_equal(fx_stage(1, 10, data, 10), -EINVAL);
	assert_int_equal(fx_stage(1, XATTR_VALUE_MAX, data, 1), -EINVAL);
	assert_int_equal(fx_stage(1, UINT32_MAX, data, 2), -EINVAL);
	assert_int_equal(fx_stage(1, 0, data, 10), 0);
	assert_int_equal(fx_stage(1, 9, data, 10), -EINVAL);
	assert_int_equal(fx_stage(1, 11, data, 10), -EINVAL);
	/* Not the length that was staged. */
	assert_int_equal(fx_setxattr_staged(ino, "user.a", data, 30, 0, 1, 9), -EINVAL);
	assert_int_equal(fx_setxattr_staged(ino, "user.a", data, 30, 0, 1, 11), -EINVAL);
	assert_int_equal(fx_setxattr_staged(ino, "user.a", data, 30, 0, 2, 10), -EINVAL);
	assert_int_equal(fx_getxattr(ino, "user.a"), -ENODATA);
	fx.ctx.read_only = true;
	assert_int_equal(fx_stage(1, 0, data, 10), -EROFS);
}

static void stage__goes_when_its_value_is_refused(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_stage(1, 0, data, 10), 0);
	assert_int_equal(
		fx_setxattr_staged(ino, "user.a", data, 20, SETXATTR_REPLACE, 1, 10), -ENODATA);
	assert_int_equal(records_of(STORE_STAGE), 0);
	assert_int_equal(fx_stage(1, 0, data, 10), 0);
	assert_int_equal(fx_setxattr_staged(999, "user.a", data, 20, 0, 1, 10), -ESTALE);
	assert_int_equal(records_of(STORE_STAGE), 0);
}

static void stage__of_no_bytes_goes(void **state)
{
	assert_int_equal(fx_stage(1, 0, data, 16000), 0);
	assert_int_equal(fx_stage(2, 0, data, 10), 0);
	assert_int_equal(fx_stage(1, 16000, data, 0), -EINVAL);
	assert_int_equal(fx_stage(1, 0, data, 0), 0);
	assert_int_equal(records_of(STORE_STAGE), 1);
	assert_int_equal(fx_stage(1, 0, data, 0), 0);
	assert_int_equal(fx_stage(2, 10, data, 10), 0);
}

static void stage__a_session_has_so_many(void **state)
{
	for (uint32_t i = 1; i <= STAGES_MAX; i++)
		assert_int_equal(fx_stage(i * 16777213U, 0, data, 1), 0);
	assert_int_equal(fx_stage(5, 0, data, 1), -ENOSPC);
	assert_true(fx.rep.text.len > 0);
	assert_int_equal(fx_stage(16777213U, 1, data, 1), 0);
	assert_int_equal(fx_stage(16777213U, 0, data, 1), 0);
	fx.ctx.session = fx_new_session();
	assert_int_equal(fx_stage(5, 0, data, 1), 0);
}

static void stage__is_the_sessions_own_and_ends_with_it(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), first = fx.ctx.session, second;

	assert_int_equal(fx_stage(1, 0, data, 16000), 0);
	assert_int_equal(fx_stage(2, 0, data, 16000), 0);
	assert_int_equal(fx_stage(2, 16000, data, 16000), 0);
	second = fx.ctx.session = fx_new_session();
	assert_int_equal(fx_setxattr_staged(ino, "user.a", data, 16010, 0, 1, 16000), -EINVAL);
	assert_int_equal(fx_stage(2, 0, data, 3), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, first), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_check();
	fx_settle();
	assert_int_equal(fx.ctx.session, second);
	assert_int_equal(records_of(STORE_STAGE), 1);
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* Frees long values and many values, a little at a time. */
static void unlink__frees_the_attributes_in_pieces(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");
	uint64_t ino[] = {file, dir};
	char name[64];
	unsigned steps = 0;
	bool more = true;

	fx_fill(file, 0, 3);
	fx_pattern(data, 30000, 1);
	for (size_t k = 0; k < ARRAY_SIZE(ino); k++) {
		for (unsigned i = 0; i < 200; i++) {
			list_name(name, sizeof(name), i);
			assert_int_equal(
				fx_setxattr(ino[k], name, data, i % 10 ? 10 : 30000, 0), 0);
		}
	}
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), 0);
	list_name(name, sizeof(name), 10);
	assert_int_equal(fx_setxattr(file, name, data, 3000, 0), 0);
	assert_int_equal(fx_getxattr(file, name), 3000);
	assert_int_equal(fx_return_inode(file), 0);
	assert_int_equal(fx_return_inode(dir), 0);
	assert_int_equal(fx_getxattr(file, name), -ESTALE);
	for (; more; steps++) {
		fx_check();
		fx_reclaim(&more);
	}
	assert_true(steps > 5);
	fx_settle();
	assert_int_equal(records_of(STORE_XATTR), 0);
	assert_int_equal(records_of(STORE_XVALUE), 0);
	assert_int_equal(fx_usage().inodes, 1);
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

static void session_end__frees_what_it_kept(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_set(ino, "user.a", "x"), 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	assert_int_equal(records_of(STORE_XATTR), 0);
	assert_int_equal(fx_usage().inodes, 1);
}

/* ---- capabilities ---------------------------------------------------------------------------- */

static int set_attr(uint64_t ino, uint32_t valid, uint32_t mode)
{
	return FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = valid, .mode = mode});
}

static void setattr__takes_capabilities_away(void **state)
{
	static const struct {
		uint32_t valid;
		bool of_file, of_dir; /* are gone after it */
	} cases[] = {
		{SET_NO_CAPS, true, true},
		{SET_SIZE, true, false},
		{SET_UID, true, false},
		{SET_GID, true, false},
		{SET_MODE, false, false},
		{SET_MTIME_NOW, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char name[16];
		uint64_t file, dir;

		snprintf(name, sizeof(name), "file%zu", i);
		file = fx_file(ROOT_INO, name);
		snprintf(name, sizeof(name), "dir%zu", i);
		dir = fx_dir(ROOT_INO, name);
		assert_int_equal(fx_set(file, XATTR_NAME_CAPS, "caps"), 0);
		assert_int_equal(fx_set(file, "user.a", "x"), 0);
		assert_int_equal(fx_set(dir, XATTR_NAME_CAPS, "caps"), 0);
		assert_int_equal(set_attr(file, cases[i].valid, 0755), 0);
		assert_int_equal(
			fx.rep.attr.attr.flags, ATTR_XATTRS | (cases[i].of_file ? 0 : ATTR_CAPS));
		assert_int_equal(fx_flags(file), fx.rep.attr.attr.flags);
		assert_int_equal(
			fx_getxattr(file, XATTR_NAME_CAPS), cases[i].of_file ? -ENODATA : 4);
		if (cases[i].valid == SET_SIZE)
			continue;
		assert_int_equal(set_attr(dir, cases[i].valid, 0755), 0);
		assert_int_equal(fx_flags(dir), cases[i].of_dir ? 0 : ATTR_XATTRS | ATTR_CAPS);
	}
}

/* ---- ACLs ------------------------------------------------------------------------------------ */

/* user::, user:1, group::, mask::, other:: */
static struct acl named_acl(uint16_t user, uint16_t group, uint16_t mask, uint16_t others)
{
	return (struct acl){
		5, {{ACL_USER_OBJ, user, UINT32_MAX}, {ACL_USER, 7, 1},
			   {ACL_GROUP_OBJ, group, UINT32_MAX}, {ACL_MASK, mask, UINT32_MAX},
			   {ACL_OTHER, others, UINT32_MAX}}};
}

static struct acl plain_acl(uint16_t user, uint16_t group, uint16_t others)
{
	return (struct acl){
		3, {{ACL_USER_OBJ, user, UINT32_MAX}, {ACL_GROUP_OBJ, group, UINT32_MAX},
			   {ACL_OTHER, others, UINT32_MAX}}};
}

static int set_acl(uint64_t ino, const char *name, const struct acl *acl, uint32_t flags)
{
	uint8_t buf[ACL_BYTES_MAX];

	return fx_setxattr(ino, name, buf, (uint32_t)acl_encode(acl, buf), flags);
}

static void expect_acl(uint64_t ino, const char *name, const struct acl *acl)
{
	uint8_t buf[ACL_BYTES_MAX];

	fx_expect_value(ino, name, buf, acl_encode(acl, buf));
}

#define ACCESS  XATTR_NAME_POSIX_ACL_ACCESS
#define DEFAULT XATTR_NAME_POSIX_ACL_DEFAULT

static void access_acl__sets_the_mode(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct acl acl = named_acl(7, 5, 6, 1);

	assert_int_equal(set_attr(ino, SET_MODE, 06644), 0);
	fx.ctx.now = 4000;
	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 06761);
	assert_int_equal(fx.rep.attr.attr.ctime, 4000);
	assert_int_equal(fx_flags(ino), ATTR_XATTRS | ATTR_ACL);
	expect_acl(ino, ACCESS, &acl);
	/* The list says no more than a mode: the list goes, and the mode stays as it says. */
	acl = plain_acl(6, 4, 0);
	assert_int_equal(set_acl(ino, ACCESS, &acl, SETXATTR_KILL_SGID), 0);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 04640);
	assert_int_equal(fx_flags(ino), 0);
	assert_int_equal(fx_getxattr(ino, ACCESS), -ENODATA);
}

static void access_acl__of_the_same_changes_nothing(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct acl acl = named_acl(6, 4, 4, 4), same = plain_acl(6, 4, 4);

	fx.ctx.now = 2000;
	assert_int_equal(set_acl(ino, ACCESS, &same, 0), 0);
	assert_int_equal(fx_attr(ino).ctime, 1000);
	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	fx.ctx.now = 3000;
	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	assert_int_equal(fx_attr(ino).ctime, 2000);
}

static void access_acl__removed_leaves_the_mode(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct acl acl = named_acl(7, 5, 6, 1);

	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	assert_int_equal(fx_removexattr(ino, ACCESS), 0);
	assert_int_equal(fx_attr(ino).mode, S_IFREG | 0761);
	assert_int_equal(fx_flags(ino), 0);
	assert_int_equal(fx_removexattr(ino, ACCESS), 0);
	acl.n = 0;
	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	assert_int_equal(fx_attr(ino).mode, S_IFREG | 0761);
}

static void acl__errors(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir"), link;
	struct acl acl = named_acl(7, 5, 6, 1), bad = acl;

	bad.n--;
	assert_int_equal(fx_make(RPC_SYMLINK, ROOT_INO, "link", S_IFLNK | 0777), 0);
	link = fx.rep.entry.attr.ino;
	assert_int_equal(set_acl(file, ACCESS, &bad, 0), -EINVAL);
	assert_int_equal(set_acl(dir, DEFAULT, &bad, 0), -EINVAL);
	assert_int_equal(fx_set(file, ACCESS, "text"), -EOPNOTSUPP);
	assert_int_equal(fx_set(file, ACCESS, "ab"), -EINVAL);
	assert_int_equal(set_acl(file, DEFAULT, &acl, 0), -EACCES);
	assert_int_equal(set_acl(link, ACCESS, &acl, 0), -EOPNOTSUPP);
	assert_int_equal(fx_attr(file).mode, FILE_MODE);
	assert_int_equal(fx_flags(file) | fx_flags(dir) | fx_flags(link), 0);
	fx_pattern(data, 20000, 1);
	data[0] = 2;
	data[1] = data[2] = data[3] = 0;
	assert_int_equal(fx_setxattr(file, ACCESS, data, 20004, 0), -E2BIG);
}

static void default_acl__an_empty_one_removes_it(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");
	struct acl acl = plain_acl(7, 5, 0);

	assert_int_equal(set_acl(dir, DEFAULT, &acl, 0), 0);
	assert_int_equal(fx_attr(dir).mode, S_IFDIR | 0755);
	assert_int_equal(fx_flags(dir), ATTR_XATTRS | ATTR_DEFAULT_ACL);
	expect_acl(dir, DEFAULT, &acl);
	acl.n = 0;
	assert_int_equal(set_acl(dir, DEFAULT, &acl, 0), 0);
	assert_int_equal(fx_flags(dir), 0);
	assert_int_equal(fx_getxattr(dir, DEFAULT), -ENODATA);
}

static void setattr__of_the_mode_rewrites_the_acl(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct acl acl = named_acl(7, 5, 6, 1), want = named_acl(6, 5, 4, 0);

	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	assert_int_equal(set_attr(ino, SET_MODE, 02640), 0);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 02640);
	expect_acl(ino, ACCESS, &want);
	assert_int_equal(set_attr(ino, SET_UID, 0), 0);
	expect_acl(ino, ACCESS, &want);
}

static void commit__of_attributes_does_to_others_as_setattr(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct acl acl = named_acl(7, 5, 6, 1), want = named_acl(6, 5, 4, 0);
	struct rpc_commit commit = {
		.ino = ino, .flags = COMMIT_MODE | COMMIT_UID, .mode = 0640, .uid = 3};

	assert_int_equal(set_acl(ino, ACCESS, &acl, 0), 0);
	assert_int_equal(fx_set(ino, XATTR_NAME_CAPS, "caps"), 0);
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 0640);
	assert_int_equal(fx_flags(ino), ATTR_XATTRS | ATTR_ACL);
	assert_int_equal(fx_getxattr(ino, XATTR_NAME_CAPS), -ENODATA);
	expect_acl(ino, ACCESS, &want);
}

/* A list of many entries is a value in parts. */
static struct acl long_acl(unsigned n)
{
	struct acl acl = {0};

	acl.entries[acl.n++] = (struct acl_entry){ACL_USER_OBJ, 7, UINT32_MAX};
	while (acl.n < n - 3) {
		acl.entries[acl.n] = (struct acl_entry){ACL_USER, 6, acl.n};
		acl.n++;
	}
	acl.entries[acl.n++] = (struct acl_entry){ACL_GROUP_OBJ, 5, UINT32_MAX};
	acl.entries[acl.n++] = (struct acl_entry){ACL_MASK, 7, UINT32_MAX};
	acl.entries[acl.n++] = (struct acl_entry){ACL_OTHER, 4, UINT32_MAX};
	return acl;
}

static int make_with_umask(uint16_t op, uint64_t dir, const char *name, uint32_t mode)
{
	return FX_RUN(.op = op, .create = {.parent = dir,
					.name = fx_str(name),
					.mode = mode,
					.umask = 077,
					.exclusive = true,
					.target = fx_str("target")});
}

/* Without a default ACL the umask applies. */
static void create__inherits_the_default_acl(void **state)
{
	static const struct {
		uint16_t op;
		uint32_t mode, want, without; /* other modes: with the list, and without */
	} cases[] = {
		{RPC_CREATE, S_IFREG | 0666, S_IFREG | 0664, S_IFREG | 0600},
		{RPC_MKNOD, S_IFIFO | 0646, S_IFIFO | 0644, S_IFIFO | 0600},
		{RPC_MKNOD, S_IFREG | 0600, S_IFREG | 0600, S_IFREG | 0600},
		{RPC_TMPFILE, S_IFREG | 0666, S_IFREG | 0664, S_IFREG | 0600},
		{RPC_MKDIR, 0777, S_IFDIR | 0774, S_IFDIR | 0700},
	};
	struct acl lists[] = {named_acl(7, 5, 7, 4), long_acl(ACL_ENTRIES_MAX)};

	for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
		uint64_t dir = fx_dir(ROOT_INO, k ? "long" : "short");

		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct acl want = lists[k];
			char name[16];
			uint64_t ino;

			snprintf(name, sizeof(name), "without%zu", i);
			assert_int_equal(fx_removexattr(dir, DEFAULT), 0);
			assert_int_equal(make_with_umask(cases[i].op, dir, name, cases[i].mode), 0);
			assert_int_equal(fx.rep.entry.attr.mode, cases[i].without);
			assert_int_equal(fx.rep.entry.attr.flags, 0);
			snprintf(name, sizeof(name), "with%zu", i);
			assert_int_equal(set_acl(dir, DEFAULT, &lists[k], 0), 0);
			assert_int_equal(make_with_umask(cases[i].op, dir, name, cases[i].mode), 0);
			ino = fx.rep.entry.attr.ino;
			assert_int_equal(fx.rep.entry.attr.mode, cases[i].want);
			assert_int_equal(fx.rep.entry.attr.flags,
				ATTR_XATTRS | ATTR_ACL |
					(S_ISDIR(cases[i].want) ? ATTR_DEFAULT_ACL : 0));
			assert_int_equal(fx_flags(ino), fx.rep.entry.attr.flags);
			acl_inherit(&want, cases[i].mode);
			expect_acl(ino, ACCESS, &want);
			if (S_ISDIR(cases[i].want))
				expect_acl(ino, DEFAULT, &lists[k]);
		}
		fx_check();
	}
}

/* A default list that says no more than a mode makes only modes. */
static void create__inherits_a_mode(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), sub;
	struct acl acl = plain_acl(7, 5, 0);

	assert_int_equal(set_acl(dir, DEFAULT, &acl, 0), 0);
	assert_int_equal(make_with_umask(RPC_CREATE, dir, "file", S_IFREG | 0666), 0);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFREG | 0640);
	assert_int_equal(fx.rep.entry.attr.flags, 0);
	assert_int_equal(make_with_umask(RPC_MKDIR, dir, "sub", 0777), 0);
	sub = fx.rep.entry.attr.ino;
	assert_int_equal(fx.rep.entry.attr.mode, S_IFDIR | 0750);
	assert_int_equal(fx.rep.entry.attr.flags, ATTR_XATTRS | ATTR_DEFAULT_ACL);
	expect_acl(sub, DEFAULT, &acl);
	assert_int_equal(make_with_umask(RPC_SYMLINK, dir, "link", 0), 0);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFLNK | 0777);
	assert_int_equal(fx.rep.entry.attr.flags, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(setxattr__is_read_back_whatever_its_length),
		CASE(setxattr__replaces),
		CASE(setxattr__of_the_same_changes_nothing),
		CASE(setxattr__flags),
		CASE(setxattr__names),
		CASE(setxattr__errors),
		CASE(setxattr__user_attributes_belong_to_files_and_directories),
		CASE(getxattr__reads_what_it_has_kept_whatever_comes),
		CASE(getxattr__keeps_one_value_by_a_number),
		CASE(getxattr__keeps_nothing_that_is_read_at_once),
		CASE(removexattr__of_the_last_one_leaves_nothing),
		CASE(listxattr__gives_each_name_once),
		CASE(listxattr__errors),
		CASE(setxattr__a_list_stays_readable),
		CASE(names__may_collide),
		CASE(stage__parts_of_any_length),
		CASE(stage__begins_anew_at_0),
		CASE(stage__errors),
		CASE(stage__goes_when_its_value_is_refused),
		CASE(stage__of_no_bytes_goes),
		CASE(stage__a_session_has_so_many),
		CASE(stage__is_the_sessions_own_and_ends_with_it),
		CASE(unlink__frees_the_attributes_in_pieces),
		CASE(session_end__frees_what_it_kept),
		CASE(setattr__takes_capabilities_away),
		CASE(access_acl__sets_the_mode),
		CASE(access_acl__of_the_same_changes_nothing),
		CASE(access_acl__removed_leaves_the_mode),
		CASE(acl__errors),
		CASE(default_acl__an_empty_one_removes_it),
		CASE(setattr__of_the_mode_rewrites_the_acl),
		CASE(commit__of_attributes_does_to_others_as_setattr),
		CASE(create__inherits_the_default_acl),
		CASE(create__inherits_a_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
