/* Sealed messages. Vectors were computed by a program of its own, from FIPS 197 and NIST SP
 * 800-38D, without a library. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/crypto.h>

#include "common/auth/sealed.h"
#include "common/base/util.h"

enum { LONGEST = 16384 };

struct message {
	uint8_t bytes[LONGEST + SEALED_OVERHEAD];
	uint32_t len; /* without the overhead */
};

static struct sealed_out out;
static struct sealed_in in;

static struct direction_key a_key(void)
{
	struct direction_key key;

	for (size_t i = 0; i < sizeof(key.key); i++)
		key.key[i] = (uint8_t)(0x20 + i);
	for (size_t i = 0; i < sizeof(key.iv); i++)
		key.iv[i] = (uint8_t)(0xa0 + i);
	return key;
}

static int begin(void **state)
{
	struct direction_key key = a_key();

	assert_int_equal(sealed_out_init(&out, &key), 0);
	assert_int_equal(sealed_in_init(&in, &key), 0);
	return 0;
}

static int end(void **state)
{
	sealed_out_fini(&out);
	sealed_in_fini(&in);
	return 0;
}

static void again(void)
{
	end(NULL);
	begin(NULL);
}

static void put(struct message *m, uint32_t len)
{
	m->len = len;
	for (uint32_t i = 0; i < len; i++)
		m->bytes[i] = (uint8_t)i;
}

static void seal(struct message *m, uint32_t len, const uint32_t *imm)
{
	put(m, len);
	assert_int_equal(sealed_seal(&out, m->bytes, len, imm), 0);
}

/* Opens a copy, which may arrive again. */
static int open_copy(const struct message *m, const uint32_t *imm)
{
	static struct message copy, want;
	uint32_t len = UINT32_MAX;
	int err;

	copy = *m;
	err = sealed_open(&in, copy.bytes, m->len + SEALED_OVERHEAD, imm, &len);
	if (!err) {
		put(&want, m->len);
		assert_int_equal(len, m->len);
		assert_memory_equal(copy.bytes, want.bytes, m->len);
	} else {
		assert_int_equal(len, UINT32_MAX);
	}
	return err;
}

/* ---- what is right --------------------------------------------------------------------------- */

static void seal__makes_the_same_bytes_for_ever(void **state)
{
	static const uint8_t first[] = {0x0c, 0x51, 0xc1, 0x59, 0xa2, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0,
		0xe5, 0x78, 0x50, 0x8d, 0x6c, 0x20, 0x78, 0x6d, 0x98, 0x26, 0xa9, 0x90, 0xf0, 0xc4,
		0xcc, 0xfa};
	static const uint8_t ring[] = {1, 0, 0, 0, 0, 0, 0, 0, 0x71, 0x60, 0xf4, 0x26, 0xd9, 0x4e,
		0x1a, 0x00, 0xf0, 0x41, 0x60, 0x17, 0x12, 0x57, 0xd2, 0xf7};
	static const uint8_t third[] = {0x50, 0x37, 0x83, 0x2e, 0xd5, 0xe4, 0x20, 0xc4, 0x86, 0xba,
		0x2f, 0x2a, 0xc6, 0xcb, 0xbf, 0xb8, 0xf2, 0xff, 0x26, 0x9f, 0x4b, 0x54, 0x78, 0x56,
		0x22, 0x82, 0xd9, 0x24, 0x45, 0x6c, 0xde, 0x1f, 0x29, 0xc5, 0xf1, 0x77, 0x7b, 0x97,
		0xb2, 0x9a, 2, 0, 0, 0, 0, 0, 0, 0, 0xce, 0x7b, 0x86, 0x2f, 0xe1, 0x67, 0x8f, 0x75,
		0x84, 0xba, 0x84, 0x54, 0xd3, 0x99, 0xc0, 0x9c};
	static struct message m;
	const uint32_t imm = 0x52494e47, no_number = 0;

	memcpy(m.bytes, "rmemfs", 6);
	assert_int_equal(sealed_seal(&out, m.bytes, 6, NULL), 0);
	assert_memory_equal(m.bytes, first, sizeof(first));
	assert_int_equal(sealed_seal(&out, m.bytes, 0, &imm), 0);
	assert_memory_equal(m.bytes, ring, sizeof(ring));
	seal(&m, 40, &no_number);
	assert_memory_equal(m.bytes, third, sizeof(third));
}

static void open__gives_what_was_sealed(void **state)
{
	static struct message m;

	for (uint32_t len = 0; len <= LONGEST; len += len < 70 ? 1 : 907) {
		const uint32_t number = len;
		const uint32_t *imm = len % 3 ? NULL : &number;

		seal(&m, len, imm);
		assert_int_equal(open_copy(&m, imm), 0);
	}
}

/* ---- order ----------------------------------------------------------------------------------- */

static void open__a_repetition_is_dropped_and_the_next_comes(void **state)
{
	static struct message m[3];

	for (uint32_t i = 0; i < 3; i++) {
		seal(&m[i], 10 + i, NULL);
		assert_int_equal(open_copy(&m[i], NULL), 0);
		for (uint32_t j = 0; j <= i; j++)
			assert_int_equal(open_copy(&m[j], NULL), -EALREADY);
	}
}

static void open__a_repetition_of_long_ago_ends_the_channel(void **state)
{
	static struct message first, m;

	seal(&first, 8, NULL);
	assert_int_equal(open_copy(&first, NULL), 0);
	for (int i = 1; i < SEALED_WINDOW; i++) {
		seal(&m, 8, NULL);
		assert_int_equal(open_copy(&m, NULL), 0);
	}
	assert_int_equal(open_copy(&first, NULL), -EALREADY);
	seal(&m, 8, NULL);
	assert_int_equal(open_copy(&m, NULL), 0);
	assert_int_equal(open_copy(&first, NULL), -EBADMSG);
	seal(&m, 8, NULL);
	assert_int_equal(open_copy(&m, NULL), -EBADMSG);
}

/* A repetition is one only if the peer has sealed it. */
static void open__a_forged_repetition_ends_the_channel(void **state)
{
	static struct message m;

	seal(&m, 8, NULL);
	assert_int_equal(open_copy(&m, NULL), 0);
	m.bytes[3] ^= 1;
	assert_int_equal(open_copy(&m, NULL), -EBADMSG);
	m.bytes[3] ^= 1;
	assert_int_equal(open_copy(&m, NULL), -EBADMSG);
}

static void open__a_skipped_message_ends_the_channel(void **state)
{
	static struct message first, second;

	seal(&first, 8, NULL);
	seal(&second, 8, NULL);
	assert_int_equal(open_copy(&second, NULL), -EBADMSG);
	assert_int_equal(open_copy(&first, NULL), -EBADMSG);
}

static void open__the_first_has_none_before_it(void **state)
{
	static struct message m;

	seal(&m, 8, NULL);
	memset(m.bytes + 8, 0xff, SEALED_COUNTER_BYTES); /* -1 */
	assert_int_equal(open_copy(&m, NULL), -EBADMSG);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void open__a_flipped_bit_anywhere(void **state)
{
	static struct message m, good;

	seal(&m, 21, NULL);
	good = m;
	for (size_t bit = 0; bit < 8 * (21 + SEALED_OVERHEAD); bit++) {
		again();
		m = good;
		m.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(open_copy(&m, NULL), -EBADMSG);
		assert_int_equal(open_copy(&good, NULL), -EBADMSG);
	}
	again();
	assert_int_equal(open_copy(&good, NULL), 0);
}

static void open__another_immediate(void **state)
{
	const uint32_t zero = 0, one = 1;
	const uint32_t *const imms[] = {NULL, &zero, &one};
	static struct message m;

	for (size_t i = 0; i < ARRAY_SIZE(imms); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(imms); j++) {
			again();
			seal(&m, 12, imms[i]);
			assert_int_equal(open_copy(&m, imms[j]), i == j ? 0 : -EBADMSG);
		}
	}
}

static void open__another_length(void **state)
{
	static struct message m, sealed;
	uint32_t len;

	seal(&sealed, 30, NULL);
	for (uint32_t wrong = 0; wrong < 100; wrong++) {
		again();
		m = sealed;
		assert_int_equal(sealed_open(&in, m.bytes, wrong, NULL, &len),
			wrong == 30 + SEALED_OVERHEAD ? 0 : -EBADMSG);
	}
}

static void open__the_other_directions_message(void **state)
{
	struct direction_key key = a_key();
	static struct message m;

	key.iv[0] ^= 1;
	sealed_in_fini(&in);
	assert_int_equal(sealed_in_init(&in, &key), 0);
	seal(&m, 8, NULL);
	assert_int_equal(open_copy(&m, NULL), -EBADMSG);
}

/* ---- the key's end, and memory --------------------------------------------------------------- */

static void key__wears_out_and_ends(void **state)
{
	static struct message m;

	seal(&m, 100, NULL);
	assert_int_equal(open_copy(&m, NULL), 0);
	assert_false(sealed_out_worn(&out) || sealed_in_worn(&in));
	out.aead.blocks = in.aead.blocks = AEAD_WORN_BLOCKS - 1;
	seal(&m, 0, NULL);
	assert_int_equal(open_copy(&m, NULL), 0);
	assert_true(sealed_out_worn(&out) && sealed_in_worn(&in));
	out.aead.blocks = AEAD_END_BLOCKS - 1;
	in.aead.blocks = AEAD_END_BLOCKS;
	seal(&m, 10, NULL);
	assert_int_equal(sealed_seal(&out, m.bytes, 10, NULL), -EKEYEXPIRED);
	out.aead.blocks = 0;
	assert_int_equal(sealed_seal(&out, m.bytes, 10, NULL), -EKEYEXPIRED);
	assert_int_equal(out.next, 3);
	assert_int_equal(open_copy(&m, NULL), -EKEYEXPIRED);
}

static long nallocs;

static void *counted_malloc(size_t len, const char *file, int line)
{
	nallocs++;
	return malloc(len);
}

static void *counted_realloc(void *old, size_t len, const char *file, int line)
{
	nallocs++;
	return realloc(old, len);
}

static void uncounted_free(void *p, const char *file, int line)
{
	free(p);
}

/* Of libcrypto's allocations: our own code has no malloc() at all. */
static void messages__allocate_nothing(void **state)
{
	static struct message m;
	long before = nallocs;

	assert_true(nallocs > 0); /* they are counted */
	for (uint32_t i = 0; i < 100; i++) {
		seal(&m, i, &i);
		assert_int_equal(open_copy(&m, &i), 0);
		assert_int_equal(open_copy(&m, &i), -EALREADY);
	}
	assert_int_equal(nallocs, before);
}

#define sealed_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sealed_test(seal__makes_the_same_bytes_for_ever),
		sealed_test(open__gives_what_was_sealed),
		sealed_test(open__a_repetition_is_dropped_and_the_next_comes),
		sealed_test(open__a_repetition_of_long_ago_ends_the_channel),
		sealed_test(open__a_forged_repetition_ends_the_channel),
		sealed_test(open__a_skipped_message_ends_the_channel),
		sealed_test(open__the_first_has_none_before_it),
		sealed_test(open__a_flipped_bit_anywhere),
		sealed_test(open__another_immediate),
		sealed_test(open__another_length),
		sealed_test(open__the_other_directions_message),
		sealed_test(key__wears_out_and_ends),
		sealed_test(messages__allocate_nothing),
	};

	/* Before libcrypto allocates anything. */
	if (!CRYPTO_set_mem_functions(counted_malloc, counted_realloc, uncounted_free))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
