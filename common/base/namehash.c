/* namehash.c - see namehash.h. The names of variables and constants are the paper's. */
#include "common/base/namehash.h"

#include <endian.h>
#include <string.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static uint64_t load_le(const uint8_t *at, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, at, len);
	return le64toh(word);
}

static void rounds(struct state *s, unsigned n)
{
	while (n--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 = rotate(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 = rotate(s->v2, 32);
	}
}

static void compress(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	rounds(s, 2);
	s->v0 ^= word;
}

uint64_t namehash(const uint8_t key[NAMEHASH_KEY_BYTES], const void *name, size_t len)
{
	uint64_t k0 = load_le(key, 8), k1 = load_le(key + 8, 8);
	struct state s = {
		k0 ^ UINT64_C(0x736f6d6570736575),
		k1 ^ UINT64_C(0x646f72616e646f6d),
		k0 ^ UINT64_C(0x6c7967656e657261),
		k1 ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *at = name;
	size_t left = len;

	for (; left >= 8; at += 8, left -= 8)
		compress(&s, load_le(at, 8));
	compress(&s, load_le(at, left) | (uint64_t)len << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
