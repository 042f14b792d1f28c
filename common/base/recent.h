/* recent.h - how often something has happened lately: within the last 5 to 10 minutes.
 *
 * Zeros are an empty count. It belongs to one thread. Times are of now_ms().
 */
#ifndef RMEMFS_COMMON_BASE_RECENT_H
#define RMEMFS_COMMON_BASE_RECENT_H

#include <stdint.h>

enum { RECENT_MS = 5 * 60 * 1000 };

struct recent {
	int64_t began_ms; /* of the present span of RECENT_MS */
	uint32_t now, before;
};

static inline void recent_turn(struct recent *r, int64_t now_ms)
{
	int64_t passed = now_ms - r->began_ms;

	if (passed < RECENT_MS)
		return;
	r->before = passed < 2 * RECENT_MS ? r->now : 0;
	r->now = 0;
	r->began_ms = now_ms;
}

static inline void recent_add(struct recent *r, int64_t now_ms)
{
	recent_turn(r, now_ms);
	r->now++;
}

static inline uint32_t recent_count(const struct recent *r, int64_t now_ms)
{
	struct recent turned = *r;

	recent_turn(&turned, now_ms);
	return turned.now + turned.before;
}

#endif
