/* control.c - see control.h. */
#include "server/serve/control.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/service.h"
#include "common/base/util.h"
#include "server/admin/fullness.h"
#include "server/admin/order.h"
#include "server/admin/status.h"
#include "server/admin/who.h"
#include "server/base/tick.h"
#include "server/recall/conversion.h"
#include "server/recall/lock_news.h"
#include "server/recall/page_recall.h"
#include "server/recall/page_reuse.h"
#include "server/recall/recall.h"
#include "server/serve/dispatch.h"
#include "server/serve/lateness.h"
#include "server/serve/reload.h"
#include "server/session/attach.h"
#include "server/session/lost_memory.h"
#include "server/session/places.h"
#include "server/session/auth.h"
#include "server/session/session.h"
#include "server/snapshot/snapshot.h"

/* ---- requests -------------------------------------------------------------------------------- */

/* Locks and recalls come first by turns, so neither keeps the other out for long. False: more is
 * new. */
static bool put_news(struct client_session *session, struct wire_out *w)
{
	bool locks = true, recalls;

	session->locks_first = !session->locks_first;
	if (session->locks_first)
		locks = lock_news_put(session, w);
	recalls = recalls_put(session, w);
	if (!session->locks_first)
		locks = lock_news_put(session, w);
	return locks && recalls;
}

static void ping(struct client_request *req)
{
	struct rpc_reply rep = {.ping = {.server_time = realtime_ns()}};
	struct client_session *session = req->conn->session;
	uint32_t version = channel_version(req->conn->channel);
	uint8_t tail[RPC_MSG_BYTES];
	struct wire_out w;
	bool all;

	/* First: news that comes up from here on is not in this answer. */
	req->conn->rung = session->ring_wanted = false;
	client_session_count(session, &req->rpc.ping);
	rep.ping.snapshot = client_session_snapshot(session, &rep.ping.frozen);
	rep.ping.give_pages = session->spare.asked;
	wire_out_init(&w, tail, RPC_MSG_BYTES - rpc_reply_tail_at(RPC_PING, version));
	conversion_put(session, &w);
	all = put_news(session, &w);
	rep.ping.tail = (struct rpc_tail){tail, (uint32_t)wire_out_len(&w)};
	client_request_answer(req, &rep);
	if (!all)
		client_session_ring(session);
}

static void control_cancel(struct client_request *req)
{
	const struct rpc_cancel *cancel = &req->rpc.cancel;
	struct client_request *other = conn_find_request(req->conn, cancel->slot, cancel->seq);

	if (other && (recall_waits(other) || other->parked_ms) &&
		!req->conn->session->export->closed)
		client_request_answer(other, &(struct rpc_reply){.status = -EINTR});
	/* Unless the other answer has ended the channel. */
	if (req->msg)
		client_request_answer(req, &(struct rpc_reply){0});
}

static void control_trial(struct client_request *req)
{
	client_request_answer(req, &(struct rpc_reply){0});
}

typedef void control(struct client_request *req);

static control *const without_session[RPC_OP_MAX] = {
	[RPC_ATTACH] = attach_request,
	[RPC_AUTH] = auth_request,
	[RPC_STATUS] = status_answer,
	[RPC_WHO] = who_answer,
	[RPC_SNAPSHOT] = snapshot_request,
	[RPC_RELOAD] = reload_request,
	[RPC_EVICT] = order_evict,
	[RPC_LOG] = order_log,
	[RPC_TRIAL] = control_trial,
};

static control *const of_session[RPC_OP_MAX] = {
	[RPC_REGIONS] = client_session_regions,
	[RPC_PING] = ping,
	[RPC_BYE] = client_session_bye,
	[RPC_CANCEL] = control_cancel,
	[RPC_FROZEN] = snapshot_frozen,
};

void control_run(struct client_request *req)
{
	if (without_session[req->rpc.op])
		without_session[req->rpc.op](req);
	else if (req->conn->session)
		of_session[req->rpc.op](req);
	else
		conn_breach(req->conn, "a request before it has attached");
}

/* ---- time ------------------------------------------------------------------------------------ */

void control_tell_status(struct server *s)
{
	unsigned nexports = s->exports->n;

	s->nsessions_told = s->nsessions;
	service_status("serving %u export%s, %u session%s%s", nexports, nexports == 1 ? "" : "s",
		s->nsessions, s->nsessions == 1 ? "" : "s",
		s->starved_told ? "; short of CPU: see 'rmemfsctl health'" : "");
}

/* This call proves that the metadata thread goes round its loop: see service.h. A round is short
 * after the start: a batch of requests, a piece of reclaiming, the marker of a snapshot. The
 * longest is one with a reload, which reads files. */
static int64_t tell_manager(struct server *s, int64_t now)
{
	if (s->nsessions != s->nsessions_told && !s->leaving)
		control_tell_status(s);
	return service_tick(now, true);
}

/* Sessions that end let others go on in the same tick. Rings come last: each of the ticks before
 * may want one. */
int control_tick(struct server *s)
{
	int64_t now = now_ms(), next;

	lateness_tick(s, now);
	next = sessions_judge(s, now);
	next = tick_sooner(next, places_tick(s, now));
	next = tick_sooner(next, lost_memory_tick(s, now));
	next = tick_sooner(next, auth_tick(s, now));
	next = tick_sooner(next, page_reuse_tick(s, now));
	next = tick_sooner(next, page_recall_tick(s, now));
	next = tick_sooner(next, snapshot_tick(s, now));
	next = tick_sooner(next, conversion_tick(s, now));
	next = tick_sooner(next, recalls_tick(s, now));
	next = tick_sooner(next, lock_news_tick(s, now));
	next = tick_sooner(next, status_tick(s, now));
	next = tick_sooner(next, fullness_tick(s, now));
	next = tick_sooner(next, sessions_tick(s, now));
	next = tick_sooner(next, tell_manager(s, now));
	lateness_expect(s, next);
	return next < 0 ? -1 : (int)max_i64(1, next - now);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void request_left(struct client_request *req)
{
	recall_leave(req);
	page_recall_leave(req);
	dispatch_leave(req);
}

static void news_lost(struct client_session *session)
{
	recalls_untold(session);
	meta_locks_untold(session->server->meta, session->stored.id);
}

const struct client_session_events control_events = {
	.channel_fenced = client_session_lost_conn,
	.process_gone = client_session_lost_process,
	.request_left = request_left,
	.deleted = recall_lost_session,
	.ended = snapshot_lost_session,
	.retry_attaches = attach_retry_waiting,
	.news_lost = news_lost,
};
