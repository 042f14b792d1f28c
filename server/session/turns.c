/* turns.c - see turns.h. */
#include "server/session/turns.h"

bool turns_is_control(const struct client_request *req)
{
	return !rpc_op_info(req->rpc.op)->slotted || req->rpc.op == RPC_FROZEN;
}

void turns_add(struct client_session *session, struct client_request *req)
{
	list_add_tail(&session->asked, &req->link);
	if (list_empty(&session->turn))
		list_add_tail(&session->server->turns, &session->turn);
}

/* Requests are dropped with their channels, so a session with a turn may have none. */
struct client_request *turns_take(struct server *s, bool control)
{
	list_for_each_safe (pos, &s->turns) {
		struct client_session *session = list_entry(pos, struct client_session, turn);
		struct client_request *req;

		if (list_empty(&session->asked)) {
			list_del(&session->turn);
			continue;
		}
		req = list_entry(session->asked.next, struct client_request, link);
		if (turns_is_control(req) != control)
			continue;
		list_del(&req->link);
		list_del(&session->turn);
		if (!list_empty(&session->asked))
			list_add_tail(&s->turns, &session->turn);
		return req;
	}
	return NULL;
}
