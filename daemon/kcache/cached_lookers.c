#include "daemon/kcache/cached_lookers.h"

#include <stddef.h>

#include "common/base/clock.h"
#include "daemon/kcache/kernel_pages.h"

/* A thread that has not come back to append by then is not waited for: its LOOKUP may wait for
 * another client. */
enum { LOOK_MS = 30000 };

bool cached_lookers_any(const struct cached_pages *p)
{
	int64_t now = now_ms();

	for (unsigned i = 0; i < CACHED_LOOKERS; i++)
		if (now < p->lookers[i].until_ms)
			return true;
	return p->nsent_back > 0;
}

static struct cached_looker *looker_of(struct cached_pages *p, uint32_t pid)
{
	for (unsigned i = 0; i < CACHED_LOOKERS; i++)
		if (p->lookers[i].until_ms && p->lookers[i].pid == pid)
			return &p->lookers[i];
	return NULL;
}

/* A free one, or the one that has been away for longest. */
static struct cached_looker *oldest_looker(struct cached_pages *p)
{
	struct cached_looker *oldest = &p->lookers[0];

	for (unsigned i = 1; i < CACHED_LOOKERS; i++)
		if (p->lookers[i].until_ms < oldest->until_ms)
			oldest = &p->lookers[i];
	return oldest;
}

void cached_lookers_add(struct cached_pages *p, uint32_t pid)
{
	*oldest_looker(p) = (struct cached_looker){.pid = pid, .until_ms = now_ms() + LOOK_MS};
}

bool cached_lookers_remove(struct cached_pages *p, uint32_t pid)
{
	struct cached_looker *l = looker_of(p, pid);

	if (!l)
		return false;
	l->until_ms = 0;
	return true;
}
