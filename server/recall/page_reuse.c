/* page_reuse.c - see page_reuse.h. */
#include "server/recall/page_reuse.h"

#include <inttypes.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "server/session/peers.h"
#include "server/session/session.h"

enum { OVERDUE_LOOK_MS = 1000 };

/* Whether the session is of an earlier run of the server, and was not seen since. */
static bool is_unseen(const struct client_session *session, const struct export *export)
{
	return session->export == export && session->restored;
}

static bool has_unseen(const struct server *s, const struct export *export)
{
	list_for_each (pos, &s->sessions)
		if (is_unseen(list_entry(pos, struct client_session, link), export))
			return true;
	return false;
}

/* A session whose process lives, and which no time ends. */
static const struct client_session *find_kept(const struct server *s, const struct export *export)
{
	list_for_each (pos, &s->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (is_unseen(session, export) && client_session_is_missed(session) &&
			peers_left(s, session->stored.id))
			return session;
	}
	return NULL;
}

bool page_reuse_comes(const struct server *s, const struct export *export)
{
	return export->reuse_allowed || !find_kept(s, export);
}

static void tell_awaited(const struct server *s, struct export *export)
{
	if (export->awaited_told)
		return;
	log_notice("export '%s': requests wait for pages: what was freed can be used again %u s "
		   "after the restart, if all sessions have come back then",
		export->name, (s->lease_ms + 999) / 1000);
	export->awaited_told = true;
}

void page_reuse_await(struct server *s, struct export *export)
{
	export->awaits_reuse = !export->reuse_allowed && page_reuse_comes(s, export);
	if (export->awaits_reuse)
		tell_awaited(s, export);
}

bool page_reuse_is_awaited(const struct client_session *session)
{
	return session->export->awaits_reuse && session->nparked;
}

static void allow(struct server *s, struct export *export)
{
	meta_allow_reuse(s->meta, export->index);
	export->reuse_allowed = s->reclaim = true;
	export->awaits_reuse = false;
}

static void page_reuse_tell(struct export *export, const struct client_session *kept)
{
	if (export->kept_told)
		return;
	log_warning("session %" PRIu64 " of %s at export '%s' has not come back since the restart: "
		    "what was freed can't be used again before its process goes on or ends",
		kept->stored.id, kept->stored.client, export->name);
	export->kept_told = true;
}

/* The requests that wait are run again, and told that there is no room. */
static void page_reuse_give_up(struct server *s, struct export *export)
{
	s->reclaim |= export->awaits_reuse;
	export->awaits_reuse = false;
}

/* Returns when to look again; -1: when something else happens. */
static int64_t page_reuse_look(struct server *s, struct export *export, int64_t now)
{
	int64_t lease_over_ms = s->start_ms + s->lease_ms;
	const struct client_session *kept;

	if (now < lease_over_ms)
		return lease_over_ms;
	if (!has_unseen(s, export)) {
		allow(s, export);
		return -1;
	}
	kept = find_kept(s, export);
	if (kept) {
		page_reuse_tell(export, kept);
		page_reuse_give_up(s, export);
	}
	if (!export->awaits_reuse)
		return -1;
	sessions_end_overdue(s, export, NULL);
	return now + OVERDUE_LOOK_MS;
}

int64_t page_reuse_tick(struct server *s, int64_t now)
{
	int64_t next = -1;

	for (unsigned i = 0; i < s->exports->n; i++) {
		struct export *export = s->exports->v[i];
		int64_t at = export->reuse_allowed ? -1 : page_reuse_look(s, export, now);

		if (at >= 0)
			next = next < 0 ? at : min_i64(next, at);
	}
	return next;
}
