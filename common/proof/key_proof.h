/* key_proof.h - a client's side of the handshake on a channel: it proves a key to the server, and
 * has the server prove it.
 *
 * It carries the flights of common/auth/handshake.h in AUTH messages, and protects the channel
 * (rpc/README.md has the order of messages). The caller picks the key, sends, and receives. Until
 * key_proof_answered() gives 1 it sends nothing else, so that a server without the key learns
 * nothing.
 *
 * OWNERSHIP  The caller's, zeroed at first. key_proof_forget() ends it in any state.
 * THREADS    That of the channel.
 * ERRORS     0 or -errno, with a line in why. -EACCES: the server does not accept the key, or does
 *            not have it. Others: of `send`, or of OpenSSL.
 */
#ifndef RMEMFS_COMMON_PROOF_KEY_PROOF_H
#define RMEMFS_COMMON_PROOF_KEY_PROOF_H

#include <stddef.h>

#include "common/auth/auth_key.h"
#include "common/auth/handshake.h"
#include "common/rpc/rpc.h"
#include "common/transport/transport.h"

/* Sends a request on the channel: 0 or -errno. */
typedef int key_proof_send(void *user, const struct rpc_request *req);

/* The channel that the proof is for. */
struct key_proof_channel {
	struct channel *channel;
	enum transport_kind kind;
	key_proof_send *send;
	void *user;         /* of send */
	const char *server; /* for texts */
};

struct key_proof {
	struct handshake *handshake; /* NULL: none, or over */
	struct channel_keys *keys;   /* between the last flight and its answer */
	char id[AUTH_KEY_ID_MAX + 1];
	char fingerprint[AUTH_KEY_FINGERPRINT_BYTES];
};

/* Sends the first flight. The key is copied. */
int key_proof_begin(struct key_proof *p, struct handshake_context *context,
	const struct auth_key *key, const struct key_proof_channel *on, char *why, size_t whylen);

/* Takes a reply to AUTH. 1: both sides have proven the key, and the channel is protected; 0: the
 * next flight was sent. */
int key_proof_answered(struct key_proof *p, const struct key_proof_channel *on,
	const struct rpc_reply *rep, char *why, size_t whylen);

void key_proof_forget(struct key_proof *p);

#endif
