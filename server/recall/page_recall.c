/* page_recall.c - see page_recall.h. */
#include "server/recall/page_recall.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/recall/page_reuse.h"
#include "server/session/session.h"
#include "server/space/space.h"

/* A pause between two ticks counts for at most this share of the lease time. */
enum {
	STILL_SHARE = 4,
	/* Clients tell each second what they have written. */
	KEPT_LEAST_MS = 4000,
};

int64_t page_recall_give_ms(const struct server *s)
{
	return min_i64(GIVE_PAGES_MS, s->lease_ms / GIVE_PAGES_SHARE);
}

static int64_t late_ms(const struct client_session *session)
{
	return session->spare.since_ms + page_recall_give_ms(session->server);
}

static void has_none(struct client_session *session)
{
	struct page_recall *spare = &session->spare;

	spare->none = true;
	session->server->reclaim |= spare->asked != 0;
	spare->asked = 0;
}

/* ---- pages that are kept --------------------------------------------------------------------- */

static struct space_grantee granted_to(const struct client_session *session)
{
	return meta_granted(session->server->meta, session->export->index, session->stored.id);
}

/* A client puts its granted pages into files or returns them, one after the other. So when as many
 * have gone as it had, none of these is left. */
static bool has_given_all(const struct client_session *session)
{
	const struct page_recall *spare = &session->spare;
	struct space_grantee now = granted_to(session);

	return !now.npages || now.left - spare->kept_left >= spare->kept;
}

/* Whether it still has pages that it had a lease time ago, when others lacked some. */
static bool keeps_pages(const struct client_session *session)
{
	const struct page_recall *spare = &session->spare;

	return spare->kept && !session->ending && !list_empty(&session->conns) &&
	       now_ms() - spare->kept_ms >= max_i64(session->server->lease_ms, KEPT_LEAST_MS) &&
	       !has_given_all(session);
}

/* Others lack pages: from now on it has a lease time for those that it has. */
static void note_kept(struct client_session *session)
{
	struct page_recall *spare = &session->spare;
	struct space_grantee now = granted_to(session);

	if (spare->kept && !has_given_all(session))
		return;
	spare->kept = now.npages;
	spare->kept_left = now.left;
	spare->kept_ms = now_ms();
}

static void note_lack(const struct client_session *asker)
{
	list_for_each (pos, &asker->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (session != asker && client_session_writes_beside(session, asker))
			note_kept(session);
	}
}

static void end_keeper(struct client_session *session)
{
	const struct penalty_client client = client_session_penalized(session);
	int64_t now = now_ms();

	log_warning("session %" PRIu64 " of %s at export '%s' is ended: for %lld s it has not "
		    "given back, nor put into files, %" PRIu64 " pages that others lack",
		session->stored.id, session->stored.client, session->export->name,
		(long long)(now - session->spare.kept_ms) / 1000, granted_to(session).npages);
	penalty_add(&session->server->penalties, &client, session->began_ms, now);
	client_session_end(session, NULL);
}

static void end_keepers(const struct client_session *asker)
{
	list_for_each_safe (pos, &asker->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (session != asker && client_session_writes_beside(session, asker) &&
			keeps_pages(session))
			end_keeper(session);
	}
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool is_asked(const struct client_session *session)
{
	const struct page_recall *spare = &session->spare;

	return spare->asked && !(spare->late && session->heard_ms >= late_ms(session));
}

static bool may_have_some(const struct client_session *session)
{
	return !session->spare.none && !session->spare.nlacking;
}

static void page_recall_ask(struct client_session *session, uint64_t number, int64_t now)
{
	struct page_recall *spare = &session->spare;

	spare->asked = number;
	spare->since_ms = now;
	spare->late = false;
	client_session_ring(session);
}

static bool is_to_be_asked(const struct client_session *session)
{
	return may_have_some(session) && !is_asked(session);
}

/* Asks each session that was not asked yet. Returns the number of this ask. */
static uint64_t ask_all(const struct client_session *asker)
{
	uint64_t number = ++asker->server->nasks;
	int64_t now = now_ms();

	list_for_each (pos, &asker->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (client_session_writes_beside(session, asker) && is_to_be_asked(session))
			page_recall_ask(session, number, now);
	}
	return number;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool is_grant(const struct client_request *req)
{
	return req->rpc.op == RPC_GRANT;
}

/* Whether the request waits for that session, which writes beside its own, or would wait if it
 * asked. */
static bool awaits(const struct client_request *req, const struct client_session *session)
{
	const struct page_recall *spare = &session->spare;

	if (is_grant(req) && session == req->conn->session)
		return false;
	if (spare->asked && !spare->late)
		return !req->asked || spare->asked <= req->asked;
	return !req->asked && is_to_be_asked(session);
}

bool page_recall_may_come(const struct client_request *req)
{
	const struct client_session *asker = req->conn->session;

	list_for_each (pos, &asker->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (!client_session_writes_beside(session, asker))
			continue;
		if (awaits(req, session) || (session != asker && keeps_pages(session)))
			return true;
	}
	return false;
}

void page_recall_wait(struct client_request *req)
{
	struct client_session *session = req->conn->session;

	note_lack(session);
	end_keepers(session);
	if (!req->asked) {
		if (is_grant(req)) {
			has_none(session);
			session->spare.nlacking++;
		}
		req->asked = ask_all(session);
	}
	/* By a request of the same batch, a session that was to be asked may lack pages itself
	 * now. */
	if (!page_recall_may_come(req))
		session->server->reclaim = true;
}

void page_recall_leave(struct client_request *req)
{
	if (req->asked && is_grant(req))
		req->conn->session->spare.nlacking--;
	req->asked = 0;
}

/* The session has no page left: it returned all that it had, or its GRANT has waited in vain. */
static bool tells_of_none(const struct client_request *req)
{
	const struct page_recall *spare = &req->conn->session->spare;

	if (is_grant(req))
		return req->rpc.grant.wait && req->status == -ENOSPC;
	return req->rpc.op == RPC_RETURN && req->rpc.ret.answers &&
	       req->rpc.ret.answers == spare->asked;
}

void page_recall_executed(const struct client_request *req)
{
	if (req->status == -ENOSPC && req->lacks_pages)
		note_lack(req->conn->session);
	if (tells_of_none(req))
		has_none(req->conn->session);
	else if (!req->status)
		req->conn->session->spare.none = false;
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t page_recall_tick(struct server *s, int64_t now)
{
	int64_t next = -1,
		still_ms = max_i64(0, now - s->pages_ticked_ms - s->lease_ms / STILL_SHARE);

	s->pages_ticked_ms = now;
	list_for_each (pos, &s->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);
		struct page_recall *spare = &session->spare;

		/* While this process was stopped, or writes stand still or wait for pages, it could
		 * give nothing. */
		spare->kept_ms += still_ms;
		if (session->export->snapshot.freezing || page_reuse_is_awaited(session))
			spare->kept_ms = now;
		if (!spare->asked || spare->late)
			continue;
		if (now >= late_ms(session))
			spare->late = s->reclaim = true;
		else
			next = next < 0 ? late_ms(session) : min_i64(next, late_ms(session));
	}
	return next;
}
