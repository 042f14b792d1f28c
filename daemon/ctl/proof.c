/* proof.c - see proof.h. */
#include "daemon/ctl/proof.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/auth/handshake.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/rpc/rpc.h"

static_assert(RPC_AUTH_FLIGHT_MAX == (int)HANDSHAKE_FLIGHT_MAX, "a flight is one message");

struct proof {
	struct handshake_context *context;
	struct handshake *handshake; /* NULL: it has ended */
	struct channel_keys keys;
	char id[AUTH_KEY_ID_MAX + 1];
	char fingerprint[AUTH_KEY_FINGERPRINT_BYTES];
};

int proof_new(const struct auth_key *key, struct proof **out, char *why, size_t whylen)
{
	struct proof *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		snprintf(why, whylen, "out of memory");
		return -ENOMEM;
	}
	snprintf(p->id, sizeof(p->id), "%s", key->id);
	err = handshake_context_new(HANDSHAKE_CLIENT, &p->context, why, whylen);
	if (err)
		goto err_delete;
	err = auth_key_fingerprint(key, p->fingerprint);
	if (!err)
		err = handshake_client_new(p->context, key, &p->handshake);
	if (err) {
		snprintf(why, whylen, "the handshake can't begin: %s", errno_text(err));
		goto err_delete;
	}
	*out = p;
	return 0;

err_delete:
	proof_delete(p);
	return err;
}

void proof_delete(struct proof *p)
{
	if (!p)
		return;
	handshake_delete(p->handshake);
	handshake_context_delete(p->context);
	explicit_bzero(p, sizeof(*p));
	free(p);
}

static int send_flight(struct channel *channel, uint8_t step, const uint8_t *flight, size_t n)
{
	const struct rpc_request req = {.op = RPC_AUTH,
		.slot = RPC_NO_SLOT,
		.auth = {.step = step, .tail = {flight, (uint32_t)n}}};
	void *buf = channel_send_buffer(channel);
	size_t len;
	int err;

	if (!buf)
		return -EPROTO;
	err = rpc_request_encode(&req, buf, channel_limits(channel)->msg_bytes, &len);
	if (err) {
		channel_send_cancel(channel, buf);
		return err;
	}
	return channel_send(channel, buf, (uint32_t)len, 0, 0);
}

/* -EACCES: the peer's flight does not prove the key. */
static int next_flight(
	struct proof *p, struct channel *channel, uint8_t step, const struct rpc_tail *in)
{
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	if (handshake_step(p->handshake, in->data, in->len, flight, sizeof(flight), &len) ==
		HANDSHAKE_REFUSED)
		return -EACCES;
	return send_flight(channel, step, flight, len);
}

static int fails(int err, char *why, size_t whylen)
{
	snprintf(why, whylen, "the handshake fails: %s", errno_text(err));
	return err;
}

int proof_begin(struct proof *p, struct channel *channel, char *why, size_t whylen)
{
	int err = next_flight(p, channel, 1, &(struct rpc_tail){0});

	return err ? fails(err, why, whylen) : 0;
}

/* The server's flight proves the key. Ours is the channel's last plain message. */
static int take_flight(struct proof *p, struct channel *channel, enum transport_kind kind,
	const struct rpc_tail *flight, char *why, size_t whylen)
{
	int err = next_flight(p, channel, 2, flight);

	if (err == -EACCES) {
		snprintf(why, whylen,
			"the server does not prove that it has key %s: it is another server, or "
			"somebody has come between",
			p->id);
		return err;
	}
	if (!err)
		err = handshake_keys(p->handshake, channel_client_hello(channel),
			channel_server_hello(channel), (uint8_t)kind, &p->keys);
	if (!err)
		err = channel_protect(channel, PROTECT_IN, &p->keys);
	handshake_delete(p->handshake);
	p->handshake = NULL;
	return err ? fails(err, why, whylen) : 0;
}

int proof_take(struct proof *p, struct channel *channel, enum transport_kind kind,
	const struct event *event, char *why, size_t whylen)
{
	struct rpc_reply rep;
	int err = rpc_reply_decode(&rep, event->data, event->len);

	if (err || rep.op != RPC_AUTH) {
		snprintf(why, whylen,
			"the server's answer is malformed: install the same release on both machines");
		return -EPROTO;
	}
	if (rep.status) {
		snprintf(why, whylen,
			"the server does not accept key %s (fingerprint %s): its log says why",
			p->id, p->fingerprint);
		return -EACCES;
	}
	if (p->handshake)
		return take_flight(p, channel, kind, &rep.auth.tail, why, whylen);
	err = channel_protect(channel, PROTECT_OUT, &p->keys);
	explicit_bzero(&p->keys, sizeof(p->keys));
	return err ? fails(err, why, whylen) : 1;
}
