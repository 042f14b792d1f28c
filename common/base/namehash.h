/* namehash.h - SipHash-2-4 (Aumasson and Bernstein, 2012), a keyed hash of names: without the key
 * nobody can make names that collide.
 *
 * THREADS  A pure function.
 */
#ifndef RMEMFS_COMMON_BASE_NAMEHASH_H
#define RMEMFS_COMMON_BASE_NAMEHASH_H

#include <stddef.h>
#include <stdint.h>

enum { NAMEHASH_KEY_BYTES = 16 };

uint64_t namehash(const uint8_t key[NAMEHASH_KEY_BYTES], const void *name, size_t len);

#endif
