/* conversion.c - see conversion.h. */
#include "server/recall/conversion.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/recall/recall_private.h"
#include "server/session/session.h"

enum { SLOW_CONVERSION_MS = 3000, TICK_SHARE = 8 };

static bool is_alone(const struct client_session *session)
{
	return !(session->stored.flags & ATTACH_SHARED);
}

static bool forgets(const struct client_session *session)
{
	return session->stored.flags & SESSION_FORGETS;
}

/* Whether another client waits for a step of it. */
static bool is_awaited(const struct client_session *session)
{
	return session->convert_ms && (is_alone(session) || forgets(session)) && !session->ending &&
	       !session->said_bye;
}

/* ATTACHes that wait are tried again in the next tick, which comes after each batch. */
void conversion_executed(const struct client_request *req)
{
	struct client_session *session = req->conn->session;
	bool shares = req->converted == CONVERT_SHARES;

	if (shares)
		session->stored.flags |= ATTACH_SHARED | SESSION_FORGETS;
	else
		session->stored.flags &= ~(uint32_t)SESSION_FORGETS;
	log_info("session %" PRIu64 " of %s at export '%s' %s", session->stored.id,
		session->stored.client, session->export->name,
		shares ? "goes by leases from now on" : "lets other mounts in from now on");
	session->convert_ms = shares ? now_ms() : 0;
	session->convert_slow = false;
}

void conversion_put(const struct client_session *session, struct wire_out *w)
{
	if (is_awaited(session) && is_alone(session))
		rpc_put_recall(w, &(struct rpc_recall){.keep = RECALL_SHARE});
}

static const char *what_it_has_not_done(const struct client_session *session)
{
	return is_alone(session) ? "has not ended and committed what it was at"
				 : "has not had its kernel forget names";
}

static void tell_slow(struct client_session *session, int64_t now)
{
	if (session->convert_slow)
		return;
	session->convert_slow = true;
	log_warning("session %" PRIu64
		    " of %s at export '%s' %s for %lld.%lld s, and another mount "
		    "waits for that",
		session->stored.id, session->stored.client, session->export->name,
		what_it_has_not_done(session), (long long)(now - session->convert_ms) / 1000,
		(long long)(now - session->convert_ms) % 1000 / 100);
}

/* The session may be freed then. */
static void tick_one(struct client_session *session, int64_t now, int64_t *next)
{
	int64_t slow_ms, end_ms;

	recall_discount(session, &session->convert_ms, now);
	slow_ms = session->convert_ms + min_i64(SLOW_CONVERSION_MS, session->server->lease_ms / 2);
	end_ms = recall_deadline(session, session->convert_ms);
	if (now >= slow_ms)
		tell_slow(session, now);
	if (now >= end_ms) {
		log_warning("session %" PRIu64 " of %s at export '%s' is ended: it %s within the "
			    "lease time, and another mount waits",
			session->stored.id, session->stored.client, session->export->name,
			what_it_has_not_done(session));
		recall_end_late(session, now);
		return;
	}
	*next = min_i64(*next, now >= slow_ms ? end_ms : min_i64(slow_ms, end_ms));
}

int64_t conversion_tick(struct server *s, int64_t now)
{
	int64_t next = INT64_MAX;

	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (is_awaited(session) && !session->export->closed)
			tick_one(session, now, &next);
	}
	return next == INT64_MAX ? -1 : min_i64(next, now + s->lease_ms / TICK_SHARE);
}
