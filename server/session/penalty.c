/* penalty.c - see penalty.h. */
#include "server/session/penalty.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/util.h"

static bool is_of(const struct penalty *one, const uint8_t *owner)
{
	return one->wait_ms && memcmp(one->owner, owner, OWNER_BYTES) == 0;
}

/* The owner's, or the one to replace. */
static struct penalty *place_of(struct penalties *p, const uint8_t *owner)
{
	struct penalty *oldest = &p->v[0];

	for (unsigned i = 0; i < PENALTY_OWNERS; i++) {
		struct penalty *one = &p->v[i];

		if (is_of(one, owner))
			return one;
		if (oldest->wait_ms && (!one->wait_ms || one->ended_ms < oldest->ended_ms))
			oldest = one;
	}
	return oldest;
}

void penalty_add(struct penalties *p, const uint8_t owner[OWNER_BYTES], int64_t now)
{
	struct penalty *one = place_of(p, owner);
	bool again = is_of(one, owner) && now - one->ended_ms < PENALTY_FORGET_MS;

	memcpy(one->owner, owner, OWNER_BYTES);
	one->wait_ms = again ? min_i64(2 * one->wait_ms, PENALTY_MAX_MS) : PENALTY_FIRST_MS;
	one->ended_ms = now;
}

int64_t penalty_over_ms(const struct penalties *p, const uint8_t owner[OWNER_BYTES])
{
	for (unsigned i = 0; i < PENALTY_OWNERS; i++)
		if (is_of(&p->v[i], owner))
			return p->v[i].ended_ms + p->v[i].wait_ms;
	return INT64_MIN;
}
