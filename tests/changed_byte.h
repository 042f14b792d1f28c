/* changed_byte.h - for tests: the ways in which one byte of a message is made wrong. */
#ifndef RMEMFS_TESTS_CHANGED_BYTE_H
#define RMEMFS_TESTS_CHANGED_BYTE_H

#include <stdint.h>

enum { BYTE_CHANGES = 4 };

/* change: below BYTE_CHANGES. Some bytes are what one of the last two makes of them. */
static inline uint8_t changed_byte(uint8_t byte, unsigned change)
{
	const uint8_t ways[BYTE_CHANGES] = {byte ^ 1, byte ^ 0x80, 0, UINT8_MAX};

	return ways[change];
}

#endif
