/* receives.c - see receives.h. */
#include "common/receives.h"

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
	return r->n++;
}

void receives_posted(struct receives *r, uint32_t slot)
{
	r->posted[slot] = ++r->last;
}

/* Who comes has taken nothing. */
void receives_join(struct receives *r, struct receives_user *user)
{
	user->emptied = user->spoke = r->round;
	r->nusers++;
}

static void begin_round(struct receives *r)
{
	r->round++;
	r->reach = r->last;
	r->nbehind = r->nusers;
}

void receives_leave(struct receives *r, const struct receives_user *user, bool sure)
{
	r->nusers--;
	if (r->searching && user->spoke != r->round)
		r->nbehind--;
	if (sure)
		return;
	r->doubt = r->last;
	r->ndoubts++;
	if (r->searching)
		return;
	r->searching = true;
	begin_round(r);
}

bool receives_completed(struct receives *r, struct receives_user *user, uint32_t slot)
{
	r->posted[slot] = 0;
	if (!r->searching)
		return false;
	if (user->emptied == r->round && user->spoke != r->round) {
		user->spoke = r->round;
		r->nbehind--;
	}
	return r->nbehind == 0;
}

/* They are given out in the order they were posted, so what comes behind one stays there until that
 * one is out: the queue has none that was posted before as many as there are. */
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
	if (!passed_by(r, r->doubt)) {
		begin_round(r);
		return;
	}
	r->searching = false;
	r->ndoubts = 0;
}
