/* penalty.h - owners whose sessions were ended because they had not given back in time what others
 * wanted: before such an owner's next session begins it waits 1, 2, 4 .. 60 s. Else a client could
 * take files from others for the lease time again and again.
 *
 * The wait is from the end of the session on: an owner that comes back later does not wait. After
 * PENALTY_FORGET_MS without another end of that kind it begins with 1 s again. Only so many owners
 * are remembered; the one whose last such end is the longest ago is forgotten first.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_PENALTY_H
#define RMEMFS_SERVER_SESSION_PENALTY_H

#include <stdint.h>

#include "common/base/types.h"

enum {
	PENALTY_FIRST_MS = 1000,
	PENALTY_MAX_MS = 60000,
	PENALTY_FORGET_MS = 600000,
	PENALTY_OWNERS = 64,
};

struct penalties {
	struct penalty {
		uint8_t owner[OWNER_BYTES];
		int64_t wait_ms; /* the last wait; 0: nobody's */
		int64_t ended_ms;
	} v[PENALTY_OWNERS];
};

/* A session of the owner is ended for that. */
void penalty_add(struct penalties *p, const uint8_t owner[OWNER_BYTES], int64_t now);
/* When the owner may begin a session; INT64_MIN: it has no penalty. */
int64_t penalty_over_ms(const struct penalties *p, const uint8_t owner[OWNER_BYTES]);

#endif
