/* key_proof.c - see key_proof.h. */
#include "common/proof/key_proof.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/nodump.h"
#include "common/base/util.h"

static_assert(RPC_AUTH_FLIGHT_MAX == (int)HANDSHAKE_FLIGHT_MAX, "a flight is one message");

/* Runs a step of the handshake, and sends the flight that it gives. */
static int next_flight(struct key_proof *p, const struct key_proof_channel *on, uint8_t step,
	const struct rpc_tail *in)
{
	struct rpc_request req = {.op = RPC_AUTH, .slot = RPC_NO_SLOT};
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	if (handshake_step(p->handshake, in->data, in->len, flight, sizeof(flight), &len) ==
		HANDSHAKE_REFUSED)
		return -EACCES;
	req.auth = (struct rpc_auth){.step = step, .tail = {flight, (uint32_t)len}};
	return on->send(on->user, &req);
}

int key_proof_begin(struct key_proof *p, struct handshake_context *context,
	const struct auth_key *key, const struct key_proof_channel *on, char *why, size_t whylen)
{
	int err = auth_key_fingerprint(key, p->fingerprint);

	snprintf(p->id, sizeof(p->id), "%s", key->id);
	if (!err)
		err = handshake_client_new(context, key, &p->handshake);
	if (!err)
		err = next_flight(p, on, 1, &(struct rpc_tail){0});
	if (err)
		snprintf(why, whylen, "the handshake with %s can't begin: %s", on->server,
			errno_text(err));
	return err;
}

static int fails(int err, const struct key_proof_channel *on, char *why, size_t whylen)
{
	snprintf(why, whylen, "the handshake with %s fails: %s", on->server, errno_text(err));
	return err;
}

/* The server's flight proves the key. Ours is the channel's last plain message. */
static int take_flight(struct key_proof *p, const struct key_proof_channel *on,
	const struct rpc_tail *flight, char *why, size_t whylen)
{
	int err = next_flight(p, on, 2, flight);

	if (err == -EACCES) {
		snprintf(why, whylen,
			"%s does not prove that it has key %s: it is another server, or somebody "
			"has come between",
			on->server, p->id);
		return err;
	}
	if (!err) {
		p->keys = nodump_zalloc(sizeof(*p->keys));
		err = p->keys ? 0 : -ENOMEM;
	}
	if (!err)
		err = handshake_keys(p->handshake, channel_client_hello(on->channel),
			channel_server_hello(on->channel), (uint8_t)on->kind, p->keys);
	if (!err)
		err = channel_protect(on->channel, PROTECT_IN, p->keys);
	handshake_delete(p->handshake);
	p->handshake = NULL;
	return err ? fails(err, on, why, whylen) : 0;
}

int key_proof_answered(struct key_proof *p, const struct key_proof_channel *on,
	const struct rpc_reply *rep, char *why, size_t whylen)
{
	int err;

	if (rep->status) {
		snprintf(why, whylen,
			"%s does not accept key %s (fingerprint %s): its log says why", on->server,
			p->id, p->fingerprint);
		return -EACCES;
	}
	if (p->handshake)
		return take_flight(p, on, &rep->auth.tail, why, whylen);
	err = channel_protect(on->channel, PROTECT_OUT, p->keys);
	key_proof_forget(p);
	return err ? fails(err, on, why, whylen) : 1;
}

void key_proof_forget(struct key_proof *p)
{
	handshake_delete(p->handshake);
	p->handshake = NULL;
	if (p->keys)
		explicit_bzero(p->keys, sizeof(*p->keys));
	nodump_free(steal_ptr(&p->keys));
}
