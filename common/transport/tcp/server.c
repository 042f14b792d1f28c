/* server.c - the queue thread's side of a tcp server's channel. See internal.h. */
#include "common/transport/tcp/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"

/* ---- events ---------------------------------------------------------------------------------- */

static int take_received(struct tcp_server *ch, struct event *events, int max)
{
	int n = 0, err = 0;

	pthread_mutex_lock(&ch->lock);
	while (n < max && !err && !list_empty(&ch->received)) {
		struct sock_msg *msg = sock_msg_at(list_pop(&ch->received));

		events[n] = sock_event_message(&ch->sock, msg);
		err = tcp_messages_open(&ch->messages, &events[n], ch->sock.base.limits.msg_bytes);
		if (err)
			sock_pool_put(&ch->sock.recv, msg);
		else
			n++;
	}
	if (err)
		sock_channel_fail(&ch->sock, err);
	if (n < max && ch->closed)
		sock_channel_fail(&ch->sock, ch->closed_status);
	pthread_mutex_unlock(&ch->lock);
	return n;
}

static int server_poll(struct sock_source *s, struct event *events, int max)
{
	struct tcp_server *ch = container_of(s, struct tcp_server, sock.source);
	struct sock_channel *sock = &ch->sock;
	int n = 0;

	if (sock->phase == SOCK_ACCEPTED) {
		sock->phase = SOCK_OPEN;
		events[n++] = sock_event(sock, EV_OPEN, 0);
	}
	if (n < max && sock->phase == SOCK_OPEN)
		n += take_received(ch, events + n, max - n);
	if (n < max && sock->phase == SOCK_FAILED) {
		sock->phase = SOCK_OVER;
		events[n++] = sock_event_closed(sock);
	}
	if (ch->fencing && tcp_io_dropped(ch)) {
		ch->fencing = false;
		sock->phase = SOCK_FENCED;
	}
	if (n < max && sock->phase == SOCK_FENCED) {
		sock->phase = SOCK_OVER;
		events[n++] = sock_event(sock, EV_FENCED, 0);
	}
	if (n == max && sock->phase != SOCK_OVER)
		sock_source_pend(s);
	return n;
}

/* ---- life ------------------------------------------------------------------------------------ */

int tcp_admit(struct sock_guest *guest, struct sock_channel **out)
{
	struct tcp_server *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	err = sock_guest_move(guest, &ch->sock, &tcp_limits, server_poll);
	if (err) {
		free(ch);
		return err;
	}
	pthread_mutex_init(&ch->lock, NULL);
	list_init(&ch->drop);
	list_init(&ch->received);
	tcp_out_init(&ch->out);
	*out = &ch->sock;
	return 0;
}

static void server_free(struct tcp_server *ch)
{
	sock_channel_fini(&ch->sock);
	pthread_mutex_destroy(&ch->lock);
	free(ch->published);
	free(ch->ranges);
	free(ch->reply_iov);
	tcp_seal_out_fini(&ch->seal_out);
	tcp_seal_in_fini(&ch->seal_in);
	tcp_messages_fini(&ch->messages);
	explicit_bzero(&ch->key_in, sizeof(ch->key_in));
	free(ch);
}

static int server_open(struct tcp_server *ch)
{
	const struct transport_config *config = &ch->sock.base.transport->config;
	uint32_t nworks;
	int err = sock_channel_answer(&ch->sock);

	if (err)
		return err;
	nworks = ch->sock.base.limits.max_works_read;
	ch->published = calloc(config->max_regions, sizeof(*ch->published));
	ch->ranges = calloc(nworks, FRAME_RANGE_BYTES);
	ch->reply_iov = calloc(nworks + 1, sizeof(*ch->reply_iov));
	if (!ch->published || !ch->ranges || !ch->reply_iov)
		return -ENOMEM;
	return sock_channel_buffers(&ch->sock);
}

int tcp_accept(struct channel *base)
{
	struct tcp_server *ch = tcp_server_of(base);
	int err = server_open(ch);

	if (err) {
		/* The peer is gone already or sent nonsense; EV_CLOSED reports it. */
		sock_channel_fail(&ch->sock, err == -EPIPE ? -ECONNRESET : err);
		return 0;
	}
	ch->sock.phase = SOCK_ACCEPTED;
	sock_source_pend(&ch->sock.source);
	tcp_io_add(container_of(base->transport, struct tcp_transport, base), ch);
	return 0;
}

void tcp_reject(struct channel *base)
{
	struct tcp_server *ch = tcp_server_of(base);

	sock_channel_refuse(&ch->sock, -ECONNREFUSED);
	server_free(ch);
}

void tcp_server_disconnect(struct channel *base)
{
	struct tcp_server *ch = tcp_server_of(base);

	pthread_mutex_lock(&ch->lock);
	tcp_bye_piece(&ch->bye, &ch->bye_iov, ch->bye_header);
	tcp_output_add_locked(ch, &ch->bye);
	ch->bye_sent = true;
	pthread_mutex_unlock(&ch->lock);
	if (ch->io)
		tcp_output_once(ch);
}

int tcp_fence(struct channel *base)
{
	struct tcp_server *ch = tcp_server_of(base);

	if (!ch->io) {
		ch->sock.phase = SOCK_FENCED;
		sock_source_pend(&ch->sock.source);
		return 0;
	}
	ch->sock.phase = SOCK_OVER;
	ch->fencing = true;
	tcp_io_drop(ch);
	return 0;
}

void tcp_server_delete(struct channel *base)
{
	struct tcp_server *ch = tcp_server_of(base);

	if (ch->io && !tcp_io_dropped(ch)) {
		tcp_io_drop(ch);
		tcp_io_wait_dropped(ch);
	}
	server_free(ch);
}

/* ---- keys ------------------------------------------------------------------------------------ */

int tcp_publish(struct channel *base, struct region *r, unsigned access, struct region_key *key)
{
	struct tcp_server *ch = tcp_server_of(base);
	uint32_t n = ch->npublished, rkey;
	int err;

	if (ch->sock.phase != SOCK_OPEN)
		return -ENOTCONN;
	for (uint32_t i = 0; i < n; i++)
		if (ch->published[i].region == r)
			return -EEXIST;
	if (n == base->transport->config.max_regions)
		return -ENOSPC;
	err = sock_make_rkey(n, &rkey);
	if (err)
		return err;
	ch->published[n] = (struct tcp_published){.region = r, .rkey = rkey, .access = access};
	atomic_store_explicit(&ch->npublished, n + 1, memory_order_release);
	*key = (struct region_key){.len = r->len, .rkey = rkey, .access = access};
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

void *tcp_server_send_buffer(struct tcp_server *ch)
{
	struct sock_msg *msg;

	pthread_mutex_lock(&ch->lock);
	msg = sock_pool_get(&ch->sock.send);
	pthread_mutex_unlock(&ch->lock);
	return msg ? msg->data : NULL;
}

void tcp_server_send_cancel(struct tcp_server *ch, void *buf)
{
	pthread_mutex_lock(&ch->lock);
	sock_pool_put(&ch->sock.send, sock_msg_of(buf));
	pthread_mutex_unlock(&ch->lock);
}

int tcp_server_send(struct tcp_server *ch, struct sock_msg *msg)
{
	if (ch->sock.phase != SOCK_OPEN) {
		tcp_server_send_cancel(ch, msg->data);
		return -ENOTCONN;
	}
	pthread_mutex_lock(&ch->lock);
	tcp_output_add_locked(ch, &msg->piece);
	pthread_mutex_unlock(&ch->lock);
	tcp_output_once(ch);
	return 0;
}

void tcp_server_recv_done(struct tcp_server *ch, const void *data)
{
	pthread_mutex_lock(&ch->lock);
	sock_pool_put(&ch->sock.recv, sock_msg_of(data));
	if (ch->sock.stalled) {
		/* The I/O thread has read the header that waits for a buffer already, so the socket
		 * need not become readable. EPOLLOUT makes the thread go on. */
		ch->sock.stalled = false;
		ch->sock.blocked = true;
		tcp_watch_locked(ch);
	}
	pthread_mutex_unlock(&ch->lock);
}

/* ---- protection ------------------------------------------------------------------------------ */

/* A client's user need not see it. */
static void tell_no_kernel(void)
{
	static struct log_ratelimit limit;

	if (log_ratelimit_ok(&limit, 3600 * 1000))
		log_info("the kernel has no TLS for sockets, so this process protects the bytes "
			 "over tcp, which takes more CPU time: modprobe tls");
}

/* The peer sends nothing before our answer has come, which is protected. The answer goes out only
 * when the I/O thread has taken the key: see send_some_locked(). So the peer's next byte is read by
 * it. A message that has come already is not the peer's. */
int tcp_server_protect(struct tcp_server *ch, unsigned directions, const struct channel_keys *keys)
{
	int err = 0;

	if (ch->sock.phase != SOCK_OPEN)
		return -ENOTCONN;
	pthread_mutex_lock(&ch->lock);
	if (directions & PROTECT_IN && !list_empty(&ch->received))
		err = -EPROTO;
	if (!err && directions & PROTECT_OUT && (!list_empty(&ch->out.pieces) || ch->sending))
		err = -EPROTO;
	if (!err && ch->sock.base.messages_only) {
		err = tcp_messages_begin(&ch->messages, directions, &keys->server, &keys->client);
		directions = 0;
	}
	if (!err && directions & PROTECT_OUT)
		err = tcp_seal_out_begin(&ch->seal_out, ch->sock.fd, &keys->server);
	if (!err && directions & PROTECT_IN) {
		ch->key_in = keys->client;
		ch->protect_in = true;
	}
	pthread_mutex_unlock(&ch->lock);
	if (!err && ch->seal_out.kind == TCP_SEAL_USER)
		tell_no_kernel();
	return err;
}
