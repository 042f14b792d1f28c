/* in_the_way.c - see in_the_way.h. */
#include "server/session/in_the_way.h"

#include <string.h>

#include "common/base/clock.h"
#include "server/session/session.h"

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

bool in_the_way_is(const struct client_session *session, const struct export *export,
	const struct client_request *req)
{
	return session->export == export &&
	       (in_the_way_is_former(session, req) ||
		       !may_share(req->rpc.attach.flags, session->stored.flags));
}

struct client_session *in_the_way_find(
	const struct client_request *req, const struct export *export, unsigned *n)
{
	struct client_session *first = NULL;

	*n = 0;
	list_for_each (pos, &req->conn->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (!in_the_way_is(session, export, req))
			continue;
		if (!first)
			first = session;
		++*n;
	}
	return first;
}

/* ---- conversion ------------------------------------------------------------------------------ */

/* Whether the session goes by leases, or will when it is asked to. */
static bool will_share(const struct client_session *session)
{
	return session->stored.flags & (ATTACH_SHARED | ATTACH_CONVERTS) && !session->ending &&
	       !session->said_bye;
}

bool in_the_way_may_share_later(const struct client_request *req, const struct export *export)
{
	list_for_each (pos, &req->conn->server->sessions) {
		const struct client_session *session = list_entry(pos, struct client_session, link);

		if (in_the_way_is(session, export, req) && !will_share(session))
			return false;
	}
	return req->rpc.attach.flags & (ATTACH_SHARED | ATTACH_CONVERTS);
}

void in_the_way_ask_to_share(const struct client_request *req, const struct export *export)
{
	list_for_each (pos, &req->conn->server->sessions) {
		struct client_session *session = list_entry(pos, struct client_session, link);

		if (!in_the_way_is(session, export, req) || session->convert_ms)
			continue;
		session->convert_ms = now_ms();
		client_session_ring(session);
	}
}
