/* shm.c - the shm transport's table. See internal.h. */
#include "common/transport/shm/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static int shm_open_transport(const struct transport_address *address,
	const struct transport_config *config, int timeout_ms, struct transport **out)
{
	struct transport *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->config = *config;
	err = shm_link_clip(&t->config.msg_bytes);
	if (err) {
		free(t);
		return err;
	}
	*out = t;
	return 0;
}

static void shm_close(struct transport *t)
{
	free(t);
}

static int shm_buffer_register(struct transport *t, void *addr, size_t len, struct buffer **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void shm_buffer_deregister(struct buffer *b)
{
	free(b);
}

static int shm_region_register(
	struct transport *t, int fd, int rofd, void *addr, uint64_t len, struct region **out)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size < len)
		return -EINVAL;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void shm_region_deregister(struct region *r)
{
	free(r);
}

static int shm_listen(struct evq *q, const struct transport_address *address, struct listener **out)
{
	return sock_listen(q, address, shm_admit, out);
}

static void shm_disconnect(struct channel *base)
{
	struct shm_channel *ch = shm_channel_of(base);

	/* Still connecting: nothing in flight can be lost. */
	if (ch->sock.phase == SOCK_GREETING)
		sock_channel_fail(&ch->sock, 0);
	ch->bye_due = true;
	if (ch->sock.phase == SOCK_OPEN || ch->sock.phase == SOCK_ACCEPTED)
		shm_link_flush(ch);
}

static void shm_delete(struct channel *base)
{
	struct shm_channel *ch = shm_channel_of(base);

	if (base->server)
		shm_server_fini(ch);
	else
		shm_client_fini(ch);
	sock_channel_fini(&ch->sock);
	free(ch);
}

static int shm_send(struct channel *base, void *buf, uint32_t len, unsigned flags, uint32_t imm)
{
	struct shm_channel *ch = shm_channel_of(base);
	struct sock_msg *msg = sock_msg_of(buf);

	if (ch->sock.phase != SOCK_OPEN) {
		sock_channel_send_cancel(base, buf);
		return -ENOTCONN;
	}
	sock_message_frame(msg, len, flags, imm);
	shm_link_send(ch, msg);
	return 0;
}

const struct transport_ops shm_transport_ops = {
	.kind = TRANSPORT_SHM,
	.open = shm_open_transport,
	.close = shm_close,
	.buffer_register = shm_buffer_register,
	.buffer_deregister = shm_buffer_deregister,
	.region_register = shm_region_register,
	.region_deregister = shm_region_deregister,
	.evq_new = sock_evq_new,
	.evq_delete = sock_evq_delete,
	.evq_poll = sock_evq_poll,
	.evq_pending = sock_evq_pending,
	.evq_fd = sock_evq_fd,
	.evq_arm = sock_evq_arm,
	.probe = sock_probe,
	.listen = shm_listen,
	.listener_delete = sock_listener_delete,
	.connect = shm_connect,
	.accept = shm_accept,
	.reject = shm_reject,
	.disconnect = shm_disconnect,
	.delete = shm_delete,
	.fence = shm_fence,
	.fence_at_once = shm_fence_at_once,
	.send_buffer = sock_channel_send_buffer,
	.send_cancel = sock_channel_send_cancel,
	.send = shm_send,
	.recv_done = sock_channel_recv_done,
	.publish = shm_publish,
	.set_key = shm_set_key,
	.post = shm_post,
	.mapped = shm_mapped,
};
