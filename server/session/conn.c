/* conn.c - events of channels become requests. */
#include "server/session/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/base/probes.h"
#include "common/base/util.h"
#include "server/session/client_session.h"
#include "server/access/authenticator.h"
#include "server/session/peers.h"
#include "server/session/turns.h"

/* ---- silence --------------------------------------------------------------------------------- */

uint32_t conn_timeout_ms(const struct conn *c)
{
	return channel_peer_pid(c->channel) ? 0 : c->server->peer_timeout_ms;
}

/* While this process was stopped the clients' messages lay unread: that was not their silence. So
 * of a time in which nothing was judged only a small part counts. */
static int64_t running_ms(const struct server *s, int64_t now)
{
	return s->running_ms +
	       (int64_t)min_u64((uint64_t)(now - s->judged_ms), s->peer_timeout_ms / 4);
}

static void hear(struct conn *c)
{
	int64_t now = now_ms();

	c->heard_ms = running_ms(c->server, now);
	if (c->session)
		c->session->heard_ms = now;
}

int64_t conn_silence_ms(const struct conn *c, int64_t now)
{
	return conn_timeout_ms(c) ? running_ms(c->server, now) - c->heard_ms : -1;
}

static void close_silent(struct conn *c, int64_t silent_ms)
{
	static struct log_ratelimit limit = {.burst = CLIENTS_LOG_BURST};
	struct client_session *session = c->session;

	if (!session->fell_silent && log_ratelimit_ok(&limit, CONN_LOG_MS))
		log_warning("%s: %s at export '%s' has been silent for %lld.%lld s: closed",
			channel_peer(c->channel), session->stored.client, session->export->name,
			(long long)silent_ms / 1000, (long long)silent_ms % 1000 / 100);
	session->fell_silent = true;
	c->silent_ms = silent_ms;
	conn_fence(c);
}

static bool is_judged(const struct conn *c)
{
	return c->session && c->state == CONN_OPEN && conn_timeout_ms(c);
}

static void conn_sooner(int64_t *next, int64_t at)
{
	if (at < *next)
		*next = at;
}

/* A message waits behind the transfers before it, on a slow link for long: they count, too. */
static bool has_progressed(struct conn *c)
{
	uint64_t before = c->progress;

	c->progress = channel_progress(c->channel);
	return c->progress != before;
}

int64_t conns_judge(struct server *s, int64_t now)
{
	int64_t timeout_ms = s->peer_timeout_ms, next = INT64_MAX;

	s->running_ms = running_ms(s, now);
	s->judged_ms = now;
	list_for_each (pos, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, all);
		int64_t silent_ms;

		if (!is_judged(c))
			continue;
		if (has_progressed(c))
			hear(c);
		silent_ms = s->running_ms - c->heard_ms;
		/* A client that waits for an answer outside of slots, for keys for example, need
		 * not speak. */
		if (!conn_is_silent(c))
			c->heard_ms = s->running_ms;
		else if (silent_ms >= timeout_ms)
			close_silent(c, silent_ms);
		else
			conn_sooner(&next, now + timeout_ms - silent_ms);
		/* Often enough that a longer pause between two looks is one of this process. */
		conn_sooner(&next, now + timeout_ms / 8);
	}
	return next;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void init_requests(struct conn *c)
{
	for (unsigned i = 0; i < CHANNEL_SLOTS; i++) {
		list_init(&c->slots[i].link);
		c->slots[i].conn = c;
	}
	for (unsigned i = 0; i < CHANNEL_CONTROLS; i++) {
		list_init(&c->controls[i].link);
		c->controls[i].conn = c;
	}
}

static struct conn *conn_new(struct port *port, struct channel *ch, int64_t since_ms)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct sockaddr_storage address;

	if (!c)
		return NULL;
	c->server = port->server;
	c->port = port;
	c->channel = ch;
	c->since_ms = since_ms;
	c->step_ms = now_ms();
	if (channel_peer_address(ch, &address))
		address_network(&address, c->network);
	c->serial = ++c->server->nserials;
	init_requests(c);
	list_init(&c->link);
	list_add_tail(&c->server->conns, &c->all);
	c->server->nconns++;
	return c;
}

static void conn_free(struct conn *c)
{
	list_del(&c->all);
	c->server->nconns--;
	kept_values_drop_all(&c->kept);
	free(c->keys);
	free(c->status_text);
	free(c);
}

/* The next step is the peer's: its time begins, and those that wait for its place look again. */
static void step_is_due(struct conn *c)
{
	c->step_ms = now_ms();
	c->server->visitors_ms = 0;
}

static void unattached_del(struct conn *c)
{
	list_del(&c->link);
	c->server->nunattached--;
	c->server->visitors_ms = 0;
}

/* Its session, if any, goes on without it. */
static void conn_delete(struct conn *c)
{
	if (c->session || c->state == CONN_FENCING)
		list_del(&c->link);
	else
		unattached_del(c);
	c->server->refused += channel_refused(c->channel);
	if (c->has_proof)
		key_uses_end(&c->server->key_uses, &c->proof, now_ms());
	channel_delete(c->channel);
	conn_free(c);
}

bool conn_is_silent(const struct conn *c)
{
	for (unsigned i = 0; i < CHANNEL_CONTROLS; i++)
		if (c->controls[i].msg)
			return false;
	return true;
}

static bool waits_for(const struct conn *c, enum rpc_op op)
{
	for (unsigned i = 0; i < CHANNEL_CONTROLS; i++)
		if (c->controls[i].msg && c->controls[i].rpc.op == op)
			return true;
	return false;
}

bool conn_owes_step(const struct conn *c)
{
	return !c->auth_waits && !(c->attempt && attempt_is_posted(c->attempt)) &&
	       !waits_for(c, RPC_AUTH) && !waits_for(c, RPC_ATTACH);
}

bool conn_is_timed(const struct conn *c)
{
	return conn_is_stranger(c) ? !waits_for(c, RPC_ATTACH) : conn_is_silent(c);
}

bool conn_is_admin(const struct conn *c)
{
	uid_t uid;

	return channel_peer_uid(c->channel, &uid) && (uid == 0 || uid == geteuid());
}

void conn_drop_text(struct conn *c)
{
	free(c->status_text);
	c->status_text = NULL;
	c->status_len = 0;
}

bool conn_is_stranger(const struct conn *c)
{
	return transport_kind_of(c->port->transport) != TRANSPORT_SHM;
}

struct client_request *conn_find_request(struct conn *c, unsigned slot, uint64_t seq)
{
	unsigned i = slot - c->index * (unsigned)CHANNEL_SLOTS;
	struct client_request *req = i < CHANNEL_SLOTS ? &c->slots[i] : NULL;

	return req && req->msg && req->rpc.seq == seq ? req : NULL;
}

/* If too many channels have not attached, closes the oldest one that asks for nothing. */
static bool bound_unattached(struct server *s)
{
	if (s->nunattached < UNATTACHED_MAX)
		return true;
	list_for_each (pos, &s->unattached) {
		struct conn *c = list_entry(pos, struct conn, link);

		if (conn_is_silent(c)) {
			conn_breach(c, "too many channels have not attached");
			return true;
		}
	}
	return false;
}

void conn_admit(struct port *port, struct channel *ch, int64_t since_ms)
{
	static struct log_ratelimit limit = {.burst = STRANGERS_LOG_BURST};
	struct server *s = port->server;
	struct conn *c = bound_unattached(s) ? conn_new(port, ch, since_ms) : NULL;
	int err;

	if (!c) {
		if (log_ratelimit_ok(&limit, CONN_LOG_MS))
			log_warning("%s: refused: too many channels wait, or memory is short",
				channel_peer(ch));
		channel_reject(ch);
		return;
	}
	channel_set_user(ch, c);
	list_add_tail(&s->unattached, &c->link);
	s->nunattached++;
	err = channel_accept(ch);
	if (err) {
		if (log_ratelimit_ok(&limit, CONN_LOG_MS))
			log_warning("%s: can't accept: %s", channel_peer(ch), errno_text(err));
		unattached_del(c);
		conn_free(c);
		channel_reject(ch);
	}
}

void conn_attach(struct conn *c, struct client_session *session, uint16_t index)
{
	unattached_del(c);
	c->session = session;
	c->index = index;
	c->heard_ms = running_ms(c->server, now_ms());
	c->server->judge_ms = 0;
	list_add_tail(&session->conns, &c->link);
}

/* Its handshake ends with the AUTH that it would answer. */
static void drop_requests(struct conn *c)
{
	attempt_delete(c->attempt);
	c->attempt = NULL;
	c->auth_waits = false;
	for (unsigned i = 0; i < CHANNEL_SLOTS; i++)
		client_request_drop(&c->slots[i]);
	for (unsigned i = 0; i < CHANNEL_CONTROLS; i++)
		client_request_drop(&c->controls[i]);
}

/* The PING that a ring was to bring will not come, nor perhaps its answer: another channel has to
 * be rung. */
static void lose_news(struct conn *c)
{
	if (!c->session)
		return;
	c->server->events->news_lost(c->session);
	if (c->rung)
		c->session->ring_wanted = c->server->rings_wanted = true;
	c->rung = false;
}

void conn_disconnect(struct conn *c)
{
	if (c->state >= CONN_CLOSING)
		return;
	lose_news(c);
	drop_requests(c);
	c->state = CONN_CLOSING;
	step_is_due(c);
	channel_disconnect(c->channel);
}

void conn_fence(struct conn *c)
{
	int err;

	if (c->state == CONN_FENCING)
		return;
	lose_news(c);
	drop_requests(c);
	c->state = CONN_FENCING;
	if (!c->session) {
		unattached_del(c);
		list_init(&c->link);
	}
	err = channel_fence(c->channel);
	/* It stays with its session, whose pages are then never given to another one. */
	if (err)
		log_error("%s: can't fence: %s", channel_peer(c->channel), errno_text(err));
}

static struct log_fields fields_of(const struct conn *c, const char *event, const char *reason)
{
	struct log_fields fields = {
		.event = event,
		.key = c->has_proof ? c->proof.id : NULL,
		.peer = channel_peer(c->channel),
		.reason = reason,
	};

	if (c->session) {
		fields.export = c->session->export->name;
		fields.holder = c->session->stored.holder;
		fields.session = c->session->stored.id;
	}
	return fields;
}

static void tell_closed(const struct conn *c, enum log_level level, const char *reason)
{
	static struct log_ratelimit strangers = {.burst = STRANGERS_LOG_BURST};
	static struct log_ratelimit clients = {.burst = CLIENTS_LOG_BURST};
	struct log_fields fields = fields_of(c, "close", reason);

	if (!log_ratelimit_ok(c->session ? &clients : &strangers, CONN_LOG_MS))
		return;
	if (c->session)
		log_event(level, &fields, "%s: channel of session %llu at export '%s' closed: %s",
			fields.peer, (unsigned long long)fields.session, fields.export, reason);
	else
		log_event(level, &fields, "%s: channel closed: %s", fields.peer, reason);
}

void conn_breach(struct conn *c, const char *reason)
{
	if (c->state == CONN_FENCING)
		return;
	tell_closed(c, LOG_LEVEL_WARNING, reason);
	conn_fence(c);
}

static void conn_fenced(struct conn *c)
{
	struct server *s = c->server;
	struct client_session *session = c->session;
	bool process_gone = c->nkeys && channel_peer_pid(c->channel);
	struct lost_conn lost = {
		.index = c->index,
		.hung_up = c->hung_up,
		.process_gone = process_gone,
		.silent_ms = c->silent_ms,
	};

	if (process_gone && session)
		peers_forget(s, session->stored.id, channel_peer_pid(c->channel));
	conn_delete(c);
	if (session)
		s->events->channel_fenced(session, &lost);
	s->events->retry_attaches(s);
}

void conns_disconnect(struct server *s)
{
	list_for_each (pos, &s->conns)
		conn_disconnect(list_entry(pos, struct conn, all));
}

unsigned conns_open(const struct server *s)
{
	unsigned n = 0;

	list_for_each (pos, &s->conns)
		n += list_entry(pos, struct conn, all)->state != CONN_FENCING;
	return n;
}

void conns_delete(struct server *s)
{
	list_for_each_safe (pos, &s->conns) {
		struct conn *c = list_entry(pos, struct conn, all);

		if (c->state == CONN_FENCING)
			continue;
		drop_requests(c);
		conn_delete(c);
	}
}

int conn_ring(struct conn *c)
{
	void *buf;
	int err;

	assert(c->session && !c->rung);
	if (c->state != CONN_OPEN)
		return -ENOTCONN;
	buf = channel_send_buffer(c->channel);
	if (!buf)
		return -EAGAIN;
	err = channel_send(c->channel, buf, 0, SEND_IMM, RPC_RING);
	c->rung = !err;
	return err;
}

/* ---- requests -------------------------------------------------------------------------------- */

void client_request_drop(struct client_request *req)
{
	if (!req->msg)
		return;
	list_del(&req->link);
	req->conn->server->events->request_left(req);
	channel_recv_done(req->conn->channel, req->msg);
	req->msg = NULL;
	if (!req->conn->session && (req->rpc.op == RPC_AUTH || req->rpc.op == RPC_ATTACH))
		step_is_due(req->conn);
}

void client_request_reply(struct client_request *req, void *buf, uint32_t len)
{
	struct channel *ch = req->conn->channel;

	/* Gives the receive back before the reply can bring the next request. */
	client_request_drop(req);
	/* A channel that can't send ends with an event of its own. */
	channel_send(ch, buf, len, 0, 0);
	PROBE(rmemfs_server, request_reply, req, req->rpc.op, req->status, len);
}

void client_request_answer(struct client_request *req, struct rpc_reply *rep)
{
	struct conn *c = req->conn;
	void *buf = channel_send_buffer(c->channel);
	size_t len;
	int err;

	if (!buf) {
		conn_breach(c, "it does not take its replies");
		return;
	}
	req->status = rep->status;
	rep->op = req->rpc.op;
	rep->slot = req->rpc.slot;
	rep->seq = req->rpc.seq;
	err = rpc_reply_encode(rep, channel_version(c->channel), buf, RPC_MSG_BYTES, &len);
	if (err) {
		log_error("can't encode a reply to %s: %s", rpc_op_info(rep->op)->name,
			errno_text(err));
		channel_send_cancel(c->channel, buf);
		conn_fence(c);
		return;
	}
	client_request_reply(req, buf, (uint32_t)len);
}

/* An administrator who mistypes a name sees it at once. When a mount fails, perhaps nobody is there
 * to see it. */
static enum log_level refusal_level(unsigned op)
{
	bool at_terminal = op == RPC_WHO || op == RPC_SNAPSHOT || op == RPC_EVICT;

	return at_terminal ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING;
}

static void log_refusal(const struct client_request *req, const char *reason)
{
	const struct rpc_str *name = &req->rpc.attach.export_name;
	struct log_fields fields = fields_of(req->conn, "refuse", reason);
	char export[EXPORT_NAME_MAX + 1];

	/* This one was asked for. */
	if (req->rpc.op == RPC_ATTACH) {
		snprintf(export, sizeof(export), "%.*s", name->len, name->s);
		fields.export = export;
	}
	log_event(refusal_level(req->rpc.op), &fields, "%s: request '%s' is refused: %s",
		fields.peer, rpc_op_info(req->rpc.op)->name, reason);
}

void client_request_deny(struct client_request *req, int err, const char *log, const char *answer)
{
	static struct log_ratelimit limit = {.burst = STRANGERS_LOG_BURST};
	char text[RPC_TEXT_MAX + 1];
	struct rpc_reply rep = {.status = err};

	/* Before the answer: a user whose request was refused finds the reason here, too. */
	if (log && log_ratelimit_ok(&limit, CONN_LOG_MS))
		log_refusal(req, log);
	snprintf(text, sizeof(text), "%s", answer);
	printable_clean_string(text);
	rep.text = (struct rpc_str){text, (uint16_t)strlen(text)};
	client_request_answer(req, &rep);
}

static struct client_request *free_control(struct conn *c)
{
	for (unsigned i = 0; i < CHANNEL_CONTROLS; i++)
		if (!c->controls[i].msg)
			return &c->controls[i];
	return NULL;
}

/* The entry for the request. NULL, and in *breach why there is none. */
static struct client_request *place_request(
	struct conn *c, const struct rpc_request *rpc, const char **breach)
{
	struct client_session *session = c->session;
	unsigned slot;

	if (!rpc_op_info(rpc->op)->slotted) {
		struct client_request *req = free_control(c);

		*breach = "too many requests outside slots";
		return req;
	}
	if (!session) {
		*breach = "a request before it has attached";
		return NULL;
	}
	slot = rpc->slot - c->index * (unsigned)CHANNEL_SLOTS;
	if (slot >= CHANNEL_SLOTS) {
		*breach = "a slot of another channel";
		return NULL;
	}
	if (rpc->seq < session->last_seq[rpc->slot]) {
		*breach = "a sequence number of the past";
		return NULL;
	}
	*breach = "two requests in one slot";
	session->last_seq[rpc->slot] = rpc->seq;
	session->requests++;
	return c->slots[slot].msg ? NULL : &c->slots[slot];
}

static void receive(struct conn *c, const struct event *event)
{
	struct rpc_request rpc;
	struct client_request *req;
	const char *breach = "a malformed message";

	if (c->state == CONN_CLOSING) {
		channel_recv_done(c->channel, event->data);
		return;
	}
	if (rpc_request_decode(&rpc, channel_version(c->channel), event->data, event->len))
		req = NULL;
	else
		req = place_request(c, &rpc, &breach);
	if (!req) {
		channel_recv_done(c->channel, event->data);
		conn_breach(c, breach);
		return;
	}
	req->rpc = rpc;
	req->msg = event->data;
	req->reply = NULL;
	req->deadline_ms = req->held_ms = 0;
	hear(c);
	if (!c->session) {
		list_add_tail(&c->server->ready, &req->link);
		return;
	}
	PROBE(rmemfs_server, request_receive, req, c->session->stored.id, req->rpc.op,
		req->rpc.slot, req->rpc.seq);
	turns_add(c->session, req);
}

static void opened(struct conn *c)
{
	const struct channel_limits *limits = channel_limits(c->channel);

	if (c->state != CONN_OPENING)
		return;
	c->state = CONN_OPEN;
	if (limits->msg_bytes < RPC_MSG_BYTES)
		conn_breach(c, "its messages are too small");
	else if (limits->peer_nrecv < CHANNEL_SENDS)
		conn_breach(c, "it receives too few messages");
}

/* Logs the reason, if the end was not in order. A stranger may go as it came. */
static void tell_lost(const struct conn *c, int status)
{
	if (status == -EFAULT)
		c->server->look_ms = 0; /* see lost_memory.h */
	if (status == -EPROTO)
		tell_closed(c, LOG_LEVEL_WARNING, "what it sent is not our protocol");
	else if (status == -EACCES)
		tell_closed(c, LOG_LEVEL_WARNING, "it asked for memory that it has no right to");
	else if (status == -EBADMSG && !c->session)
		/* The end of a client that has not read our answer comes plain. */
		tell_closed(c, LOG_LEVEL_INFO,
			"its client went before it knew that its key is accepted, or somebody "
			"has come between");
	else if (status == -EBADMSG)
		tell_closed(c, LOG_LEVEL_WARNING,
			"bytes came that its client has not sent: somebody has come between");
	else if (status && c->session)
		tell_closed(c, LOG_LEVEL_INFO, errno_text(status));
}

/* When this process ends, peers can't reach memory through it any more: no fence is needed. */
static void closed(struct conn *c)
{
	if (!c->server->stopping) {
		conn_fence(c);
		return;
	}
	drop_requests(c);
	conn_delete(c);
}

void conn_event(struct conn *c, const struct event *event)
{
	if (event->type == EV_FENCED) {
		conn_fenced(c);
		return;
	}
	if (c->state == CONN_FENCING)
		return;
	switch (event->type) {
	case EV_OPEN:
		opened(c);
		break;
	case EV_RECV:
		receive(c, event);
		break;
	case EV_CLOSED:
		tell_lost(c, event->status);
		c->hung_up = event->hung_up;
		c->left = c->state == CONN_OPEN && !event->status;
		closed(c);
		break;
	case EV_INCOMING:
	case EV_DONE:
	case EV_FENCED:
		break;
	}
}
