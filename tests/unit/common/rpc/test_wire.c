/* Cursors over messages: values come out as they were put in, and nothing passes the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "common/rpc/wire.h"

static void scalars__come_out_as_put_in(void **state)
{
	uint8_t buf[15];
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u8(&w, 0xfe);
	wire_put_u16(&w, 0xfedc);
	wire_put_u32(&w, 0xfedcba98);
	wire_put_u64(&w, 0xfedcba9876543210);
	assert_false(w.overflow);
	assert_int_equal(wire_out_len(&w), 15);
	assert_int_equal(wire_out_room(&w), 0);

	wire_in_init(&r, buf, sizeof(buf));
	assert_int_equal(wire_get_u8(&r), 0xfe);
	assert_int_equal(wire_get_u16(&r), 0xfedc);
	assert_true(wire_get_u32(&r) == 0xfedcba98);
	assert_true(wire_get_u64(&r) == 0xfedcba9876543210);
	assert_false(r.truncated);
	assert_int_equal(wire_in_left(&r), 0);
}

static void scalars__are_little_endian(void **state)
{
	static const uint8_t expected[] = {0x02, 0x01, 0x06, 0x05, 0x04, 0x03};
	uint8_t buf[6];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u16(&w, 0x0102);
	wire_put_u32(&w, 0x03040506);
	assert_memory_equal(buf, expected, sizeof(expected));
}

static void put__beyond_the_end_does_nothing_and_sticks(void **state)
{
	uint8_t buf[6] = {1, 2, 3, 4, 5, 6};
	struct wire_out w;

	wire_out_init(&w, buf, 3);
	wire_put_u32(&w, 0);
	assert_true(w.overflow);
	assert_int_equal(wire_out_len(&w), 0);
	wire_put_u8(&w, 9);
	assert_int_equal(wire_out_len(&w), 0);
	assert_int_equal(buf[0], 1);
	assert_int_equal(buf[3], 4);
}

static void get__beyond_the_end_gives_zeros_and_sticks(void **state)
{
	static const uint8_t buf[3] = {1, 2, 3};
	uint8_t out[4] = {9, 9, 9, 9};
	static const uint8_t zeros[4];
	struct wire_in r;

	wire_in_init(&r, buf, sizeof(buf));
	wire_get(&r, out, sizeof(out));
	assert_true(r.truncated);
	assert_memory_equal(out, zeros, sizeof(out));
	assert_int_equal(wire_get_u8(&r), 0);
	assert_null(wire_get_ref(&r, 1));
	assert_int_equal(wire_in_left(&r), 3);
}

static void get_ref__points_into_the_message(void **state)
{
	static const uint8_t buf[4] = {1, 2, 3, 4};
	struct wire_in r;

	wire_in_init(&r, buf, sizeof(buf));
	assert_ptr_equal(wire_get_ref(&r, 3), buf);
	assert_ptr_equal(wire_get_ref(&r, 1), buf + 3);
	assert_null(wire_get_ref(&r, 1));
}

static void get_ref__is_not_fooled_by_huge_lengths(void **state)
{
	static const uint8_t buf[4];
	struct wire_in r;

	wire_in_init(&r, buf, sizeof(buf));
	assert_null(wire_get_ref(&r, SIZE_MAX));
	assert_true(r.truncated);
}

static void nothing__can_be_put_and_got(void **state)
{
	struct wire_out w;
	struct wire_in r;

	wire_out_init(&w, NULL, 0);
	wire_put(&w, NULL, 0);
	assert_false(w.overflow);
	wire_in_init(&r, NULL, 0);
	wire_get(&r, NULL, 0);
	assert_false(r.truncated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars__come_out_as_put_in),
		cmocka_unit_test(scalars__are_little_endian),
		cmocka_unit_test(put__beyond_the_end_does_nothing_and_sticks),
		cmocka_unit_test(get__beyond_the_end_gives_zeros_and_sticks),
		cmocka_unit_test(get_ref__points_into_the_message),
		cmocka_unit_test(get_ref__is_not_fooled_by_huge_lengths),
		cmocka_unit_test(nothing__can_be_put_and_got),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
