/* messages.h - the messages of a tcp channel that protects nothing else: sealed one by one, as over
 * verbs (common/auth/sealed.h). READs, WRITEs and frames are plain.
 *
 * THREADS    The queue's thread.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TCP_MESSAGES_H
#define RMEMFS_COMMON_TRANSPORT_TCP_MESSAGES_H

#include "common/auth/sealed.h"
#include "common/transport/transport.h"

struct tcp_messages {
	bool seals_out, seals_in;
	struct sealed_out out;
	struct sealed_in in;
};

/* The keys of this side: what it sends, and what comes. -ENOMEM, -EIO. */
int tcp_messages_begin(struct tcp_messages *m, unsigned directions, const struct direction_key *out,
	const struct direction_key *in);
void tcp_messages_fini(struct tcp_messages *m);

/* Seals the message in place, if that has begun; *len grows. Messages are sent as they were sealed.
 * Errors of sealed.h. */
int tcp_messages_seal(struct tcp_messages *m, void *data, uint32_t *len, const uint32_t *imm);
/* Opens the event's message in place, if that has begun. -EBADMSG: the peer has not sent it here;
 * -EPROTO: it is longer than `max`. */
int tcp_messages_open(struct tcp_messages *m, struct event *event, uint32_t max);

bool tcp_messages_worn(const struct tcp_messages *m);

#endif
