/* in_the_way.c - see in_the_way.h. */
#include "server/session/in_the_way.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "server/session/session.h"

/* After this time a session that had files open which it can't share may have closed them. */
enum { ASK_AGAIN_MS = 1000 };

/* Any number of clients may read, and cache, an export that nobody writes. Clients that take leases
 * share with each other. */
static bool may_share(uint32_t flags, uint32_t others)
{
	if (others & SESSION_FORGETS)
		return false;
	if ((flags | others) & ATTACH_SHARED)
		return flags & others & ATTACH_SHARED;
	return flags & others & ATTACH_READ_ONLY && !((flags | others) & ATTACH_EXCLUSIVE);
}

bool in_the_way_is_of_owner(const struct client_session *session, const struct client_request *req)
{
	return strcmp(session->stored.holder, req->conn->holder) == 0 &&
	       memcmp(session->stored.owner, req->rpc.attach.owner, OWNER_BYTES) == 0;
}

bool in_the_way_is_of_process(
	const struct client_session *session, const struct client_request *req)
{
	return in_the_way_is_of_owner(session, req) &&
	       session->stored.instance == req->rpc.attach.instance;
}

bool in_the_way_is_former(const struct client_session *session, const struct client_request *req)
{
	return in_the_way_is_of_process(session, req) ||
	       (in_the_way_is_of_owner(session, req) && client_session_is_left(session));
}

bool in_the_way_has_later(const struct client_request *req, const struct export *export)
{
	list_for_each (pos, &req->conn->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (session->export == export && in_the_way_is_of_process(session, req) &&
			session->serial > req->conn->serial)
			return true;
	}
	return false;
}

bool in_the_way_is(const struct client_session *session, const struct export *export,
	const struct client_request *req)
{
	return session->export == export &&
	       (in_the_way_is_former(session, req) ||
		       !may_share(req->rpc.attach.flags, session->stored.flags));
}

/* Whether the session goes by leases, or will when it is asked to. */
static bool will_share(const struct client_session *session)
{
	return session->stored.flags & ATTACH_MAY_SHARE && !session->ending && !session->said_bye;
}

/* How much it is the reason why the client is kept out: those that can't share are, and before
 * others those that can't now. */
static unsigned weight(const struct client_session *session)
{
	return !will_share(session) ? 3 : session->not_now_ms ? 2 : 1;
}

struct client_session *in_the_way_find(
	const struct client_request *req, const struct export *export, unsigned *n)
{
	struct client_session *reason = NULL;

	*n = 0;
	list_for_each (pos, &req->conn->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (!in_the_way_is(session, export, req))
			continue;
		if (!reason || weight(session) > weight(reason))
			reason = session;
		++*n;
	}
	return reason;
}

/* ---- conversion ------------------------------------------------------------------------------ */

bool in_the_way_may_share_later(const struct client_request *req, const struct export *export)
{
	list_for_each (pos, &req->conn->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (in_the_way_is(session, export, req) && !will_share(session))
			return false;
	}
	return req->rpc.attach.flags & ATTACH_MAY_SHARE;
}

bool in_the_way_share_now(const struct client_request *req, const struct export *export)
{
	list_for_each (pos, &req->conn->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (in_the_way_is(session, export, req) && !(session->stored.flags & ATTACH_SHARED))
			return false;
	}
	return true;
}

/* When it is to be asked; INT64_MAX: it was. */
static int64_t ask_ms(const struct client_session *session)
{
	if (session->convert_ms)
		return INT64_MAX;
	return session->not_now_ms ? session->not_now_ms + ASK_AGAIN_MS : 0;
}

static void ask_to_share(struct client_session *session)
{
	session->convert_ms = now_ms();
	client_session_ring(session);
}

int64_t in_the_way_ask_to_share(const struct client_request *req, const struct export *export)
{
	int64_t now = now_ms(), next = INT64_MAX;

	list_for_each (pos, &req->conn->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (!in_the_way_is(session, export, req))
			continue;
		if (ask_ms(session) > now) {
			next = min_i64(next, ask_ms(session));
			continue;
		}
		ask_to_share(session);
	}
	return next == INT64_MAX ? 0 : next;
}

/* ---- a session that reads, and wants to write ------------------------------------------------ */

/* An ending session may still reach memory, and know of no other. */
static bool reads_beside(const struct client_session *other, const struct client_session *session)
{
	if (other == session || other->export != session->export || other->said_bye)
		return false;
	if (session->stored.flags & ATTACH_SHARED)
		return !(other->stored.flags & ATTACH_SHARED) ||
		       other->stored.flags & SESSION_FORGETS;
	return !other->ending && !client_session_overdue(other);
}

const struct client_session *in_the_way_reader(const struct client_session *session, unsigned *n)
{
	const struct client_session *first = NULL;

	*n = 0;
	list_for_each (pos, &session->server->sessions) {
		const struct client_session *other = list_entry(pos, struct client_session, link);

		if (!reads_beside(other, session))
			continue;
		if (!first)
			first = other;
		++*n;
	}
	return first;
}

void in_the_way_ask_readers(const struct client_session *session)
{
	list_for_each (pos, &session->server->sessions) {
		struct client_session *other = list_entry(pos, struct client_session, link);

		if (reads_beside(other, session) && other->stored.flags & ATTACH_CONVERTS &&
			ask_ms(other) <= now_ms())
			ask_to_share(other);
	}
}
