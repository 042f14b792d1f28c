/* tcp.c - the tcp transport's table. See internal.h. */
#include "common/transport/tcp/internal.h"

#include <errno.h>
#include <stdlib.h>

const struct channel_limits tcp_limits = {
	.max_sge_read = 256,
	.max_sge_write = 256,
	.max_work_bytes = 1U << 30,
};

static int tcp_open(const struct transport_address *address, const struct transport_config *config,
	int timeout_ms, struct transport **out)
{
	struct tcp_transport *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->base.config = *config;
	pthread_mutex_init(&t->lock, NULL);
	*out = &t->base;
	return 0;
}

static struct tcp_transport *transport_of(struct transport *base)
{
	return container_of(base, struct tcp_transport, base);
}

static void tcp_close(struct transport *base)
{
	struct tcp_transport *t = transport_of(base);

	tcp_io_stop(t);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static int tcp_buffer_register(struct transport *t, void *addr, size_t len, struct buffer **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void tcp_buffer_deregister(struct buffer *b)
{
	free(b);
}

static int tcp_region_register(
	struct transport *t, int fd, int rofd, void *addr, uint64_t len, struct region **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void tcp_region_deregister(struct region *r)
{
	free(r);
}

static int tcp_listen(struct evq *q, const struct transport_address *address, struct listener **out)
{
	int err = tcp_io_start(transport_of(q->transport));

	return err ? err : sock_listen(q, address, tcp_admit, out);
}

static void tcp_disconnect(struct channel *base)
{
	if (base->server)
		tcp_server_disconnect(base);
	else
		tcp_client_disconnect(base);
}

static void tcp_delete(struct channel *base)
{
	if (base->server)
		tcp_server_delete(base);
	else
		tcp_client_delete(base);
}

static void *tcp_send_buffer(struct channel *base)
{
	if (base->server)
		return tcp_server_send_buffer(tcp_server_of(base));
	return sock_channel_send_buffer(base);
}

static void tcp_send_cancel(struct channel *base, void *buf)
{
	if (base->server)
		tcp_server_send_cancel(tcp_server_of(base), buf);
	else
		sock_channel_send_cancel(base, buf);
}

static int tcp_send(struct channel *base, void *buf, uint32_t len, unsigned flags, uint32_t imm)
{
	struct tcp_messages *messages =
		base->server ? &tcp_server_of(base)->messages : &tcp_client_of(base)->messages;
	struct sock_msg *msg = sock_msg_of(buf);
	int err = tcp_messages_seal(messages, buf, &len, flags & SEND_IMM ? &imm : NULL);

	if (err) {
		tcp_send_cancel(base, buf);
		sock_channel_fail(sock_channel_of(base), err);
		return err;
	}
	sock_message_frame(msg, len, flags, imm);
	sock_msg_seal(msg, len);
	if (base->server)
		return tcp_server_send(tcp_server_of(base), msg);
	return tcp_client_send(tcp_client_of(base), msg);
}

static void tcp_recv_done(struct channel *base, const void *data)
{
	if (base->server)
		tcp_server_recv_done(tcp_server_of(base), data);
	else
		sock_channel_recv_done(base, data);
}

static int tcp_protect(struct channel *base, unsigned directions, const struct channel_keys *keys)
{
	if (base->server)
		return tcp_server_protect(tcp_server_of(base), directions, keys);
	return tcp_client_protect(tcp_client_of(base), directions, keys);
}

static bool tcp_worn(const struct channel *base)
{
	return tcp_client_worn(container_of(base, struct tcp_client, sock.base));
}

const struct transport_ops tcp_transport_ops = {
	.kind = TRANSPORT_TCP,
	.open = tcp_open,
	.close = tcp_close,
	.buffer_register = tcp_buffer_register,
	.buffer_deregister = tcp_buffer_deregister,
	.region_register = tcp_region_register,
	.region_deregister = tcp_region_deregister,
	.evq_new = sock_evq_new,
	.evq_delete = sock_evq_delete,
	.evq_poll = sock_evq_poll,
	.evq_pending = sock_evq_pending,
	.evq_fd = sock_evq_fd,
	.evq_arm = sock_evq_arm,
	.probe = sock_probe,
	.listen = tcp_listen,
	.listener_delete = sock_listener_delete,
	.connect = tcp_connect,
	.accept = tcp_accept,
	.reject = tcp_reject,
	.disconnect = tcp_disconnect,
	.delete = tcp_delete,
	.fence = tcp_fence,
	.send_buffer = tcp_send_buffer,
	.send_cancel = tcp_send_cancel,
	.send = tcp_send,
	.recv_done = tcp_recv_done,
	.publish = tcp_publish,
	.post = tcp_post,
	.post_piped = tcp_post_piped,
	.pipe = tcp_client_pipe,
	.protect = tcp_protect,
	.protection = CHANNEL_ALL,
	.worn = tcp_worn,
};
