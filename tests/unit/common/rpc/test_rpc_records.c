/* test_rpc_records.c - elements of tails survive the wire; malformed ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"

static uint8_t buf[RPC_MSG_BYTES];

static struct rpc_dirent entry_of(uint8_t type)
{
	return (struct rpc_dirent){
		11, 12, type, {"entry", 5}, {.ino = 12, .size = 12, .mode = 0100644, .nlink = 2}};
}

static void extent__malformed(void **state)
{
	static const struct extent bad[] = {{.npages = 0}, {.npages = 2, .page = UINT32_MAX},
		{.npages = 2, .fpage = UINT64_MAX}};
	struct extent e;
	struct wire_out w;
	struct wire_in r;

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		wire_out_init(&w, buf, sizeof(buf));
		rpc_put_extent(&w, &bad[i]);
		wire_in_init(&r, buf, wire_out_len(&w));
		assert_false(rpc_get_extent(&r, &e));
		assert_true(r.truncated);
	}
}

static void region__comes_back_the_same(void **state)
{
	struct rpc_region in = {1, 1ull << 40, UINT64_MAX - 9, 0xdeadbeef, 3}, out;
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, buf, sizeof(buf));
	rpc_put_region(&w, &in);
	assert_int_equal(wire_out_len(&w), RPC_REGION_BYTES);
	wire_in_init(&r, buf, RPC_REGION_BYTES);
	assert_true(rpc_get_region(&r, &out));
	assert_int_equal(out.addr, in.addr);
	assert_int_equal(out.rkey, in.rkey);
	wire_in_init(&r, buf, RPC_REGION_BYTES - 1);
	assert_false(rpc_get_region(&r, &out));
	assert_true(r.truncated);
}

static void returned__comes_back_the_same(void **state)
{
	struct rpc_returned in = {44, 1ull << 40, LEASE_SHARED, RETURN_PIN}, out;
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, buf, sizeof(buf));
	rpc_put_returned(&w, &in);
	assert_int_equal(wire_out_len(&w), RPC_RETURNED_BYTES);
	wire_in_init(&r, buf, RPC_RETURNED_BYTES);
	assert_true(rpc_get_returned(&r, &out));
	assert_int_equal(out.ino, in.ino);
	assert_int_equal(out.number, in.number);
	assert_int_equal(out.keep, in.keep);
	assert_int_equal(out.pin, in.pin);
	buf[RPC_RETURNED_BYTES - 1] = RETURN_PIN + 1;
	wire_in_init(&r, buf, RPC_RETURNED_BYTES);
	assert_false(rpc_get_returned(&r, &out));
	assert_true(r.truncated);
	buf[RPC_RETURNED_BYTES - 1] = RETURN_PIN;
	buf[RPC_RETURNED_BYTES - 2] = LEASE_EXCLUSIVE;
	wire_in_init(&r, buf, RPC_RETURNED_BYTES);
	assert_false(rpc_get_returned(&r, &out));
	assert_true(r.truncated);
}

static void recall__comes_back_the_same(void **state)
{
	struct rpc_recall in = {44, 1ull << 40, LEASE_SHARED}, out;
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, buf, sizeof(buf));
	rpc_put_recall(&w, &in);
	assert_int_equal(wire_out_len(&w), RPC_RECALL_BYTES);
	wire_in_init(&r, buf, RPC_RECALL_BYTES);
	assert_true(rpc_get_recall(&r, &out));
	assert_int_equal(out.ino, in.ino);
	assert_int_equal(out.number, in.number);
	assert_int_equal(out.keep, in.keep);
	buf[RPC_RECALL_BYTES - 1] = RECALL_LOCKS;
	wire_in_init(&r, buf, RPC_RECALL_BYTES);
	assert_true(rpc_get_recall(&r, &out));
	buf[RPC_RECALL_BYTES - 1] = RECALL_SHARE;
	wire_in_init(&r, buf, RPC_RECALL_BYTES);
	assert_true(rpc_get_recall(&r, &out));
	buf[RPC_RECALL_BYTES - 1] = RECALL_SHARE + 1;
	wire_in_init(&r, buf, RPC_RECALL_BYTES);
	assert_false(rpc_get_recall(&r, &out));
	buf[RPC_RECALL_BYTES - 1] = LEASE_EXCLUSIVE;
	wire_in_init(&r, buf, RPC_RECALL_BYTES);
	assert_false(rpc_get_recall(&r, &out));
	wire_in_init(&r, buf, RPC_RECALL_BYTES - 1);
	assert_false(rpc_get_recall(&r, &out));
	assert_true(r.truncated);
}

static void dirent__is_put_whole_or_not(void **state)
{
	struct rpc_dirent in = entry_of(8), out;

	for (int plus = 0; plus <= 1; plus++) {
		struct wire_out w;
		struct wire_in r;
		size_t len;

		wire_out_init(&w, buf, sizeof(buf));
		assert_true(rpc_put_dirent(&w, &in, plus));
		len = wire_out_len(&w);
		wire_in_init(&r, buf, len);
		assert_true(rpc_get_dirent(&r, &out, plus));
		assert_int_equal(out.attr.ino, 12);
		assert_int_equal(out.attr.mode, plus ? 0100644 : 0100000);
		assert_int_equal(out.attr.nlink, plus ? 2 : 0);
		assert_memory_equal(out.name.s, "entry", 5);
		wire_out_init(&w, buf, len - 1);
		assert_false(rpc_put_dirent(&w, &in, plus));
		assert_int_equal(wire_out_len(&w), 0);
		assert_false(w.overflow);
	}
}

static void dirent__malformed(void **state)
{
	struct rpc_dirent in = entry_of(16), out;
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, buf, sizeof(buf));
	assert_true(rpc_put_dirent(&w, &in, false));
	wire_in_init(&r, buf, wire_out_len(&w));
	assert_false(rpc_get_dirent(&r, &out, false));
	assert_true(r.truncated);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(extent__malformed),
		cmocka_unit_test(region__comes_back_the_same),
		cmocka_unit_test(returned__comes_back_the_same),
		cmocka_unit_test(recall__comes_back_the_same),
		cmocka_unit_test(dirent__is_put_whole_or_not),
		cmocka_unit_test(dirent__malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
