/* Records that come in, in user space: good ones in any pieces, and all that is wrong. */
#include <errno.h>
#include <stdlib.h>

#include <openssl/crypto.h>

#include "tests/unit/common/auth/records.h"

enum { BUFFER = 3 * RECORD_BYTES_MAX, LARGE = 100000 };

static uint8_t buffer[BUFFER], plain[LARGE], sealed[LARGE + 1000], opened[LARGE + 1000];
static const enum record_memory memories[] = {RECORD_SHARED, RECORD_PRIVATE};

static struct record_in in;
static struct record_out out;

static int begin(void **state)
{
	struct direction_key key = a_key(1);

	fill(plain, sizeof(plain), 7);
	memset(opened, 0, sizeof(opened));
	assert_int_equal(record_out_init(&out, &key), 0);
	assert_int_equal(record_in_init(&in, &key, buffer, sizeof(buffer)), 0);
	return 0;
}

static int end(void **state)
{
	record_in_fini(&in);
	record_out_fini(&out);
	return 0;
}

static void begin_in(struct direction_key key)
{
	record_in_fini(&in);
	assert_int_equal(record_in_init(&in, &key, buffer, sizeof(buffer)), 0);
}

/* Starts both directions again. */
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

/* The stream's bytes give these plain ones, and end so. */
static void demand(size_t len, const void *want, size_t want_len, int want_status)
{
	int status;
	size_t got =
		receive(&in, sealed, len, len, opened, sizeof(opened), RECORD_PRIVATE, &status);

	assert_int_equal(status, want_status);
	assert_int_equal(got, want_len);
	assert_memory_equal(opened, want, want_len);
}

/* A record of ours whose inner bytes are given. */
static size_t forged(size_t at, uint64_t number, const void *inner, size_t len)
{
	struct direction_key key = a_key(1);

	return at + forge(&key, number, inner, len, sealed + at);
}

/* ---- in: what is right ----------------------------------------------------------------------- */

static void take__opens_the_records_of_the_rfc(void **state)
{
	uint8_t want[46] = "rmemfs";

	for (size_t i = 0; i < 40; i++)
		want[6 + i] = (uint8_t)i;
	begin_in(vector_key());
	memcpy(sealed, vector_0, sizeof(vector_0));
	memcpy(sealed + sizeof(vector_0), vector_1, sizeof(vector_1));
	memcpy(sealed + sizeof(vector_0) + sizeof(vector_1), vector_2, sizeof(vector_2));
	demand(sizeof(vector_0) + sizeof(vector_1) + sizeof(vector_2), want, sizeof(want), 0);
	assert_int_equal(in.records, 3);
}

static void take__at_every_split(void **state)
{
	size_t len = 0, want = 0;

	for (size_t i = 1; i < 40; i += 13, want += i)
		len = seal(len, plain + want, i);
	want = 1 + 14 + 27;
	len = seal(0, plain, want);
	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		for (size_t step = 1; step <= len; step++) {
			int status;
			size_t got;

			again();
			len = seal(0, plain, 1);
			len = seal(len, plain + 1, 14);
			len = seal(len, plain + 15, 27);
			got = receive(&in, sealed, len, step, opened, sizeof(opened), memories[m],
				&status);
			assert_int_equal(status, 0);
			assert_int_equal(got, want);
			assert_memory_equal(opened, plain, want);
		}
	}
}

/* Streams in pieces of any length, into vectors of any shape. */
static void take__in_any_shape(void **state)
{
	srand(11);
	for (int round = 0; round < 60; round++) {
		enum record_memory memory = memories[round % 2];
		size_t len, at = 0, got = 0;

		again();
		len = seal(0, plain, 32);
		len = seal(len, plain + 32, LARGE / 2);
		len = seal(len, plain + 32 + LARGE / 2, LARGE - 32 - LARGE / 2);
		while (got < LARGE) {
			size_t room = (size_t)rand() % (LARGE - got + 1);
			struct iovec iov[64];
			ssize_t n;

			at += feed(&in, sealed + at, min_u64((size_t)rand() % 30000, len - at));
			n = record_in_take(&in, iov, cut(opened + got, room, iov), memory);
			assert_in_range(n, 0, room);
			got += (size_t)n;
			assert_true(got < LARGE || at == len);
		}
		assert_memory_equal(opened, plain, LARGE);
		assert_false(record_in_ready(&in));
	}
}

static void take__uses_the_smallest_buffer(void **state)
{
	struct direction_key key = a_key(1);
	size_t len = seal(0, plain, LARGE);
	int status;

	record_in_fini(&in);
	assert_int_equal(record_in_init(&in, &key, buffer, RECORD_BYTES_MAX), 0);
	assert_int_equal(
		receive(&in, sealed, len, 10000, opened, sizeof(opened), RECORD_PRIVATE, &status),
		LARGE);
	assert_int_equal(status, 0);
	assert_memory_equal(opened, plain, LARGE);
}

/* The sealed bytes in the buffer stay if the record is opened into the vectors. */
static void take__private_memory_needs_no_copy(void **state)
{
	size_t len = seal(0, plain, 1000);

	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		begin_in(a_key(1));
		feed(&in, sealed, len);
		assert_int_equal(take(&in, opened, 1000, memories[m]), 1000);
		assert_memory_equal(opened, plain, 1000);
		assert_int_equal(memcmp(buffer, sealed, len) == 0, memories[m] == RECORD_PRIVATE);
	}
}

static void take__what_has_no_place_yet_waits(void **state)
{
	size_t len = seal(seal(0, plain, 100), plain + 100, 100);

	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		begin_in(a_key(1));
		feed(&in, sealed, len);
		assert_int_equal(record_in_take(&in, NULL, 0, memories[m]), 0);
		assert_int_equal(in.records, 0);
		for (size_t at = 0; at < 200; at += 40) {
			assert_true(record_in_ready(&in));
			assert_int_equal(take(&in, opened + at, 40, memories[m]), 40);
		}
		assert_memory_equal(opened, plain, 200);
		assert_false(record_in_ready(&in));
	}
}

/* Room for more bytes is there whenever more are needed, and bytes that wait are not moved away. */
static void space__is_there_unless_something_is_ready(void **state)
{
	size_t len = seal(0, plain, 3 * RECORD_CONTENT_MAX), room, at;

	assert_int_equal(len, sizeof(buffer));
	at = feed(&in, sealed, len);
	assert_int_equal(at, len);
	record_in_space(&in, &room);
	assert_int_equal(room, 0);
	assert_true(record_in_ready(&in));
	assert_int_equal(take(&in, opened, 10, RECORD_SHARED), 10);
	record_in_space(&in, &room);
	assert_int_equal(room, 0);
	assert_int_equal(take(&in, opened + 10, sizeof(opened) - 10, RECORD_SHARED),
		3 * RECORD_CONTENT_MAX - 10);
	assert_memory_equal(opened, plain, 3 * RECORD_CONTENT_MAX);
	record_in_space(&in, &room);
	assert_int_equal(room, sizeof(buffer));
}

static void ready__says_whether_to_take(void **state)
{
	size_t len = seal(0, plain, 5);

	assert_false(record_in_ready(&in));
	feed(&in, sealed, len - 1);
	assert_false(record_in_ready(&in));
	assert_int_equal(take(&in, opened, 5, RECORD_SHARED), 0);
	feed(&in, sealed + len - 1, 1);
	assert_true(record_in_ready(&in));
	assert_int_equal(take(&in, opened, 4, RECORD_SHARED), 4);
	assert_true(record_in_ready(&in));
	assert_int_equal(take(&in, opened + 4, 1, RECORD_SHARED), 1);
	assert_false(record_in_ready(&in));
	feed(&in, (const uint8_t *)"GET /", 5);
	assert_true(record_in_ready(&in));
	assert_int_equal(take(&in, opened, 5, RECORD_SHARED), -EBADMSG);
	assert_true(record_in_ready(&in));
}

/* ---- in: padding, and records without content ------------------------------------------------ */

static void take__padding_is_stripped(void **state)
{
	static const size_t contents[] = {0, 1, 300, 300, 300, 0, RECORD_CONTENT_MAX - 1};
	static const size_t zeros[] = {
		1, 1, 1, 17, RECORD_CONTENT_MAX - 300, RECORD_CONTENT_MAX, 1};
	static uint8_t inner[RECORD_CONTENT_MAX + 1];

	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		size_t len = 0, want = 0, got;
		int status;

		again();
		for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
			memcpy(inner, plain + want, contents[i]);
			inner[contents[i]] = 23;
			memset(inner + contents[i] + 1, 0, zeros[i]);
			len = forged(len, i, inner, contents[i] + 1 + zeros[i]);
			want += contents[i];
		}
		got = receive(
			&in, sealed, len, 20000, opened, sizeof(opened), memories[m], &status);
		assert_int_equal(status, 0);
		assert_int_equal(got, want);
		assert_memory_equal(opened, plain, want);
		assert_int_equal(in.records, ARRAY_SIZE(contents));
	}
}

static void take__content_may_end_with_zeros(void **state)
{
	uint8_t zeros[64] = {0};

	memset(opened, 0xff, sizeof(zeros));
	demand(seal(0, zeros, sizeof(zeros)), zeros, sizeof(zeros), 0);
}

static void take__padding_alone_is_refused(void **state)
{
	uint8_t zeros[2] = {0};

	demand(forged(0, 0, zeros, 2), "", 0, -EPROTO);
	begin_in(a_key(1));
	demand(forged(0, 0, zeros, 1), "", 0, -EPROTO);
}

static void take__a_flood_of_empty_records_is_refused(void **state)
{
	const uint8_t type = 23;
	size_t len = 0;
	uint64_t number = 0;

	while (number < RECORD_EMPTY_MAX)
		len = forged(len, number++, &type, 1);
	len = forged(len, number++, "\1\27", 2);
	while (number < 2 * RECORD_EMPTY_MAX + 1)
		len = forged(len, number++, &type, 1);
	demand(len, "\1", 1, 0);
	demand(forged(0, number, &type, 1), "", 0, -EPROTO);
}

/* ---- in: what is wrong ----------------------------------------------------------------------- */

static void take__other_types_end_the_channel(void **state)
{
	for (unsigned type = 1; type < 256; type++) {
		uint8_t inner[3] = {1, 0, (uint8_t)type};

		for (size_t m = 0; m < ARRAY_SIZE(memories) && type != 23; m++) {
			int status;
			size_t len;

			again();
			len = seal(forged(0, 0, inner, 3), plain, 9);
			assert_int_equal(receive(&in, sealed, len, len, opened, sizeof(opened),
						 memories[m], &status),
				0);
			assert_int_equal(status, -EPROTO);
		}
	}
}

/* Three records, and one bit of the middle one is another: only the first is given. */
static void take__a_flipped_bit_anywhere(void **state)
{
	size_t first = seal(0, plain, 20), second = seal(first, plain + 20, 20),
	       len = seal(second, plain + 40, 20);

	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		for (size_t bit = 8 * first; bit < 8 * second; bit++) {
			bool in_length = bit / 8 - first == 3 || bit / 8 - first == 4;
			int status;

			begin_in(a_key(1));
			sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(receive(&in, sealed, len, len, opened, sizeof(opened),
						 memories[m], &status),
				20);
			assert_memory_equal(opened, plain, 20);
			/* A record that says it is longer may be waited for. */
			assert_true(status == -EBADMSG || (in_length && !status));
			sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	begin_in(a_key(1));
	demand(len, plain, 60, 0);
}

static void take__a_record_twice(void **state)
{
	size_t len = seal(0, plain, 20);

	memcpy(sealed + len, sealed, len);
	demand(2 * len, plain, 20, -EBADMSG);
}

static void take__records_out_of_order(void **state)
{
	size_t len = seal(0, plain, 20);
	uint8_t first[42];

	assert_int_equal(len, sizeof(first));
	memcpy(first, sealed, len);
	seal(0, plain + 20, 20);
	memcpy(sealed + len, first, len);
	demand(2 * len, "", 0, -EBADMSG);
}

static void take__a_lost_record(void **state)
{
	size_t len = seal(0, plain, 20);

	seal(0, plain, 20);
	len = seal(len, plain, 20);
	memmove(sealed, sealed + 42, len - 42);
	demand(len - 42, "", 0, -EBADMSG);
}

static void take__the_other_directions_record(void **state)
{
	size_t len = seal(0, plain, 20);

	begin_in(a_key(2));
	demand(len, "", 0, -EBADMSG);
}

static void take__a_cut_stream_gives_its_whole_records(void **state)
{
	size_t first = seal(0, plain, 30), len = seal(first, plain + 30, 30);

	for (size_t cut_at = 0; cut_at < len; cut_at++) {
		begin_in(a_key(1));
		demand(cut_at, plain, cut_at < first ? 0 : 30, 0);
	}
}

static void take__a_wrong_header_ends_the_channel_at_once(void **state)
{
	static const uint8_t wrong[][RECORD_HEADER_BYTES] = {
		{22, 3, 3, 0, 40},
		{21, 3, 3, 0, 40},
		{20, 3, 3, 0, 1},
		{24, 3, 3, 0, 40},
		{23, 3, 1, 0, 40},
		{23, 3, 4, 0, 40},
		{23, 2, 3, 0, 40},
		{23, 3, 3, 0, 0},
		{23, 3, 3, 0, 16},
		{23, 3, 3, 0x40, 0x12}, /* 16 KiB, type, tag, and one more */
		{23, 3, 3, 0x41, 0x01}, /* 2^14 + 257 */
		{23, 3, 3, 0xff, 0xff},
	};
	static const uint8_t longest[RECORD_HEADER_BYTES] = {23, 3, 3, 0x40, 0x11};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		again();
		feed(&in, wrong[i], RECORD_HEADER_BYTES - 1);
		assert_int_equal(take(&in, opened, 100, RECORD_SHARED), 0);
		feed(&in, wrong[i] + RECORD_HEADER_BYTES - 1, 1);
		assert_int_equal(take(&in, opened, 100, RECORD_SHARED), -EBADMSG);
	}
	again();
	feed(&in, longest, sizeof(longest));
	assert_int_equal(take(&in, opened, 100, RECORD_SHARED), 0);
}

/* A peer that knows the key can't send more than 16 KiB in a record either. */
static void take__too_much_content(void **state)
{
	static uint8_t inner[RECORD_CONTENT_MAX + 2];

	inner[RECORD_CONTENT_MAX + 1] = 23;
	demand(forged(0, 0, inner, sizeof(inner)), "", 0, -EBADMSG);
	begin_in(a_key(1));
	inner[RECORD_CONTENT_MAX] = 23;
	demand(forged(0, 0, inner, sizeof(inner) - 1), inner, RECORD_CONTENT_MAX, 0);
}

/* Whole records that follow an error are never given, whatever is fed. */
static void error__stays(void **state)
{
	size_t len = seal(seal(0, plain, 10), plain + 10, 10);
	uint8_t bad[32] = {23, 3, 3, 0, 27};

	feed(&in, sealed, 32);
	feed(&in, bad, sizeof(bad));
	feed(&in, sealed + 32, len - 32);
	assert_int_equal(take(&in, opened, 100, RECORD_SHARED), 10);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(take(&in, opened, 100, memories[i % 2]), -EBADMSG);
		feed(&in, sealed + 32, len - 32);
	}
	assert_int_equal(in.records, 1);
}

/* Not even for a moment: nothing else runs here, so the memory after the call must do. */
static void shared_memory__never_sees_bytes_that_are_not_proven(void **state)
{
	size_t len = seal(seal(0, plain, 10), plain, 500);
	uint8_t before[600];

	memset(opened, 0x5a, 600);
	memset(before, 0x5a, 600);
	sealed[len - 1] ^= 1;
	feed(&in, sealed, len);
	assert_int_equal(take(&in, opened, 600, RECORD_SHARED), 10);
	assert_int_equal(take(&in, opened, 600, RECORD_SHARED), -EBADMSG);
	assert_memory_equal(opened, plain, 10);
	assert_memory_equal(opened + 10, before, 590);
}

static void take__ends_when_the_peer_gives_no_new_key(void **state)
{
	size_t len = seal(0, plain, 10);

	in.aead.blocks = AEAD_END_BLOCKS;
	demand(len, "", 0, -EKEYEXPIRED);
	again();
	in.aead.worn_at = 4;
	demand(seal(0, plain, 10), plain, 10, 0);
	assert_false(record_in_worn(&in));
	demand(seal(0, plain, 10), plain, 10, 0);
	assert_true(record_in_worn(&in));
}

/* ---- memory ------------------ --------------------------------------------------------------- */

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
static void data_path__allocates_nothing(void **state)
{
	long before;

	assert_true(nallocs > 0); /* they are counted */
	before = nallocs;
	for (int round = 0; round < 10; round++) {
		size_t len = seal(0, plain, LARGE);

		demand(len, plain, LARGE, 0);
		demand(seal(0, plain, 64), plain, 64, 0);
	}
	assert_int_equal(nallocs, before);
}

static void init__an_end_can_be_ended_twice(void **state)
{
	struct record_in none_in = {0};
	struct record_out none_out = {0};
	static const uint8_t zeros[sizeof(out.aead)];

	record_in_fini(&none_in);
	record_out_fini(&none_out);
	record_out_fini(&out);
	assert_memory_equal(&out.aead, zeros, sizeof(zeros));
	record_out_fini(&out);
	record_in_fini(&in);
	record_in_fini(&in);
}

#define record_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		record_test(take__opens_the_records_of_the_rfc),
		record_test(take__at_every_split),
		record_test(take__in_any_shape),
		record_test(take__uses_the_smallest_buffer),
		record_test(take__private_memory_needs_no_copy),
		record_test(take__what_has_no_place_yet_waits),
		record_test(space__is_there_unless_something_is_ready),
		record_test(ready__says_whether_to_take),
		record_test(take__padding_is_stripped),
		record_test(take__content_may_end_with_zeros),
		record_test(take__padding_alone_is_refused),
		record_test(take__a_flood_of_empty_records_is_refused),
		record_test(take__other_types_end_the_channel),
		record_test(take__a_flipped_bit_anywhere),
		record_test(take__a_record_twice),
		record_test(take__records_out_of_order),
		record_test(take__a_lost_record),
		record_test(take__the_other_directions_record),
		record_test(take__a_cut_stream_gives_its_whole_records),
		record_test(take__a_wrong_header_ends_the_channel_at_once),
		record_test(take__too_much_content),
		record_test(error__stays),
		record_test(shared_memory__never_sees_bytes_that_are_not_proven),
		record_test(take__ends_when_the_peer_gives_no_new_key),
		record_test(data_path__allocates_nothing),
		record_test(init__an_end_can_be_ended_twice),
	};

	/* Before libcrypto allocates anything. */
	if (!CRYPTO_set_mem_functions(counted_malloc, counted_realloc, uncounted_free))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
