/* lost_memory.c - see lost_memory.h. */
#include "server/session/lost_memory.h"

#include "common/base/util.h"
#include "server/memory/region_loss.h"
#include "server/session/client_session.h"
#include "server/session/conn.h"

enum { LOOK_MS = 1000 };

/* Takes all keys back. */
static void close_channels(struct server *s, const struct export *export)
{
	list_for_each_safe (pos, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, all);

		if (c->session && c->session->export == export && c->nkeys)
			conn_fence(c);
	}
}

void lost_memory_look(struct server *s, struct export *export)
{
	if (region_loss_look(export))
		close_channels(s, export);
	export->lost_told = atomic_load(&export->lost);
}

/* The scrubber or this thread has met it. */
static bool any_struck(const struct server *s)
{
	for (unsigned i = 0; i < s->exports->n; i++)
		if (atomic_load(&s->exports->v[i]->lost) && !s->exports->v[i]->lost_told)
			return true;
	return false;
}

int64_t lost_memory_tick(struct server *s, int64_t now)
{
	bool idle = list_empty(&s->sessions);

	if ((idle || now < s->look_ms) && !any_struck(s))
		return idle ? -1 : s->look_ms;
	for (unsigned i = 0; i < s->exports->n; i++)
		lost_memory_look(s, s->exports->v[i]);
	s->look_ms = now + LOOK_MS;
	return s->look_ms;
}
