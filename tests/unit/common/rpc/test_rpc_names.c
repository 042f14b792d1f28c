/* test_rpc_names.c - NAMES, and the names before the files of a MAKE. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "common/rpc/rpc.h"
#include "tests/unit/common/rpc/samples.h"

enum { VERSION = RMEMFS_WIRE_NEXT };

static uint8_t buf[RPC_MSG_BYTES];

static int decode_request(const void *msg, size_t len)
{
	struct rpc_request q;

	return rpc_request_decode(&q, VERSION, msg, len);
}

static void assert_refused(const struct rpc_request *q)
{
	size_t len;

	assert_int_equal(rpc_request_encode(q, VERSION, buf, sizeof(buf), &len), 0);
	assert_int_equal(decode_request(buf, len), -EPROTO);
}

static void names__out_of_range(void **state)
{
	struct rpc_request q = request_of(RPC_NAMES);

	q.names.tail.len--;
	assert_refused(&q);
	q.names.tail.len = 0;
	assert_refused(&q);
	q = request_of(RPC_NAMES);
	q.names.numbers = NUMBERS_ANEW + 1;
	assert_refused(&q);
}

static void assert_change_refused(const struct rpc_name_change *change)
{
	struct rpc_request q = request_of(RPC_NAMES);
	uint8_t bytes[SYMLINK_BYTES_SHORT + 128];
	struct wire_out w;

	wire_out_init(&w, bytes, sizeof(bytes));
	assert_true(rpc_put_name_change(&w, change));
	q.names.tail = (struct rpc_tail){bytes, (uint32_t)wire_out_len(&w)};
	assert_refused(&q);
}

static void name_changes__out_of_range(void **state)
{
	static const struct rpc_name_change right = {
		2, 9, 5, .name = {"a", 1}, .kind = NAME_MKDIR, .mode = 0755};
	struct rpc_name_change change = right;

	change.kind = NAME_LINK + 1;
	assert_change_refused(&change);
	change = right;
	change.keep = true;
	assert_change_refused(&change);
	change = right;
	change.mode = S_IFDIR | 0755;
	assert_change_refused(&change);
	change = right;
	change.name = (struct rpc_str){"a/b", 3};
	assert_change_refused(&change);
	change = right;
	change.kind = NAME_MOVE;
	change.new_name = (struct rpc_str){"..", 2};
	assert_change_refused(&change);
	change.new_name = (struct rpc_str){"b", 1};
	change.keep = true;
	assert_change_refused(&change);
}

static void sets__out_of_range(void **state)
{
	static const struct rpc_name_change right = {
		.ino = 9, .time = 5, .kind = NAME_SET, .valid = SET_MODE, .mode = 0755};
	struct rpc_name_change change = right;

	change.valid = 0;
	assert_change_refused(&change);
	for (uint32_t valid = 1; valid < 2 * SET_NO_PRIVILEGES; valid *= 2) {
		change.valid = SET_MODE | valid;
		if (valid & ~(uint32_t)NAME_SET_ALL)
			assert_change_refused(&change);
	}
	change = right;
	change.mode = S_IFDIR | 0755;
	assert_change_refused(&change);
}

static void symlinks__out_of_range(void **state)
{
	static const struct rpc_name_change right = {
		2, 9, 5, .name = {"a", 1}, .kind = NAME_SYMLINK, .target = {"b/c", 3}};
	struct rpc_name_change change = right;
	char target[SYMLINK_BYTES_SHORT + 1];

	change.target.len = 0;
	assert_change_refused(&change);
	change.target = (struct rpc_str){"b\0c", 3};
	assert_change_refused(&change);
	memset(target, 't', sizeof(target));
	change.target = (struct rpc_str){target, sizeof(target)};
	assert_change_refused(&change);
	change = right;
	change.keep = true;
	assert_change_refused(&change);
}

/* As it comes out of a message; name, text: the lengths of its name, and of its new name or target.
 */
static struct rpc_name_change recoded(
	const struct rpc_name_change *change, size_t name, size_t text)
{
	static uint8_t bytes[128];
	struct rpc_name_change out;
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, bytes, sizeof(bytes));
	assert_true(rpc_put_name_change(&w, change));
	assert_int_equal(wire_out_len(&w), rpc_name_change_bytes(change->kind, name, text));
	r = rpc_tail_reader(&(struct rpc_tail){bytes, (uint32_t)wire_out_len(&w), VERSION});
	assert_true(rpc_get_name_change(&r, &out));
	assert_int_equal(wire_in_left(&r), 0);
	return out;
}

static void link__comes_back_the_same(void **state)
{
	struct rpc_name_change link = {2, 9, 5, .name = {"a", 1}, .kind = NAME_LINK,
				       .lent = UINT64_MAX},
			       out;

	out = recoded(&link, 1, 0);
	assert_int_equal(out.kind, NAME_LINK);
	assert_int_equal(out.ino, 9);
	assert_int_equal(out.lent, UINT64_MAX);
	link.keep = true;
	assert_change_refused(&link);
}

static void symlink__comes_back_the_same(void **state)
{
	struct rpc_name_change link = {2, 9, 5, .name = {"a", 1}, .kind = NAME_SYMLINK, .uid = 7,
				       .gid = UINT32_MAX, .target = {"../b/c", 6}},
			       out;

	out = recoded(&link, 1, 6);
	assert_int_equal(out.kind, NAME_SYMLINK);
	assert_int_equal(out.uid, 7);
	assert_int_equal(out.gid, UINT32_MAX);
	assert_int_equal(out.target.len, 6);
	assert_memory_equal(out.target.s, "../b/c", 6);
}

static void set__comes_back_the_same(void **state)
{
	struct rpc_name_change set = {.ino = UINT64_MAX,
				       .time = -5,
				       .kind = NAME_SET,
				       .valid = NAME_SET_ALL,
				       .mode = 07777,
				       .uid = UINT32_MAX,
				       .gid = 7,
				       .atime = INT64_MIN,
				       .mtime = INT64_MAX},
			       out;

	out = recoded(&set, 0, 0);
	assert_memory_equal(&out, &set, sizeof(set));
}

static void name_changes__come_back_the_same(void **state)
{
	struct rpc_name_change moved = {2, 9, 5, true, {"old", 3}, NAME_MOVE, .new_parent = 7,
				       .replaced = UINT64_MAX, .new_name = {"new", 3}},
			       out;

	out = recoded(&moved, 3, 3);
	assert_int_equal(out.kind, NAME_MOVE);
	assert_int_equal(out.new_parent, 7);
	assert_int_equal(out.replaced, UINT64_MAX);
	assert_int_equal(out.new_name.len, 3);
	assert_memory_equal(out.new_name.s, "new", 3);
	assert_true(out.keep);
}

/* Names come first, and are whole. */
static void makes__have_names_before_them(void **state)
{
	struct rpc_request q = request_of(RPC_MAKE), names = request_of(RPC_NAMES);
	uint32_t nnames = names.names.tail.len, all = nnames + q.makes.tail.len;
	struct rpc_tail first, files;
	uint8_t bytes[1024];
	size_t len;

	memcpy(bytes, names.names.tail.data, nnames);
	memcpy(bytes + nnames, q.makes.tail.data, q.makes.tail.len);
	q.makes.tail = (struct rpc_tail){bytes, all};
	for (uint32_t n = 0; n <= all; n++) {
		q.makes.names_bytes = (uint16_t)n;
		if (n != nnames) {
			assert_refused(&q);
			continue;
		}
		assert_int_equal(rpc_request_encode(&q, VERSION, buf, sizeof(buf), &len), 0);
		assert_int_equal(decode_request(buf, len), 0);
	}
	q.makes.names_bytes = (uint16_t)nnames;
	rpc_makes_parts(&q.makes, &first, &files);
	assert_int_equal(first.len, nnames);
	assert_int_equal(files.len, all - nnames);
	assert_ptr_equal(files.data, bytes + nnames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names__out_of_range),
		cmocka_unit_test(name_changes__out_of_range),
		cmocka_unit_test(sets__out_of_range),
		cmocka_unit_test(symlinks__out_of_range),
		cmocka_unit_test(link__comes_back_the_same),
		cmocka_unit_test(symlink__comes_back_the_same),
		cmocka_unit_test(set__comes_back_the_same),
		cmocka_unit_test(name_changes__come_back_the_same),
		cmocka_unit_test(makes__have_names_before_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
