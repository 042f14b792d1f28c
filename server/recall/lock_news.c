/* lock_news.c - see lock_news.h. */
#include "server/recall/lock_news.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/record/holders.h"
#include "server/session/session.h"

/* LOOK_MS: how often the server checks whether a client wants a lock of a session that is gone.
 * With many waiters the check takes a while. */
enum { LOG_MS = 1000, LOOK_MS = 100 };

void lock_news_wanted(struct server *s)
{
	uint64_t id = meta_lock_holder(s->meta);
	struct client_session *session = id ? client_session_find(s, id) : NULL;

	if (session)
		session->wanted_ms = now_ms();
}

/* ---- telling --------------------------------------------------------------------------------- */

static void lock_news_tell(uint64_t id, void *arg)
{
	struct server *s = arg;
	struct client_session *session = client_session_find(s, id);

	if (session)
		client_session_ring(session);
}

void lock_news_look(struct server *s)
{
	static struct log_ratelimit limit;
	int64_t next;
	int err = meta_locks_due(s->meta, &next) ? meta_locks_look(s->meta, lock_news_tell, s) : 0;

	if (err && log_ratelimit_ok(&limit, LOG_MS))
		log_error("locks that are waited for can't be read: %s", errno_text(err));
}

static bool lock_news_put_wait(uint64_t ino, uint64_t number, void *arg)
{
	struct wire_out *w = arg;

	if (wire_out_room(w) < RPC_RECALL_BYTES)
		return false;
	rpc_put_recall(w, &(struct rpc_recall){ino, number, RECALL_LOCKS});
	return true;
}

bool lock_news_put(const struct client_session *session, struct wire_out *w)
{
	return meta_locks_told(session->server->meta, session->stored.id, lock_news_put_wait, w);
}

/* ---- the end of holders that are gone -------------------------------------------------------- */

/* The shortest silence of all its channels. -1: one of them need not be heard (shm). */
static int64_t silence_ms(const struct client_session *session, int64_t now)
{
	int64_t shortest = INT64_MAX;

	list_for_each (pos, &session->conns) {
		int64_t silent = conn_silence_ms(list_entry(pos, struct conn, link), now);

		shortest = silent < shortest ? silent : shortest;
	}
	return shortest;
}

/* Whether a client has wanted a lock of the session since it was last heard of, or waits for
 * one. */
static bool is_wanted(const struct client_session *session)
{
	int64_t since_ms = list_empty(&session->conns) ? session->lost_ms : session->heard_ms;
	bool wanted;

	if (session->wanted_ms && session->wanted_ms >= since_ms)
		return true;
	return !meta_locks_wanted(session->server->meta, session->stored.id, &wanted) && wanted;
}

static bool has_locks(const struct client_session *session)
{
	const struct server *s = session->server;

	return meta_holder(s->meta, session->export->index, session->stored.id).locks;
}

/* When the session may be ended. -1: not while it is present, or no client can want a lock of
 * it. */
static int64_t ends_ms(const struct client_session *session, int64_t now)
{
	const struct server *s = session->server;
	int64_t silent;

	if (session->ending || session->export->closed ||
		(!session->wanted_ms && !meta_locks_waiting(s->meta)) || !has_locks(session))
		return -1;
	if (!list_empty(&session->conns)) {
		silent = silence_ms(session, now);
		return silent < 0 ? -1 : now + s->lease_ms - silent;
	}
	if (session->process_gone && !client_session_reaches_memory(session))
		return 0;
	return session->lost_ms - session->silent_ms + s->lease_ms;
}

int64_t lock_news_tick(struct server *s, int64_t now)
{
	int64_t next = INT64_MAX, look_ms;

	lock_news_look(s);
	list_for_each_safe (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);
		int64_t at = ends_ms(session, now);

		if (at < 0)
			continue;
		at = max_i64(at, session->looked_ms + LOOK_MS);
		if (at > now) {
			next = min_i64(next, at);
			continue;
		}
		session->looked_ms = now;
		if (!is_wanted(session))
			continue;
		log_warning("session %" PRIu64 " of %s at export '%s' is ended: it is gone, and "
			    "has locks that others want",
			session->stored.id, session->stored.client, session->export->name);
		client_session_end(session, NULL);
	}
	meta_locks_due(s->meta, &look_ms);
	next = look_ms < next ? look_ms : next;
	return next == INT64_MAX ? -1 : next;
}
