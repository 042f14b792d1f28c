/* retry.h - work in the background that has failed rests, longer each time: what is damaged stays
 * so.
 *
 * THREADS  The owner's.
 */
#ifndef RMEMFS_SERVER_BASE_RETRY_H
#define RMEMFS_SERVER_BASE_RETRY_H

#include <stdbool.h>

#include "common/base/clock.h"

enum { REST_MIN_MS = 1000, REST_MAX_MS = 64000 };

struct retry {
	int64_t until_ms;
	int64_t ms; /* how long the last one was meant to be; 0: all is well */
};

/* Notes the result of some of the work, and returns it. */
static inline int rest_after(struct retry *rest, int err)
{
	if (!err) {
		rest->ms = 0;
		return 0;
	}
	rest->ms = rest->ms ? rest->ms * 2 : REST_MIN_MS;
	if (rest->ms > REST_MAX_MS)
		rest->ms = REST_MAX_MS;
	rest->until_ms = now_ms() + rest->ms;
	return err;
}

static inline bool rest_over(const struct retry *rest)
{
	return !rest->ms || now_ms() >= rest->until_ms;
}

/* There is new work, which may be whole. */
static inline void rest_end(struct retry *rest)
{
	rest->until_ms = 0;
}

#endif
