/* conversion.c - see conversion.h. */
#include "server/recall/conversion.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/recall/recall_private.h"
#include "server/session/session.h"

enum { SLOW_CONVERSION_MS = 3000, TICK_SHARE = 8, LONELY_LEASES = 3, TOLD_AGAIN_MS = 60000 };

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

static void change_flags(struct client_session *session, uint8_t state)
{
	if (state == CONVERT_SHARES)
		session->stored.flags |= ATTACH_SHARED | SESSION_FORGETS;
	else if (state == CONVERT_FORGOT)
		session->stored.flags &= ~(uint32_t)SESSION_FORGETS;
	else if (state == CONVERT_ALONE)
		session->stored.flags &= ~(uint32_t)ATTACH_SHARED;
}

/* ATTACHes that wait are tried again in the next tick, which comes after each batch. */
void conversion_executed(const struct client_request *req)
{
	static const char *const now_it[] = {
		[CONVERT_SHARES] = "goes by leases from now on",
		[CONVERT_FORGOT] = "lets other mounts in from now on",
		[CONVERT_ALONE] = "is alone, and needs no lease from now on",
		[CONVERT_NOT_NOW] = "has files open that it can't share: another mount waits",
	};
	static struct log_ratelimit limit;
	struct client_session *session = req->conn->session;
	bool not_now = req->converted == CONVERT_NOT_NOW;

	change_flags(session, req->converted);
	session->not_now_ms = not_now ? now_ms() : 0;
	/* A client is asked each second, and says it each time. */
	if (!not_now || log_ratelimit_ok(&limit, TOLD_AGAIN_MS))
		log_info("session %" PRIu64 " of %s at export '%s' %s", session->stored.id,
			session->stored.client, session->export->name, now_it[req->converted]);
	session->convert_ms = req->converted == CONVERT_SHARES ? now_ms() : 0;
	session->convert_slow = false;
	session->lonely_ms = 0;
}

/* ---- back ------------------------------------------------------------------------------------ */

/* Another mount that comes and goes all the time would have this one converted each time. */
static int64_t lonely_for_ms(const struct server *s)
{
	return LONELY_LEASES * (int64_t)s->lease_ms;
}

static void note_lonely(struct client_session *session, int64_t now)
{
	bool lonely = session->stored.flags & ATTACH_CONVERTS && !is_alone(session) &&
		      !forgets(session) && session->export->nsessions == 1;

	if (!lonely)
		session->lonely_ms = 0;
	else if (!session->lonely_ms)
		session->lonely_ms = now;
}

static bool may_be_alone(const struct client_session *session)
{
	return session->lonely_ms && session->export->nsessions == 1 &&
	       now_ms() - session->lonely_ms >= lonely_for_ms(session->server);
}

void conversion_put(const struct client_session *session, struct wire_out *w)
{
	if (is_awaited(session) && is_alone(session))
		rpc_put_recall(w, &(struct rpc_recall){.keep = RECALL_SHARE});
	else if (may_be_alone(session))
		rpc_put_recall(w, &(struct rpc_recall){.keep = RECALL_ALONE});
}

/* ---- late ------------------------------------------------------------------------------------ */

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

/* It may have been alone for a moment only: then its kernel has answers under leases from before.
 */
static int64_t forgets_for_ms(const struct client_session *session)
{
	return forgets(session) ? session->server->lease_ms : 0;
}

/* The session may be freed then. */
static void tick_one(struct client_session *session, int64_t now, int64_t *next)
{
	int64_t slow_ms, end_ms;

	recall_discount(session, &session->convert_ms, now);
	slow_ms = session->convert_ms + forgets_for_ms(session) +
		  min_i64(SLOW_CONVERSION_MS, session->server->lease_ms / 2);
	end_ms = recall_deadline(session, session->convert_ms) + forgets_for_ms(session);
	if (now >= slow_ms)
		tell_slow(session, now);
	if (now >= end_ms) {
		log_warning("session %" PRIu64 " of %s at export '%s' is ended: it %s in time, "
			    "and another mount waits",
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

		note_lonely(session, now);
		if (is_awaited(session) && !session->export->closed)
			tick_one(session, now, &next);
	}
	return next == INT64_MAX ? -1 : min_i64(next, now + s->lease_ms / TICK_SHARE);
}
