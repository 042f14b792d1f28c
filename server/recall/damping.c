#include "server/recall/damping.h"

#include <stddef.h>

/* An inode without an entry takes over the entry that ended first. */
static struct damped *entry_of(struct damping *d, unsigned export_index, uint64_t ino)
{
	struct damped *set = d->sets[ino % DAMPING_SETS], *oldest = &set[0];

	for (unsigned i = 0; i < DAMPING_WAYS; i++) {
		if (set[i].ino == ino && set[i].export_index == export_index)
			return &set[i];
		if (set[i].until_ms < oldest->until_ms)
			oldest = &set[i];
	}
	*oldest = (struct damped){.ino = ino, .export_index = export_index};
	return oldest;
}

void damping_recalled(struct damping *d, unsigned export_index, uint64_t ino, int64_t now_ms)
{
	struct damped *e = entry_of(d, export_index, ino);

	if (!e->span_ms || now_ms >= e->until_ms + e->span_ms)
		e->span_ms = DAMPING_FIRST_MS;
	else if (now_ms >= e->until_ms && e->span_ms < DAMPING_LAST_MS)
		e->span_ms *= 2;
	e->until_ms = now_ms + e->span_ms;
}

bool damping_is_on(const struct damping *d, unsigned export_index, uint64_t ino, int64_t now_ms)
{
	const struct damped *set = d->sets[ino % DAMPING_SETS];

	for (unsigned i = 0; i < DAMPING_WAYS; i++)
		if (set[i].ino == ino && set[i].export_index == export_index)
			return now_ms < set[i].until_ms;
	return false;
}
