/* dispatch.c - batches of requests.
 *
 * A batch has the requests that are to be run again, and then one request of each session in turn
 * (turns.h).
 *
 * A reply is encoded into the channel's send buffer while the batch runs. It is stored with the
 * change that it tells of, and sent after the commit. If the store fails, nothing of the batch has
 * happened. Then each of its requests is run alone, so that only the one that fails is told so.
 */
#include "server/namespace/execute.h"
#include "server/serve/dispatch.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/session/conn.h"
#include "server/record/lock.h"
#include "server/recall/lock_news.h"
#include "server/recall/recall.h"
#include "server/recall/conversion.h"
#include "server/recall/page_recall.h"
#include "server/recall/page_reuse.h"
#include "server/session/session.h"
#include "server/serve/control.h"
#include "server/session/turns.h"

enum { BATCH_MAX = 256, CONTROLS_MAX = 64 };

struct batch {
	struct list requests; /* struct client_request */
	unsigned n;
	int64_t now;
};

/* ---- one request within a batch -------------------------------------------------------------- */

static int breach(struct client_request *req, const char *reason)
{
	req->outcome = OUTCOME_BREACH;
	req->breach = reason;
	return 0;
}

static uint32_t version_of(const struct client_request *req)
{
	return channel_version(req->conn->channel);
}

/* Takes the reply of an earlier execution, if there is one. 1: it was taken. */
static int take_stored(struct meta *m, struct client_request *req)
{
	const struct rpc_request *rpc = &req->rpc;
	struct rpc_reply rep;
	const void *msg;
	uint64_t seq;
	size_t len;
	int err;

	err = meta_reply_find(m, req->conn->session->stored.id, rpc->slot, &seq, &msg, &len);
	if (err == -ENOENT || (!err && rpc->seq > seq))
		return 0;
	if (err)
		return err;
	if (rpc->seq < seq) {
		breach(req, "a sequence number of the past");
		return 1;
	}
	if (len > RPC_MSG_BYTES || rpc_reply_decode(&rep, version_of(req), msg, len))
		return -EBADMSG;
	if (rep.op != rpc->op) {
		breach(req, "another request under a sequence number that was used");
		return 1;
	}
	memcpy(req->reply, msg, len);
	req->reply_len = (uint32_t)len;
	return 1;
}

static void fill_ms(struct lease *lease, uint32_t lease_ms)
{
	if (lease->type != LEASE_NONE)
		lease->ms = lease_ms;
}

static void fill_lease(struct rpc_reply *rep, uint32_t lease_ms)
{
	switch (rep->op) {
	case RPC_LOOKUP:
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
	case RPC_LINK:
	case RPC_LEASE:
		fill_ms(&rep->entry.lease, lease_ms);
		fill_ms(&rep->entry.parent_lease, lease_ms);
		break;
	case RPC_GETATTR:
		fill_ms(&rep->attr.lease, lease_ms);
		break;
	default:
		break;
	}
}

static int encode_reply(struct server *s, struct client_request *req, struct rpc_reply *rep)
{
	size_t len;
	int err;

	if (!rep->status)
		fill_lease(rep, s->lease_ms);
	err = rpc_reply_encode(rep, version_of(req), req->reply, RPC_MSG_BYTES, &len);
	if (err)
		return err;
	req->reply_len = (uint32_t)len;
	if (!rpc_mutates(&req->rpc))
		return 0;
	return meta_reply_store(s->meta, req->conn->session->stored.id, req->rpc.slot, req->rpc.seq,
		req->reply, len);
}

/* A refused request has changed nothing, except that SETXATTR's stage has gone. A GRANT that does
 * not wait is for later needs, or comes before the client has looked at what it has. */
static bool can_wait_for_others(const struct client_request *req, int status)
{
	const struct rpc_request *q = &req->rpc;

	return (status == -ENOSPC || status == -EDQUOT) && q->op != RPC_SETXATTR &&
	       (q->op != RPC_GRANT || q->grant.wait) &&
	       req->conn->session->stored.flags & ATTACH_SHARED;
}

/* Pages that others return are dirty at first. */
static bool lacks_pages(const struct client_request *req, int status)
{
	const struct client_session *session = req->conn->session;

	return status == -ENOSPC && meta_lacks_pages(session->server->meta) &&
	       page_reuse_comes(session->server, session->export);
}

/* Beside others, a session that is gone keeps what it had, pages too, until a client needs that.
 * One that is present keeps some pages that it does not use. */
static bool others_may_give(const struct client_request *req)
{
	return client_session_others_overdue(req->conn->session) ||
	       (req->lacks_pages && page_recall_may_come(req));
}

static unsigned sharers(const void *asker)
{
	const struct client_request *req = asker;

	return client_session_sharers(req->conn->session);
}

static uint8_t dispatch_wanted(const void *asker, uint64_t ino)
{
	return recall_wanted(asker, ino);
}

static bool dirty_comes(const void *asker)
{
	const struct client_session *session =
		((const struct client_request *)asker)->conn->session;

	return page_reuse_comes(session->server, session->export);
}

static bool restless(const void *asker, uint64_t ino)
{
	return recall_is_restless(asker, ino);
}

static int execute_in_store(
	struct server *s, struct client_request *req, int64_t now, struct rpc_reply *rep)
{
	const struct client_session *session = req->conn->session;
	const struct meta_ctx ctx = {
		.export_index = session->export->index,
		.session = session->stored.id,
		.read_only = session->stored.flags & ATTACH_READ_ONLY,
		.flags = session->stored.flags,
		.shared = session->stored.flags & ATTACH_SHARED,
		.squash = session->squash,
		.lease_limit = s->lease_limit,
		.lock_limit = SESSION_LOCKS_MAX,
		.now = now,
		.wanted = dispatch_wanted,
		.restless = restless,
		.sharers = sharers,
		.dirty_comes = dirty_comes,
		.asker = req,
		.kept = &req->conn->kept,
	};
	size_t tail_at = rpc_reply_tail_at(req->rpc.op, version_of(req));
	struct wire_out tail;

	wire_out_init(&tail, (uint8_t *)req->reply + tail_at, RPC_MSG_BYTES - tail_at);
	tail.version = version_of(req);
	return execute_request(s->meta, &ctx, &req->rpc, rep, &tail);
}

/* The outcome of a request that the store refuses with `status`: others may have what it lacks. */
static enum outcome judge_refused(struct client_request *req, int status)
{
	req->lacks_pages = lacks_pages(req, status);
	if (others_may_give(req))
		return OUTCOME_LACK;
	/* When the other session has ended all requests run again: no session has to be asked. */
	if (client_session_others_ending(req->conn->session))
		return OUTCOME_PARK;
	return OUTCOME_REPLY;
}

static int reply_to_executed(struct server *s, struct client_request *req, struct rpc_reply *rep)
{
	req->status = rep->status;
	if (!rep->status && req->rpc.op == RPC_CREATE)
		req->pinned = rep->entry.attr.ino;
	if (!rep->status && req->rpc.op == RPC_CONVERT)
		req->converted = req->rpc.convert.state;
	if (!rep->status && req->rpc.op == RPC_GRANT)
		rep->grant.answers = req->asked;
	return encode_reply(s, req, rep);
}

static int dispatch_run_one(struct server *s, struct client_request *req, int64_t now)
{
	struct rpc_reply rep = {.op = req->rpc.op, .slot = req->rpc.slot, .seq = req->rpc.seq};
	int result = execute_in_store(s, req, now, &rep);

	if (req->rpc.op == RPC_LOCK || req->rpc.op == RPC_GETLK)
		lock_news_wanted(s);
	if (result < 0)
		return result;
	req->outcome = (enum outcome)result;
	if (req->outcome == OUTCOME_REPLY && can_wait_for_others(req, rep.status))
		req->outcome = judge_refused(req, rep.status);
	else if (req->outcome == OUTCOME_PARK)
		req->lacks_pages = meta_lacks_pages(s->meta);
	else if (req->outcome == OUTCOME_WAIT)
		req->wants = meta_wait(s->meta);
	return req->outcome == OUTCOME_REPLY ? reply_to_executed(s, req, &rep) : 0;
}

static int execute(struct server *s, struct client_request *req, int64_t now)
{
	int taken = 0;

	req->outcome = OUTCOME_REPLY;
	req->pinned = 0;
	req->converted = 0;
	req->status = 0;
	req->lacks_pages = false;
	req->reply = channel_send_buffer(req->conn->channel);
	if (!req->reply)
		return breach(req, "it does not take its replies");
	if (rpc_mutates(&req->rpc))
		taken = take_stored(s->meta, req);
	if (taken)
		return taken < 0 ? taken : 0;
	return dispatch_run_one(s, req, now);
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void cancel_reply(struct client_request *req)
{
	channel_send_cancel(req->conn->channel, req->reply);
	req->reply = NULL;
}

static int execute_all(struct server *s, struct batch *batch)
{
	list_for_each (pos, &batch->requests) {
		int err = execute(s, list_entry(pos, struct client_request, link), batch->now);

		if (err)
			return err;
	}
	return 0;
}

/* One transaction; after a failure nothing of it has happened. */
static int transact(struct server *s, struct batch *batch)
{
	int err = meta_begin(s->meta);

	if (err)
		return err;
	err = execute_all(s, batch);
	if (!err)
		return meta_commit(s->meta);
	meta_abort(s->meta);
	return err;
}

void dispatch_leave(struct client_request *req)
{
	if (req->parked_ms)
		req->conn->session->nparked--;
	req->parked_ms = 0;
}

/* ---- after the commit: a function for each outcome ------------------------------------------- */

static void finish_reply(struct client_request *req)
{
	client_request_reply(req, req->reply, req->reply_len);
}

static void finish_park(struct server *s, struct client_request *req)
{
	struct client_session *session = req->conn->session;

	recall_leave(req);
	if (!req->parked_ms) {
		req->parked_ms = now_ms();
		session->nparked++;
	}
	if (req->lacks_pages && session->stored.flags & ATTACH_SHARED)
		page_reuse_await(s, session->export);
	list_add_tail(&s->parked, &req->link);
}

static void finish_lack(struct server *s, struct client_request *req)
{
	struct client_session *session = req->conn->session;

	session->export->crowded |= client_session_others_overdue(session);
	if (req->lacks_pages)
		page_recall_wait(req);
	finish_park(s, req);
}

static void finish_wait(struct client_request *req)
{
	dispatch_leave(req);
	recall_wait(req);
}

static void finish_breach(struct client_request *req)
{
	conn_breach(req->conn, req->breach);
}

static void dispatch_finish(struct server *s, struct client_request *req)
{
	if (req->outcome != OUTCOME_REPLY)
		cancel_reply(req);
	switch (req->outcome) {
	case OUTCOME_REPLY:
		finish_reply(req);
		break;
	case OUTCOME_PARK:
		finish_park(s, req);
		break;
	case OUTCOME_WAIT:
		finish_wait(req);
		break;
	case OUTCOME_LACK:
		finish_lack(s, req);
		break;
	case OUTCOME_BREACH:
		finish_breach(req);
		break;
	}
}

/* The change was stored, and counts for others even if an earlier request's breach ends the
 * channel. */
static void note_executed(const struct client_request *req)
{
	if (req->outcome != OUTCOME_REPLY)
		return;
	recall_changed(req);
	page_recall_executed(req);
	if (req->converted)
		conversion_executed(req);
}

static void finish_all(struct server *s, struct batch *batch)
{
	CRASH_POINT("reply.none");
	list_for_each (pos, &batch->requests)
		note_executed(list_entry(pos, struct client_request, link));
	for (struct list *pos; (pos = list_pop(&batch->requests));) {
		dispatch_finish(s, list_entry(pos, struct client_request, link));
		CRASH_POINT("reply.sent");
	}
}

static void run_alone(struct server *s, struct client_request *req, int64_t now)
{
	static struct log_ratelimit limit;
	struct batch batch = {.n = 1, .now = now};
	int err;

	list_init(&batch.requests);
	list_add_tail(&batch.requests, &req->link);
	err = transact(s, &batch);
	if (!err) {
		finish_all(s, &batch);
		return;
	}
	list_del(&req->link);
	cancel_reply(req);
	if (log_ratelimit_ok(&limit, 1000))
		log_error("%s of session %llu: the store failed: %s",
			rpc_op_info(req->rpc.op)->name,
			(unsigned long long)req->conn->session->stored.id, errno_text(err));
	/* A damaged record is data that can't be read: callers know that as EIO. */
	client_request_refuse(
		req, err == -EBADMSG ? -EIO : err, "the store failed: %s", errno_text(err));
}

static void run_batch(struct server *s, struct batch *batch)
{
	struct list *pos;

	if (!transact(s, batch)) {
		finish_all(s, batch);
		return;
	}
	list_for_each (each, &batch->requests)
		cancel_reply(list_entry(each, struct client_request, link));
	while ((pos = list_pop(&batch->requests)))
		run_alone(s, list_entry(pos, struct client_request, link), batch->now);
}

/* ---- reclaiming ------------------------------------------------------------------------------ */

static int reclaim_step(struct server *s, bool *more, uint64_t *freed)
{
	int err = meta_begin(s->meta);

	if (err)
		return err;
	err = meta_reclaim(s->meta, more, freed);
	if (!err)
		return meta_commit(s->meta);
	meta_abort(s->meta);
	return err;
}

/* A piece at a time, so that requests don't wait for long files to be deleted. */
static void dispatch_reclaim(struct server *s)
{
	static struct log_ratelimit limit;
	uint64_t freed = 0, ended = meta_leases_ended(s->meta);
	bool more = false;
	int err = reclaim_step(s, &more, &freed);

	if (err && log_ratelimit_ok(&limit, 1000))
		log_error("the store failed while pages were reclaimed: %s", errno_text(err));
	s->reclaim = !err && more;
	if (meta_leases_ended(s->meta) != ended)
		recall_look_again(s);
	/* If nothing more can be freed, the requests run and are told that there is no space. */
	if (freed || !s->reclaim)
		list_splice_tail(&s->ready, &s->parked);
}

/* ---- what is next ---------------------------------------------------------------------------- */

/* Requests of an export whose last snapshot has begun get no answer any more, as if the server had
 * ended. */
static void dispatch_add(struct server *s, struct batch *batch, struct client_request *req)
{
	if (req->conn->session->export->closed) {
		list_add_tail(&s->parked, &req->link);
		return;
	}
	list_add_tail(&batch->requests, &req->link);
	batch->n++;
}

/* Takes requests that have waited, until a control is next. */
static void collect_ready(struct server *s, struct batch *batch, unsigned max)
{
	while (batch->n < max && !list_empty(&s->ready)) {
		struct client_request *req = list_entry(s->ready.next, struct client_request, link);

		if (turns_is_control(req))
			break;
		list_del(&req->link);
		dispatch_add(s, batch, req);
	}
}

/* While much is reclaimed, all parked requests may be ready again after each step. So half of the
 * batch is for new requests. */
static void dispatch_collect(struct server *s, struct batch *batch)
{
	struct client_request *req;

	collect_ready(s, batch, BATCH_MAX / 2);
	while (batch->n < BATCH_MAX && (req = turns_take(s, false)))
		dispatch_add(s, batch, req);
	collect_ready(s, batch, BATCH_MAX);
}

static void run_controls(struct server *s)
{
	struct client_request *req;

	if (!list_empty(&s->ready)) {
		req = list_entry(s->ready.next, struct client_request, link);
		if (turns_is_control(req)) {
			list_del(&req->link);
			control_run(req);
		}
	}
	for (unsigned i = 0; i < CONTROLS_MAX && (req = turns_take(s, true)); i++)
		control_run(req);
}

static void end_overdue(struct server *s)
{
	for (unsigned i = 0; i < s->exports->n; i++) {
		struct export *export = s->exports->v[i];

		if (!export->crowded)
			continue;
		export->crowded = false;
		sessions_end_overdue(s, export, NULL);
		s->reclaim = true;
	}
}

bool dispatch_pending(const struct server *s)
{
	return !list_empty(&s->ready) || !list_empty(&s->turns);
}

bool dispatch_run(struct server *s)
{
	struct batch batch = {.now = realtime_ns()};
	bool searches;

	list_init(&batch.requests);
	recalls_look(s);
	lock_news_look(s);
	dispatch_collect(s, &batch);
	if (batch.n) {
		run_batch(s, &batch);
		end_overdue(s);
	}
	if (s->reclaim)
		dispatch_reclaim(s);
	run_controls(s);
	lock_news_look(s);
	searches = recalls_search(s);
	return recalls_look(s) || searches || dispatch_pending(s) || s->reclaim;
}
