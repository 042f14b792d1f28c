/* channel.c - see channel.h. */
#include "common/transport/sock/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/un.h>

#include "common/transport/address.h"

int sock_channel_init(struct sock_channel *ch, struct sock_evq *q, bool server,
	const struct channel_limits *limits,
	int (*poll)(struct sock_source *s, struct event *events, int max))
{
	int err = channel_base_init(
		&ch->base, &q->base, server, server ? CH_INCOMING : CH_CONNECTING);

	if (err)
		return err;
	ch->base.limits = *limits;
	ch->phase = server ? SOCK_INCOMING : SOCK_GREETING;
	ch->fd = -1;
	sock_source_init(&ch->source, q, poll);
	return 0;
}

void sock_channel_fini(struct sock_channel *ch)
{
	sock_source_fini(&ch->source);
	if (ch->fd >= 0)
		close(ch->fd);
	sock_pool_fini(&ch->send);
	sock_pool_fini(&ch->recv);
	channel_base_fini(&ch->base);
}

int sock_channel_buffers(struct sock_channel *ch)
{
	const struct transport_config *config = &ch->base.transport->config;
	int err = sock_pool_init(&ch->send, config->nsend, sock_channel_msg_bytes(ch));

	if (err)
		return err;
	return sock_pool_init(&ch->recv, config->nrecv, sock_channel_msg_bytes(ch));
}

void sock_channel_watch(struct sock_channel *ch)
{
	uint32_t interest = (ch->stalled ? 0 : EPOLLIN) | (ch->blocked ? EPOLLOUT : 0);
	int err;

	/* Epoll reports a peer that hung up whatever the interest is, so a stalled source is not
	 * watched. */
	if (!interest) {
		sock_source_unwatch(&ch->source);
		return;
	}
	err = sock_source_watch(&ch->source, ch->fd, interest);
	if (err)
		sock_channel_fail(ch, err);
}

void sock_channel_fail(struct sock_channel *ch, int status)
{
	if (ch->phase >= SOCK_FAILED)
		return;
	ch->phase = SOCK_FAILED;
	ch->status = status;
	sock_source_unwatch(&ch->source);
	sock_source_pend(&ch->source);
}

struct event sock_event_closed(struct sock_channel *ch)
{
	struct event event = sock_event(ch, EV_CLOSED, ch->status);

	event.hung_up = ch->base.server && ch->status == -ECONNRESET;
	return event;
}

struct event sock_event_message(struct sock_channel *ch, struct sock_msg *msg)
{
	struct event event = sock_event(ch, EV_RECV, 0);

	event.data = msg->data;
	event.len = (uint32_t)msg->frame.len;
	event.has_imm = msg->frame.flags & FRAME_IMM;
	event.imm = msg->frame.arg;
	return event;
}

void sock_message_frame(struct sock_msg *msg, uint32_t len, unsigned flags, uint32_t imm)
{
	msg->frame = (struct sock_frame){.type = FRAME_MESSAGE, .len = len};
	if (flags & SEND_IMM) {
		msg->frame.flags = FRAME_IMM;
		msg->frame.arg = imm;
	}
}

void *sock_channel_send_buffer(struct channel *base)
{
	struct sock_msg *msg = sock_pool_get(&sock_channel_of(base)->send);

	return msg ? msg->data : NULL;
}

void sock_channel_send_cancel(struct channel *base, void *buf)
{
	sock_pool_put(&sock_channel_of(base)->send, sock_msg_of(buf));
}

void sock_channel_recv_done(struct channel *base, const void *data)
{
	struct sock_channel *ch = sock_channel_of(base);

	sock_pool_put(&ch->recv, sock_msg_of(data));
	if (!ch->stalled)
		return;
	ch->stalled = false;
	if (ch->phase != SOCK_OPEN)
		return;
	sock_channel_watch(ch);
	/* A frame may be waiting in our own buffers, which the socket does not know. */
	sock_source_pend(&ch->source);
}

int sock_make_rkey(uint32_t index, uint32_t *rkey)
{
	uint16_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	*rkey = (uint32_t)random << 16 | index;
	return 0;
}

int sock_peer_status(int32_t status)
{
	switch (status) {
	case 0:
	case -EACCES:
	case -ECONNREFUSED:
	case -ENOMEM:
	case -EPROTO:
		return status;
	default:
		return -EPROTO;
	}
}

/* ---- hello ----------------------------------------------------------------------------------- */

int sock_hello_send(int fd, const struct transport_hello *hello)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES];
	ssize_t n;

	transport_hello_encode(hello, bytes);
	n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	return n == sizeof(bytes) ? 0 : -ECONNRESET;
}

int sock_hello_recv(int fd, uint8_t hello[TRANSPORT_HELLO_BYTES], uint32_t *got)
{
	ssize_t n = recv(fd, hello + *got, TRANSPORT_HELLO_BYTES - *got, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	*got += (uint32_t)n;
	return *got == TRANSPORT_HELLO_BYTES;
}

static struct transport_hello hello_of(const struct sock_channel *ch)
{
	const struct transport_config *config = &ch->base.transport->config;

	return (struct transport_hello){
		.version = ch->base.version,
		.msg_bytes = config->msg_bytes,
		.nrecv = config->nrecv,
		.nwork = config->nwork,
	};
}

static int send_hello(struct sock_channel *ch, const struct transport_hello *ours)
{
	uint8_t bytes[TRANSPORT_HELLO_BYTES];

	transport_hello_encode(ours, bytes);
	channel_keep_hello(&ch->base, ch->base.server, bytes);
	return sock_hello_send(ch->fd, ours);
}

static int sock_channel_settle(struct sock_channel *ch, const struct transport_hello *peer)
{
	const struct transport_config *config = &ch->base.transport->config;
	struct channel_limits *limits = &ch->base.limits;

	if (!peer->msg_bytes || !peer->nrecv || !peer->nwork)
		return -EPROTO;
	limits->msg_bytes = (uint32_t)min_u64(config->msg_bytes, peer->msg_bytes);
	limits->peer_nrecv = peer->nrecv;
	limits->max_works_read = (uint32_t)min_u64(config->nwork, peer->nwork);
	limits->max_works_write = limits->max_works_read;
	return 0;
}

int sock_channel_answer(struct sock_channel *ch)
{
	struct transport_hello peer, ours = hello_of(ch);
	int err = transport_hello_decode(ch->hello, &peer);

	if (!err)
		err = sock_channel_settle(ch, &peer);
	if (err)
		return err;
	ch->base.messages_only = peer.flags & HELLO_MESSAGES_ONLY &&
				 ch->base.transport->ops->protection == CHANNEL_ALL;
	ours.flags = ch->base.messages_only ? HELLO_MESSAGES_ONLY : 0;
	ours.msg_bytes = ch->base.limits.msg_bytes;
	ours.nwork = ch->base.limits.max_works_read;
	channel_keep_hello(&ch->base, false, ch->hello);
	return send_hello(ch, &ours);
}

void sock_channel_refuse(struct sock_channel *ch, int status)
{
	struct transport_hello ours = hello_of(ch);

	ours.status = status;
	/* If the answer can't be sent, nothing changes for us. */
	(void)sock_hello_send(ch->fd, &ours);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int connect_status(int error)
{
	switch (error) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
	case EADDRNOTAVAIL: /* no address of ours is ready yet, or no port is free */
		return -EHOSTUNREACH;
	default:
		return -error;
	}
}

static void name_peer(struct sock_channel *ch, const struct transport_address *address)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	char text[100];

	if (address->kind == TRANSPORT_SHM) {
		if (!getsockopt(ch->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
			ch->base.peer_pid = cred.pid;
		snprintf(ch->base.peer, sizeof(ch->base.peer), "shm pid %d", ch->base.peer_pid);
		return;
	}
	address_format(address, text, sizeof(text));
	snprintf(ch->base.peer, sizeof(ch->base.peer), "tcp %s", text);
}

int sock_channel_connect(struct sock_channel *ch, const struct transport_address *address)
{
	int type = address->kind == TRANSPORT_SHM ? SOCK_SEQPACKET : SOCK_STREAM;
	int one = 1, err;

	ch->fd = socket(address->addr.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ch->fd < 0)
		return -errno;
	if (type == SOCK_STREAM)
		setsockopt(ch->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(ch->fd, (const struct sockaddr *)&address->addr, address->addrlen) < 0 &&
		errno != EINPROGRESS) {
		sock_channel_fail(ch, connect_status(errno));
		return 0;
	}
	name_peer(ch, address);
	ch->blocked = true;
	err = sock_source_watch(&ch->source, ch->fd, EPOLLOUT);
	if (!err)
		sock_source_pend(&ch->source);
	return err;
}

/* Returns 1 when connected and our hello is out. */
static int greet_first(struct sock_channel *ch)
{
	struct transport_hello ours = hello_of(ch);
	struct sockaddr_storage peer;
	socklen_t len = sizeof(int);
	int error, err;

	ours.flags = ch->base.asks_messages_only ? HELLO_MESSAGES_ONLY : 0;
	if (getsockopt(ch->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	if (error)
		return connect_status(error);
	len = sizeof(peer);
	if (getpeername(ch->fd, (struct sockaddr *)&peer, &len) < 0)
		return errno == ENOTCONN ? 0 : -errno;
	err = send_hello(ch, &ours);
	if (err)
		return err == -EPIPE ? -ECONNRESET : err;
	ch->hello_sent = true;
	ch->blocked = false;
	sock_channel_watch(ch);
	return 1;
}

int sock_channel_greet(struct sock_channel *ch)
{
	const struct transport_config *config = &ch->base.transport->config;
	struct transport_hello peer;
	int ret;

	if (!ch->hello_sent) {
		ret = greet_first(ch);
		if (ret <= 0)
			return ret;
	}
	ret = sock_hello_recv(ch->fd, ch->hello, &ch->hello_got);
	if (ret <= 0)
		return ret;
	ret = transport_hello_decode(ch->hello, &peer);
	if (ret)
		return ret;
	channel_keep_hello(&ch->base, true, ch->hello);
	ch->base.peer_version = peer.version;
	if (peer.status)
		return sock_peer_status(peer.status);
	if (peer.version != ch->base.version || peer.msg_bytes > config->msg_bytes ||
		peer.nwork > config->nwork)
		return -EPROTO;
	ch->base.messages_only = ch->base.asks_messages_only && peer.flags & HELLO_MESSAGES_ONLY;
	ret = sock_channel_settle(ch, &peer);
	return ret ? ret : 1;
}
