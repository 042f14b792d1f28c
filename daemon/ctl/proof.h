/* proof.h - a channel that asks a server proves a key first, and has the server prove it.
 *
 * The same handshake as a mount's (common/auth/handshake.h). Until it has ended nothing else is
 * sent, so a server that does not have the key learns no question.
 *
 * OWNERSHIP  The caller deletes a proof, in whatever state it is. The channel copies its keys.
 * ERRORS     0 or -errno with a line in why. -EACCES: the server does not accept the key, or does
 *            not have it.
 */
#ifndef RMEMFS_DAEMON_CTL_PROOF_H
#define RMEMFS_DAEMON_CTL_PROOF_H

#include <stddef.h>

#include "common/auth/auth_key.h"
#include "common/transport/transport.h"

struct proof;

/* The key is copied. */
int proof_new(const struct auth_key *key, struct proof **out, char *why, size_t whylen);
/* NULL is ignored. */
void proof_delete(struct proof *p);

/* The channel is open: sends the first flight. */
int proof_begin(struct proof *p, struct channel *channel, char *why, size_t whylen);
/* Takes an answer to AUTH. 1: both sides have proven the key, and the channel is protected; 0: the
 * next flight was sent. */
int proof_take(struct proof *p, struct channel *channel, enum transport_kind kind,
	const struct event *event, char *why, size_t whylen);

#endif
