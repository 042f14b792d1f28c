/* retry.h - background work that has failed rests, longer after each failure: a damaged record
 * stays damaged.
 *
 * THREADS  The owner's.
 */
#ifndef RMEMFS_SERVER_BASE_RETRY_H
#define RMEMFS_SERVER_BASE_RETRY_H

#include <stdbool.h>

#include "common/base/clock.h"

enum { RETRY_MIN_MS = 1000, RETRY_MAX_MS = 64000 };

struct retry {
	int64_t until_ms;
	int64_t ms; /* how long the last rest was to be; 0: no failure */
};

/* Notes the result of a piece of the work, and returns it. */
static inline int retry_note(struct retry *retry, int err)
{
	if (!err) {
		retry->ms = 0;
		return 0;
	}
	retry->ms = retry->ms ? retry->ms * 2 : RETRY_MIN_MS;
	if (retry->ms > RETRY_MAX_MS)
		retry->ms = RETRY_MAX_MS;
	retry->until_ms = now_ms() + retry->ms;
	return err;
}

static inline bool retry_is_due(const struct retry *retry)
{
	return !retry->ms || now_ms() >= retry->until_ms;
}

/* There is new work, which may be undamaged: the rest ends. */
static inline void retry_now(struct retry *retry)
{
	retry->until_ms = 0;
}

#endif
