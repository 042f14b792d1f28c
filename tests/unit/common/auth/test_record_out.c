/* Records that go out, in user space, and what the kernel is told to make the same. */
#include <errno.h>
#include <linux/tls.h>

#include "tests/unit/common/auth/records.h"

enum { LARGE = 100000 };

static uint8_t plain[LARGE], sealed[LARGE + 1000], same[LARGE + 1000];
static struct record_out out;

static int begin(void **state)
{
	struct direction_key key = a_key(1);

	fill(plain, sizeof(plain), 7);
	assert_int_equal(record_out_init(&out, &key), 0);
	return 0;
}

static int end(void **state)
{
	record_out_fini(&out);
	return 0;
}

static void again(void)
{
	end(NULL);
	begin(NULL);
}

/* Seals len bytes of plain at once, behind what is sealed already. Returns the stream's new end. */
static size_t seal(size_t at, const uint8_t *bytes, size_t len)
{
	const struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
	size_t taken;
	ssize_t n = record_out_seal(&out, &iov, 1, sealed + at, sizeof(sealed) - at, &taken);

	assert_true(n >= 0);
	assert_int_equal(taken, len);
	return at + (size_t)n;
}

static void seal__makes_the_records_of_the_rfc(void **state)
{
	struct direction_key key = vector_key();
	uint8_t bytes[40];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	record_out_fini(&out);
	assert_int_equal(record_out_init(&out, &key), 0);
	assert_int_equal(seal(0, (const uint8_t *)"rmemfs", 6), sizeof(vector_0));
	assert_memory_equal(sealed, vector_0, sizeof(vector_0));
	out.records = 2;
	assert_int_equal(seal(0, bytes, sizeof(bytes)), sizeof(vector_2));
	assert_memory_equal(sealed, vector_2, sizeof(vector_2));
}

static void seal__fills_records_and_ends_the_last_with_the_call(void **state)
{
	size_t len = seal(0, plain, 2 * RECORD_CONTENT_MAX + 1);

	assert_int_equal(out.records, 3);
	assert_int_equal(len, 2 * RECORD_BYTES_MAX + 1 + RECORD_OVERHEAD);
	assert_int_equal(seal(len, plain, 32), len + 32 + RECORD_OVERHEAD);
	assert_int_equal(out.records, 4);
}

static void seal__takes_the_records_that_the_room_holds(void **state)
{
	const struct iovec iov = {.iov_base = plain, .iov_len = RECORD_CONTENT_MAX + 100};
	size_t taken, rest = 100 + RECORD_OVERHEAD;

	assert_int_equal(record_out_seal(&out, &iov, 1, sealed, RECORD_BYTES_MAX - 1, &taken), 0);
	assert_int_equal(taken, 0);
	assert_int_equal(
		record_out_seal(&out, &iov, 1, sealed, RECORD_BYTES_MAX + rest - 1, &taken),
		RECORD_BYTES_MAX);
	assert_int_equal(taken, RECORD_CONTENT_MAX);
	again();
	assert_int_equal(record_out_seal(&out, &iov, 1, sealed, RECORD_BYTES_MAX + rest, &taken),
		RECORD_BYTES_MAX + rest);
	assert_int_equal(taken, RECORD_CONTENT_MAX + 100);
}

static void seal__of_nothing_is_nothing(void **state)
{
	const struct iovec empty[2] = {{.iov_base = plain}, {0}};
	size_t taken = 1;

	assert_int_equal(record_out_seal(&out, empty, 2, sealed, sizeof(sealed), &taken), 0);
	assert_int_equal(taken, 0);
	assert_int_equal(record_out_seal(&out, NULL, 0, sealed, sizeof(sealed), &taken), 0);
	assert_int_equal(out.records, 0);
}

static void seal__vectors_of_any_shape_give_the_same_records(void **state)
{
	size_t len = seal(0, plain, 70000), taken;
	struct iovec iov[64];

	srand(3);
	for (int round = 0; round < 20; round++) {
		again();
		assert_int_equal(record_out_seal(&out, iov, cut(plain, 70000, iov), same,
					 sizeof(same), &taken),
			len);
		assert_memory_equal(same, sealed, len);
	}
}

static void seal__ends_when_the_key_has_sealed_enough(void **state)
{
	const struct iovec iov = {.iov_base = plain, .iov_len = 10};
	size_t taken;

	out.aead.blocks = AEAD_WORN_BLOCKS - 3;
	seal(0, plain, 10);
	assert_false(record_out_worn(&out));
	seal(0, plain, 10);
	assert_true(record_out_worn(&out));
	out.aead.blocks = AEAD_END_BLOCKS - 1;
	seal(0, plain, 10);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(record_out_seal(&out, &iov, 1, sealed, sizeof(sealed), &taken),
			-EKEYEXPIRED);
		assert_int_equal(taken, 0);
	}
	assert_int_equal(out.records, 3);
}

/* 2^24 records of 16 KiB wear a key, and many more small ones. */
static void wear__is_counted_in_blocks(void **state)
{
	seal(0, plain, RECORD_CONTENT_MAX);
	assert_in_range(out.aead.blocks, 1024, 1026);
	assert_in_range(AEAD_WORN_BLOCKS / out.aead.blocks, (1 << 24) - (1 << 16), 1 << 24);
	/* Together with the room until the end: less than RFC 8446 allows, 2^24.5. */
	assert_in_range(AEAD_END_BLOCKS / out.aead.blocks, 1 << 24, 25200000);
	out.aead.worn_at = out.aead.blocks + 1;
	assert_false(record_out_worn(&out));
	seal(0, plain, 1);
	assert_true(record_out_worn(&out));
}

static void kernel_info__has_the_key_and_starts_at_the_first_record(void **state)
{
	struct direction_key key = a_key(1);
	struct tls12_crypto_info_aes_gcm_256 info;
	static const uint8_t first[8];

	memset(&info, 0xff, sizeof(info));
	record_kernel_info(&key, &info);
	assert_int_equal(info.info.version, TLS_1_3_VERSION);
	assert_int_equal(info.info.cipher_type, TLS_CIPHER_AES_GCM_256);
	assert_memory_equal(info.key, key.key, sizeof(key.key));
	assert_memory_equal(info.salt, key.iv, 4);
	assert_memory_equal(info.iv, key.iv + 4, 8);
	assert_memory_equal(info.rec_seq, first, sizeof(first));
}

#define out_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		out_test(seal__makes_the_records_of_the_rfc),
		out_test(seal__fills_records_and_ends_the_last_with_the_call),
		out_test(seal__takes_the_records_that_the_room_holds),
		out_test(seal__of_nothing_is_nothing),
		out_test(seal__vectors_of_any_shape_give_the_same_records),
		out_test(seal__ends_when_the_key_has_sealed_enough),
		out_test(wear__is_counted_in_blocks),
		out_test(kernel_info__has_the_key_and_starts_at_the_first_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
