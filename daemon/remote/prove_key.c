/* prove_key.c - see prove_key.h. */
#include "daemon/remote/prove_key.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/auth/auth_key_file.h"
#include "common/auth/handshake.h"
#include "common/base/log.h"
#include "common/base/util.h"

static_assert(RPC_AUTH_FLIGHT_MAX == (int)HANDSHAKE_FLIGHT_MAX, "a flight is one message");

/* Runs a step of the handshake, and sends the flight that it gives. */
static int next_flight(struct remote *r, uint8_t step, const struct rpc_tail *in)
{
	struct rpc_request req = {.op = RPC_AUTH, .slot = RPC_NO_SLOT};
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	if (handshake_step(r->proof.handshake, in->data, in->len, flight, sizeof(flight), &len) ==
		HANDSHAKE_REFUSED)
		return -EACCES;
	req.auth = (struct rpc_auth){.step = step, .tail = {flight, (uint32_t)len}};
	return remote_channel_send(r, &req);
}

static int begin_with(struct remote *r, const struct auth_key *key, char *why, size_t whylen)
{
	struct session *s = r->session;
	int err = auth_key_fingerprint(key, r->proof.fingerprint);

	snprintf(r->proof.id, sizeof(r->proof.id), "%s", key->id);
	if (!err)
		err = handshake_client_new(s->handshakes, key, &r->proof.handshake);
	if (!err)
		err = next_flight(r, 1, &(struct rpc_tail){0});
	if (err)
		snprintf(why, whylen, "the handshake with %s can't begin: %s", s->server,
			errno_text(err));
	return err;
}

int prove_key_begin(struct remote *r, char *why, size_t whylen)
{
	struct auth_key_file file = {0};
	int err = auth_key_file_read(r->session->key_file, &file, why, whylen);

	prove_key_forget(r);
	if (!err) {
		r->proof.nkeys = (unsigned)file.n;
		if (r->proof.at >= file.n)
			r->proof.at = 0;
		err = begin_with(r, &file.v[r->proof.at], why, whylen);
	}
	auth_key_file_free(&file);
	return err;
}

/* The next connection tries the next key. */
static int refused(struct remote *r)
{
	r->proof.nrefused++;
	r->proof.at++;
	return -EACCES;
}

static int not_accepted(struct remote *r, char *why, size_t whylen)
{
	snprintf(why, whylen, "%s does not accept key %s (fingerprint %s): its log says why",
		r->session->server, r->proof.id, r->proof.fingerprint);
	return refused(r);
}

/* The peer that answered does not have the key. */
static int not_proven(struct remote *r, char *why, size_t whylen)
{
	snprintf(why, whylen,
		"%s does not prove that it has key %s: it is another server, or somebody has come "
		"between",
		r->session->server, r->proof.id);
	return refused(r);
}

/* The server's flight proves the key. Ours is the channel's last plain message. */
static int take_flight(struct remote *r, const struct rpc_tail *flight, char *why, size_t whylen)
{
	int err = next_flight(r, 2, flight);

	if (err == -EACCES)
		return not_proven(r, why, whylen);
	if (!err)
		err = handshake_keys(r->proof.handshake, channel_client_hello(r->ch),
			channel_server_hello(r->ch),
			(uint8_t)transport_kind_of(r->session->transport), &r->proof.keys);
	if (!err)
		err = channel_protect(r->ch, PROTECT_IN, &r->proof.keys);
	if (err)
		snprintf(why, whylen, "%s: the handshake fails: %s", r->session->server,
			errno_text(err));
	handshake_delete(r->proof.handshake);
	r->proof.handshake = NULL;
	return err;
}

int prove_key_answered(struct remote *r, const struct rpc_reply *rep, char *why, size_t whylen)
{
	int err;

	if (rep->status)
		return not_accepted(r, why, whylen);
	if (r->proof.handshake)
		return take_flight(r, &rep->auth.tail, why, whylen);
	err = channel_protect(r->ch, PROTECT_OUT, &r->proof.keys);
	prove_key_forget(r);
	if (!err)
		return 1;
	snprintf(why, whylen, "%s: the handshake fails: %s", r->session->server, errno_text(err));
	return err;
}

void prove_key_forget(struct remote *r)
{
	handshake_delete(r->proof.handshake);
	r->proof.handshake = NULL;
	explicit_bzero(&r->proof.keys, sizeof(r->proof.keys));
}

bool prove_key_has_more(const struct remote *r)
{
	return r->proof.nrefused < r->proof.nkeys;
}

void prove_key_accepted(struct remote *r)
{
	r->proof.nrefused = 0;
}
