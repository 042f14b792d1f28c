/* bits.h - one bit a page.
 *
 * OWNERSHIP  The caller frees what bits_new() returns with free().
 * THREADS    The caller's.
 */
#ifndef RMEMFS_SERVER_BASE_BITS_H
#define RMEMFS_SERVER_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/util.h"

enum { BITS_WORD = 64 };

static inline size_t bits_bytes(uint64_t n)
{
	return (size_t)(n / BITS_WORD + 1) * sizeof(uint64_t);
}

/* All bits are clear. NULL: no memory. */
static inline uint64_t *bits_new(uint64_t n)
{
	return calloc(1, bits_bytes(n));
}

static inline bool bits_get(const uint64_t *bits, uint64_t i)
{
	return bits[i / BITS_WORD] >> i % BITS_WORD & 1;
}

static inline void bits_assign(uint64_t *bits, uint64_t first, uint64_t n, bool value)
{
	for (uint64_t at = first, end = first + n; at < end;) {
		uint64_t shift = at % BITS_WORD, len = min_u64(BITS_WORD - shift, end - at);
		uint64_t mask = (len == BITS_WORD ? ~UINT64_C(0) : (UINT64_C(1) << len) - 1)
				<< shift;

		if (value)
			bits[at / BITS_WORD] |= mask;
		else
			bits[at / BITS_WORD] &= ~mask;
		at += len;
	}
}

#endif
