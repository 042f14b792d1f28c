/* lease_type.h - which leases two sessions can have of one inode, and which lease includes which.
 *
 *             LAYOUT  OVERWRITE  SHARED  EXCLUSIVE      of another session
 *   LAYOUT      +         +         +        -
 *   OVERWRITE   +         +         -        -
 *   SHARED      +         -         +        -
 *   EXCLUSIVE   -         -         -        -
 *
 * EXCLUSIVE includes all; OVERWRITE and SHARED each include LAYOUT, but not each other. From SHARED
 * on the numbers stand for leases under which nobody else changes the inode.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_COMMON_RPC_LEASE_TYPE_H
#define RMEMFS_COMMON_RPC_LEASE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"

enum { LEASE_TYPES = LEASE_EXCLUSIVE + 1 };

/* A lease type as a bit of a set. LEASE_NONE is no bit. */
static inline uint8_t lease_bit(uint8_t type)
{
	return type == LEASE_NONE ? 0 : (uint8_t)(1U << type);
}

/* Whether a session can't have this type while others have those (a set of bits). */
static inline bool lease_conflicts(uint8_t type, uint8_t others)
{
	static const uint8_t in_the_way[LEASE_TYPES] = {
		[LEASE_LAYOUT] = 1U << LEASE_EXCLUSIVE,
		[LEASE_OVERWRITE] = 1U << LEASE_EXCLUSIVE | 1U << LEASE_SHARED,
		[LEASE_SHARED] = 1U << LEASE_EXCLUSIVE | 1U << LEASE_OVERWRITE,
		[LEASE_EXCLUSIVE] = 1U << LEASE_EXCLUSIVE | 1U << LEASE_SHARED |
				    1U << LEASE_OVERWRITE | 1U << LEASE_LAYOUT,
	};

	return in_the_way[type] & others;
}

/* Whether a session that has one type may do all that the other type allows. */
static inline bool lease_includes(uint8_t has, uint8_t wants)
{
	return has >= wants && !(has == LEASE_SHARED && wants == LEASE_OVERWRITE);
}

/* The greatest type that both include. */
static inline uint8_t lease_common(uint8_t a, uint8_t b)
{
	if (lease_includes(a, b))
		return b;
	return lease_includes(b, a) ? a : LEASE_LAYOUT;
}

/* The lease that remains of one that conflicts with what others want. A session that has written
 * keeps OVERWRITE rather than SHARED, where neither conflicts. */
static inline uint8_t lease_beside(uint8_t type, uint8_t wanted)
{
	static const uint8_t less[] = {
		LEASE_EXCLUSIVE, LEASE_OVERWRITE, LEASE_SHARED, LEASE_LAYOUT};

	for (unsigned i = 0; i < sizeof(less); i++)
		if (lease_includes(type, less[i]) && !lease_conflicts(less[i], wanted))
			return less[i];
	return LEASE_NONE;
}

#endif
