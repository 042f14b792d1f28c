/* channel.h - the common part of the channels of both socket transports: the descriptor, the hello,
 * the message buffers, and the watching in the event queue.
 *
 * THREADS    The queue's thread.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_CHANNEL_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_CHANNEL_H

#include "common/transport/sock/evq.h"
#include "common/transport/sock/pool.h"

enum sock_phase {
	SOCK_INCOMING, /* server: EV_INCOMING was given */
	SOCK_GREETING, /* client: connect(2) and hello in progress */
	SOCK_ACCEPTED, /* server: EV_OPEN is due */
	SOCK_OPEN,
	SOCK_FAILED, /* EV_CLOSED is due */
	SOCK_FENCED, /* EV_FENCED is due */
	SOCK_OVER,
};

struct sock_channel {
	struct channel base;
	struct sock_source source;
	enum sock_phase phase;
	int fd;
	int status;   /* of SOCK_FAILED */
	bool stalled; /* no message buffer is free, so nothing is read */
	bool blocked; /* the socket is full: wait for room */
	struct sock_pool send, recv;
	uint8_t hello[TRANSPORT_HELLO_BYTES]; /* the peer's, as it comes in */
	uint32_t hello_got;
	bool hello_sent;
};

static inline struct sock_channel *sock_channel_of(struct channel *ch)
{
	return container_of(ch, struct sock_channel, base);
}

/* limits: of the kind; the sizes that the peers settle are set later. */
int sock_channel_init(struct sock_channel *ch, struct sock_evq *q, bool server,
	const struct channel_limits *limits,
	int (*poll)(struct sock_source *s, struct event *events, int max));
/* Closes the descriptor and frees the buffers. */
void sock_channel_fini(struct sock_channel *ch);

/* Client: starts to connect. sock_channel_greet() tells later how that went. */
int sock_channel_connect(struct sock_channel *ch, const struct transport_address *address);
/* Client: goes on connecting. 1: the hellos are exchanged and settled; 0: not yet; or -errno. */
int sock_channel_greet(struct sock_channel *ch);

/* Server: settles what the peer's hello asks for, and answers it. */
int sock_channel_answer(struct sock_channel *ch);
void sock_channel_refuse(struct sock_channel *ch, int status);

/* The room for the seal of a message, where messages alone are protected. */
enum { SOCK_SEAL_BYTES = 24 };

/* The longest message as it is sent. */
static inline uint32_t sock_channel_msg_bytes(const struct sock_channel *ch)
{
	return ch->base.limits.msg_bytes + (ch->base.messages_only ? SOCK_SEAL_BYTES : 0);
}

/* Allocates the message buffers; after the settling. */
int sock_channel_buffers(struct sock_channel *ch);

/* Watches for the events that stalled and blocked still allow. */
void sock_channel_watch(struct sock_channel *ch);

/* The connection can't be used any more: EV_CLOSED with this status follows. The first call
 * counts. */
void sock_channel_fail(struct sock_channel *ch, int status);

static inline struct event sock_event(struct sock_channel *ch, enum event_type type, int status)
{
	return (struct event){.type = type, .status = status, .channel = &ch->base};
}
/* EV_CLOSED, with the channel's status. */
struct event sock_event_closed(struct sock_channel *ch);
struct event sock_event_message(struct sock_channel *ch, struct sock_msg *msg);

/* Fills the frame of a message to be sent. */
void sock_message_frame(struct sock_msg *msg, uint32_t len, unsigned flags, uint32_t imm);

/* Members of the table for channels whose pools only the queue's thread uses. */
void *sock_channel_send_buffer(struct channel *base);
void sock_channel_send_cancel(struct channel *base, void *buf);
void sock_channel_recv_done(struct channel *base, const void *data);

/* A key for the region published as the index-th: half its place, half random, so that a channel's
 * key works on another channel only by chance. */
int sock_make_rkey(uint32_t index, uint32_t *rkey);

/* A status that a peer sent, by hello or BYE; -EPROTO if it is none. */
int sock_peer_status(int32_t status);

/* Sends a whole hello on a fresh socket, whose buffer is empty. */
int sock_hello_send(int fd, const struct transport_hello *hello);
/* Reads the available bytes of a hello. 1: whole; 0: not yet; or -errno. */
int sock_hello_recv(int fd, uint8_t hello[TRANSPORT_HELLO_BYTES], uint32_t *got);

#endif
