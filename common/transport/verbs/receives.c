/* receives.c - see receives.h. */
#include "common/transport/verbs/receives.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int receives_init(struct receives *r, uint32_t max)
{
	*r = (struct receives){.max = max, .posted = calloc(max, sizeof(*r->posted))};
	return r->posted ? 0 : -ENOMEM;
}

void receives_fini(struct receives *r)
{
	free(r->posted);
	r->posted = NULL;
}

uint32_t receives_add(struct receives *r)
{
	assert(r->n < r->max);
	r->posted[r->n] = 0;
	return r->n++;
}

void receives_posted(struct receives *r, uint32_t slot)
{
	r->posted[slot] = ++r->last;
}

bool receives_fits(const struct receives *r, uint32_t spare)
{
	return (uint64_t)r->nusers + 1 + receives_doubts(r) + spare <= r->max;
}

/* A new user has taken nothing. */
void receives_join(struct receives *r, struct receives_user *user)
{
	user->emptied = user->spoke = r->round;
	r->nusers++;
}

static bool is_searching(const struct receives *r)
{
	return r->searched.n;
}

static void begin_round(struct receives *r)
{
	r->round++;
	r->reach = r->last;
	r->nbehind = r->nusers;
}

void receives_leave(struct receives *r, const struct receives_user *user, bool sure)
{
	bool searching = is_searching(r);
	struct receives_doubts *doubts = searching ? &r->later : &r->searched;

	r->nusers--;
	if (searching && user->spoke != r->round)
		r->nbehind--;
	if (sure)
		return;
	doubts->n++;
	doubts->until = r->last;
	if (!searching)
		begin_round(r);
}

bool receives_abandoned(const struct receives *r)
{
	return !r->nusers && is_searching(r);
}

void receives_clear(struct receives *r)
{
	assert(!r->nusers);
	r->n = 0;
	r->searched = r->later = (struct receives_doubts){0};
}

bool receives_completed(struct receives *r, struct receives_user *user, uint32_t slot)
{
	r->posted[slot] = 0;
	if (!is_searching(r))
		return false;
	if (user->emptied == r->round && user->spoke != r->round) {
		user->spoke = r->round;
		r->nbehind--;
	}
	return r->nbehind == 0;
}

/* Receives are given out in the order they were posted. So before the queue gives out a newer one,
 * this one is out. Of r->n receives the queue can't hold one that is r->n postings old. */
static bool passed_by(const struct receives *r, uint64_t posted)
{
	return posted + r->n <= r->reach;
}

uint32_t receives_lost(struct receives *r, uint32_t from)
{
	for (uint32_t slot = from; slot < r->n; slot++) {
		if (!r->posted[slot] || !passed_by(r, r->posted[slot]))
			continue;
		r->posted[slot] = 0;
		return slot;
	}
	return r->n;
}

void receives_next_round(struct receives *r)
{
	while (is_searching(r) && passed_by(r, r->searched.until)) {
		r->searched = r->later;
		r->later = (struct receives_doubts){0};
	}
	if (is_searching(r))
		begin_round(r);
}
