/* order.c - see order.h. */
#include "server/admin/order.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/session/conn.h"
#include "server/session/session.h"

/* False: the request was refused. */
static bool may_order(struct client_request *req)
{
	if (conn_is_admin(req->conn))
		return true;
	client_request_refuse(req, -EPERM,
		"only root and the server's user may do this, by the socket on the server's machine");
	return false;
}

/* The channel that asks may be the session's own, so its answer goes first. */
void order_evict(struct client_request *req)
{
	struct server *s = req->conn->server;
	uint64_t id = req->rpc.evict.session;
	struct client_session *session;
	struct penalty_client client;

	if (!may_order(req))
		return;
	session = client_session_find(s, id);
	if (!session) {
		client_request_refuse(req, -ENOENT, "there is no session %" PRIu64, id);
		return;
	}
	client_request_answer(req, &(struct rpc_reply){0});
	session = client_session_find(s, id);
	if (!session || session->ending)
		return;
	client = client_session_penalized(session);
	penalty_add(&s->penalties, &client, session->began_ms, now_ms());
	client_session_end(session, "an administrator ended it");
}

void order_log(struct client_request *req)
{
	enum log_level level = (enum log_level)req->rpc.log.level;

	if (!may_order(req))
		return;
	log_set_level(level);
	log_notice("log level: %s, as an admin wants", log_level_name(level));
	client_request_answer(req, &(struct rpc_reply){0});
}
