#include "server/lease_tally.h"

#include <stdlib.h>

enum { TALLIES_MIN = 8 };

void lease_tallies_fini(struct lease_tallies *t)
{
	free(t->v);
	*t = (struct lease_tallies){0};
}

static struct lease_tally *find(const struct lease_tallies *t, uint64_t session)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].session == session)
			return &t->v[i];
	return NULL;
}

static struct lease_tally *make(struct lease_tallies *t, uint64_t session)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : TALLIES_MIN;
		struct lease_tally *grown = realloc(t->v, cap * sizeof(*grown));

		if (!grown)
			return NULL;
		t->v = grown;
		t->cap = cap;
	}
	t->v[t->n] = (struct lease_tally){.session = session};
	return &t->v[t->n++];
}

void lease_tally_add(struct lease_tallies *t, uint64_t session, int by)
{
	struct lease_tally *tally = find(t, session);

	if (!tally && by > 0)
		tally = make(t, session);
	if (!tally || (by < 0 && !tally->now))
		return;
	tally->now += (uint64_t)(int64_t)by;
	t->changed = true;
}

uint64_t lease_tally(const struct lease_tallies *t, uint64_t session)
{
	const struct lease_tally *tally = find(t, session);

	return tally ? tally->now : 0;
}

static void settle(struct lease_tallies *t, bool committed)
{
	size_t n = 0;

	if (!t->changed)
		return;
	for (size_t i = 0; i < t->n; i++) {
		struct lease_tally tally = t->v[i];

		tally.now = tally.saved = committed ? tally.now : tally.saved;
		if (tally.now)
			t->v[n++] = tally;
	}
	t->n = n;
	t->changed = false;
}

void lease_tallies_commit(struct lease_tallies *t)
{
	settle(t, true);
}

void lease_tallies_abort(struct lease_tallies *t)
{
	settle(t, false);
}
