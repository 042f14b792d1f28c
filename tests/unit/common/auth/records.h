/* records.h - for tests of records: forged ones, and streams that arrive in pieces. */
#ifndef RMEMFS_TESTS_UNIT_COMMON_AUTH_RECORDS_H
#define RMEMFS_TESTS_UNIT_COMMON_AUTH_RECORDS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/auth/record.h"
#include "common/base/util.h"

static inline struct direction_key a_key(uint8_t seed)
{
	struct direction_key key;

	for (size_t i = 0; i < sizeof(key.key); i++)
		key.key[i] = (uint8_t)(seed + i);
	for (size_t i = 0; i < sizeof(key.iv); i++)
		key.iv[i] = (uint8_t)(seed + 0x80 + i);
	return key;
}

/* Vectors, computed by a program of its own from FIPS 197, NIST SP 800-38D and RFC 8446, without a
 * library. Key 20 21 .. 3f, IV a0 a1 .. ab; records 0 ("rmemfs"), 1 (empty) and 2 (0 1 .. 39). */
static const uint8_t vector_0[] = {0x17, 0x03, 0x03, 0x00, 0x17, 0x0c, 0x51, 0xc1, 0x59, 0xa2, 0xa4,
	0x97, 0x60, 0x0f, 0x92, 0x20, 0x82, 0x9c, 0x79, 0x52, 0x76, 0x3e, 0xeb, 0x6d, 0x1c, 0xd4,
	0xaa, 0xfd};
static const uint8_t vector_1[] = {0x17, 0x03, 0x03, 0x00, 0x11, 0x21, 0x86, 0xa2, 0x05, 0x8c, 0x8f,
	0x31, 0xbf, 0xc4, 0x7e, 0x59, 0xba, 0xf3, 0xc8, 0xd1, 0xe3, 0x5f};
static const uint8_t vector_2[] = {0x17, 0x03, 0x03, 0x00, 0x39, 0x50, 0x37, 0x83, 0x2e, 0xd5, 0xe4,
	0x20, 0xc4, 0x86, 0xba, 0x2f, 0x2a, 0xc6, 0xcb, 0xbf, 0xb8, 0xf2, 0xff, 0x26, 0x9f, 0x4b,
	0x54, 0x78, 0x56, 0x22, 0x82, 0xd9, 0x24, 0x45, 0x6c, 0xde, 0x1f, 0x29, 0xc5, 0xf1, 0x77,
	0x7b, 0x97, 0xb2, 0x9a, 0x27, 0xf6, 0xda, 0xa3, 0xaf, 0x99, 0xba, 0xbd, 0x20, 0x94, 0x2f,
	0x0d, 0x24, 0x59, 0x59, 0x9c, 0x41};

static inline struct direction_key vector_key(void)
{
	struct direction_key key = a_key(0x20);

	assert_int_equal(key.key[31], 0x3f);
	assert_int_equal(key.iv[11], 0xab);
	return key;
}

static inline void fill(uint8_t *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((i + seed) * 2654435761U >> 24);
}

/* Seals anything as the record of that number, also what record_out never would: inner is content,
 * type and padding. Returns the record's length. */
static inline size_t forge(const struct direction_key *key, uint64_t number, const void *inner,
	size_t len, uint8_t *out)
{
	size_t body = len + AEAD_TAG_BYTES;
	const uint8_t header[] = {23, 3, 3, (uint8_t)(body >> 8), (uint8_t)body};
	struct aead aead;

	assert_int_equal(aead_init(&aead, key, AEAD_SEAL), 0);
	memcpy(out, header, sizeof(header));
	aead_begin(&aead, number, header, sizeof(header));
	aead_update(&aead, out + sizeof(header), inner, len);
	assert_int_equal(aead_seal(&aead, out + sizeof(header) + len), 0);
	aead_fini(&aead);
	return sizeof(header) + body;
}

/* Puts bytes of the stream into the buffer. Returns how many had room. */
static inline size_t feed(struct record_in *in, const uint8_t *bytes, size_t len)
{
	size_t room;
	void *space = record_in_space(in, &room);

	len = min_u64(len, room);
	memcpy(space, bytes, len);
	record_in_fed(in, len);
	return len;
}

static inline ssize_t take(struct record_in *in, void *out, size_t len, enum record_memory memory)
{
	const struct iovec iov = {.iov_base = out, .iov_len = len};

	return record_in_take(in, &iov, 1, memory);
}

/* Feeds the stream in pieces of step bytes, and takes all that comes. Returns the bytes that came,
 * and the end: 0 or an error. */
static inline size_t receive(struct record_in *in, const uint8_t *stream, size_t len, size_t step,
	uint8_t *out, size_t room, enum record_memory memory, int *status)
{
	size_t got = 0, at = 0;
	ssize_t n = 0;

	while (n >= 0 && (at < len || record_in_ready(in))) {
		size_t fed = feed(in, stream + at, min_u64(step, len - at));

		at += fed;
		n = take(in, out + got, room - got, memory);
		assert_true(fed || n || record_in_ready(in));
		got += n > 0 ? (size_t)n : 0;
		assert_true(got < room);
	}
	*status = n < 0 ? (int)n : 0;
	return got;
}

/* Cuts len bytes into vectors of any length. */
static inline int cut(uint8_t *bytes, size_t len, struct iovec iov[64])
{
	int n = 0;

	while (len && n < 63) {
		size_t part = min_u64((size_t)rand() % (rand() % 2 ? 40 : 9000), len);

		iov[n++] = (struct iovec){.iov_base = bytes, .iov_len = part};
		bytes += part;
		len -= part;
	}
	iov[n++] = (struct iovec){.iov_base = bytes, .iov_len = len};
	return n;
}

#endif
