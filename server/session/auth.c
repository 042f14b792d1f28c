/* auth.c - see auth.h. */
#include "server/session/auth.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/access/authenticator.h"

static_assert(RPC_AUTH_FLIGHT_MAX == (int)HANDSHAKE_FLIGHT_MAX, "a flight is one message");

bool auth_is_proving(const struct conn *c)
{
	return c->attempt || c->auth_waits;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Why the peer may not send this AUTH now; NULL: it may. */
static const char *out_of_turn(const struct conn *c, uint8_t step)
{
	if (c->session)
		return "a key that is proven after it has attached";
	if (c->has_proof)
		return "a second key";
	if (c->auth_waits || (c->attempt && attempt_is_posted(c->attempt)))
		return "a flight of the handshake before the last one was answered";
	if (step != (c->attempt ? 2 : 1))
		return "a flight of the handshake that is not due";
	return NULL;
}

static void post_flight(struct client_request *req)
{
	const struct rpc_auth *auth = &req->rpc.auth;
	struct conn *c = req->conn;
	struct attempt_channel channel = {
		.client_hello = channel_client_hello(c->channel),
		.server_hello = channel_server_hello(c->channel),
		.kind = (uint8_t)transport_kind_of(c->port->transport),
	};
	int err = 0;

	if (!c->attempt)
		err = attempt_new(c->server->authenticator, &channel, c, &c->attempt);
	if (err)
		conn_breach(c, "no memory for its handshake");
	else
		attempt_post(c->attempt, auth->tail.data, auth->tail.len);
}

/* Whether the handshake may begin now. Over shm the peer is root or the server's user. */
static bool may_begin(const struct conn *c, int64_t now, int64_t *again_ms)
{
	struct sockaddr_storage address;

	return !channel_peer_address(c->channel, &address) ||
	       auth_budget_take(&c->server->auth_budget, &address, now, again_ms);
}

int64_t auth_tick(struct server *s, int64_t now)
{
	int64_t next = INT64_MAX, again_ms;

	list_for_each_safe (pos, &s->auth_waiting) {
		struct client_request *req = list_entry(pos, struct client_request, link);

		if (!may_begin(req->conn, now, &again_ms)) {
			next = again_ms < next ? again_ms : next;
			continue;
		}
		list_del(&req->link);
		req->conn->auth_waits = false;
		post_flight(req);
	}
	return next == INT64_MAX ? -1 : next;
}

void auth_request(struct client_request *req)
{
	struct conn *c = req->conn;
	const char *breach = out_of_turn(c, req->rpc.auth.step);
	int64_t again_ms;

	if (breach) {
		conn_breach(c, breach);
	} else if (c->attempt || may_begin(c, now_ms(), &again_ms)) {
		post_flight(req);
	} else {
		c->auth_waits = true;
		list_del(&req->link);
		list_add_tail(&c->server->auth_waiting, &req->link);
	}
}

/* ---- results --------------------------------------------------------------------------------- */

static struct client_request *find_control(struct conn *c, unsigned op)
{
	for (unsigned i = 0; i < CHANNEL_CONTROLS; i++)
		if (c->controls[i].msg && c->controls[i].rpc.op == op)
			return &c->controls[i];
	return NULL;
}

static void forget_attempt(struct conn *c)
{
	attempt_delete(c->attempt);
	c->attempt = NULL;
}

static void proven(struct conn *c, struct client_request *req)
{
	struct sockaddr_storage address;
	int err = channel_protect(c->channel, PROTECT_IN | PROTECT_OUT, attempt_keys(c->attempt));

	if (err) {
		conn_breach(c, err == -EPROTO ? "bytes behind its handshake that are not protected"
					      : errno_text(err));
		return;
	}
	c->proof = *attempt_proof(c->attempt);
	c->has_proof = true;
	key_uses_begin(&c->server->key_uses, &c->proof, now_ms());
	c->server->visitors_ms = 0; /* its place is free */
	forget_attempt(c);
	if (channel_peer_address(c->channel, &address))
		auth_budget_give_back(&c->server->auth_budget, &address, now_ms());
	client_request_answer(req, &(struct rpc_reply){0});
}

/* For the log: one line for many refusals of one peer. NULL: not now. */
static const char *note_refusal(const struct conn *c, char *buf, size_t len)
{
	struct refusal refusal = {0};
	uint64_t untold;

	snprintf(refusal.key, sizeof(refusal.key), "%s",
		attempt_offered_id(c->attempt, &refusal.known));
	snprintf(refusal.reason, sizeof(refusal.reason), "%s", attempt_refusal(c->attempt));
	if (!refusals_add(
		    &c->server->refusals, &refusal, channel_peer(c->channel), now_ms(), &untold))
		return NULL;
	if (!untold)
		return attempt_refusal(c->attempt);
	snprintf(buf, len, "%s (and %" PRIu64 " times since the last such line)",
		attempt_refusal(c->attempt), untold);
	return buf;
}

static void refused(struct conn *c, struct client_request *req)
{
	char line[320];

	client_request_deny(req, -EACCES, note_refusal(c, line, sizeof(line)), "not accepted");
	forget_attempt(c);
	/* The answer still goes out. */
	conn_disconnect(c);
}

static void step_ended(struct conn *c)
{
	struct client_request *req = find_control(c, RPC_AUTH);
	struct rpc_reply rep = {0};
	size_t len;

	switch (attempt_state(c->attempt)) {
	case HANDSHAKE_MORE:
		rep.auth.tail.data = attempt_flight(c->attempt, &len);
		rep.auth.tail.len = (uint32_t)len;
		client_request_answer(req, &rep);
		break;
	case HANDSHAKE_DONE:
		proven(c, req);
		break;
	case HANDSHAKE_REFUSED:
		refused(c, req);
		break;
	}
}

void auth_event(struct server *s)
{
	struct attempt *at;

	authenticator_clear(s->authenticator);
	while ((at = authenticator_take(s->authenticator)))
		step_ended(attempt_user(at));
	/* Those that succeeded have left room. */
	auth_tick(s, now_ms());
}
