/* tick.h - when a tick is to be called again.
 *
 * A tick does what is due, and returns when it is due next in now_ms(); -1: not before something
 * else happens.
 */
#ifndef RMEMFS_SERVER_BASE_TICK_H
#define RMEMFS_SERVER_BASE_TICK_H

#include <stdint.h>

static inline int64_t tick_sooner(int64_t a, int64_t b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

#endif
