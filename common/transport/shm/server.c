/* server.c - the server's side of a shm channel. It sends keys as descriptors. A mapping can't be
 * revoked, so fencing waits for the end of the peer's process. */
#include "common/transport/shm/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/util.h"

static int server_poll(struct sock_source *s, struct event *events, int max)
{
	struct shm_channel *ch = container_of(s, struct shm_channel, sock.source);
	struct sock_channel *sock = &ch->sock;
	struct sock_msg *msg;
	int n = 0, fd;

	if (sock->phase == SOCK_ACCEPTED) {
		sock->phase = SOCK_OPEN;
		events[n++] = sock_event(sock, EV_OPEN, 0);
	}
	if (sock->phase == SOCK_OPEN && sock->blocked)
		shm_link_flush(ch);
	while (n < max && sock->phase == SOCK_OPEN && shm_link_recv(ch, &msg, &fd))
		events[n++] = sock_event_message(sock, msg);
	if (n < max && sock->phase == SOCK_FAILED) {
		sock->phase = SOCK_OVER;
		events[n++] = sock_event_closed(sock);
	}
	if (n < max && sock->phase == SOCK_FENCED) {
		sock->phase = SOCK_OVER;
		events[n++] = sock_event(sock, EV_FENCED, 0);
	}
	if (n == max && sock->phase != SOCK_OVER)
		sock_source_pend(s);
	return n;
}

static int process_poll(struct sock_source *s, struct event *events, int max)
{
	struct shm_channel *ch = container_of(s, struct shm_channel, process);

	sock_source_unwatch(s);
	ch->sock.phase = SOCK_OVER;
	events[0] = sock_event(&ch->sock, EV_FENCED, 0);
	return 1;
}

int shm_admit(struct sock_guest *guest, struct sock_channel **out)
{
	struct shm_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	shm_channel_init(ch);
	err = sock_guest_move(guest, &ch->sock, &shm_limits, server_poll);
	if (err) {
		free(ch);
		return err;
	}
	sock_source_init(&ch->process, ch->sock.source.q, process_poll);
	ch->pidfd = steal_fd(&guest->pidfd);
	shm_link_make_room(ch->sock.fd, ch->sock.base.transport->config.msg_bytes);
	*out = &ch->sock;
	return 0;
}

static int server_open(struct shm_channel *ch)
{
	int err = sock_channel_answer(&ch->sock);

	if (err)
		return err;
	err = sock_channel_buffers(&ch->sock);
	if (err)
		return err;
	return sock_pool_init(
		&ch->keys, ch->sock.base.transport->config.max_regions, sizeof(struct shm_key));
}

int shm_accept(struct channel *base)
{
	struct shm_channel *ch = shm_channel_of(base);
	int err = server_open(ch);

	if (err) {
		/* The peer is gone already or sent nonsense; EV_CLOSED reports it. */
		sock_channel_fail(&ch->sock, err == -EPIPE ? -ECONNRESET : err);
		return 0;
	}
	ch->sock.phase = SOCK_ACCEPTED;
	sock_channel_watch(&ch->sock);
	sock_source_pend(&ch->sock.source);
	return 0;
}

void shm_reject(struct channel *base)
{
	struct shm_channel *ch = shm_channel_of(base);

	sock_channel_refuse(&ch->sock, -ECONNREFUSED);
	shm_server_fini(ch);
	sock_channel_fini(&ch->sock);
	free(ch);
}

static struct shm_key *key_at(struct shm_channel *ch, uint32_t i)
{
	struct sock_msg *msg = (struct sock_msg *)(ch->keys.memory + ch->keys.stride * i);

	return (struct shm_key *)msg->data;
}

int shm_publish(struct channel *base, struct region *r, unsigned access, struct region_key *key)
{
	struct shm_channel *ch = shm_channel_of(base);
	int fd = access & REGION_WRITE ? r->fd : r->rofd;
	struct sock_msg *msg;
	uint32_t rkey;
	int err;

	if (ch->sock.phase != SOCK_OPEN)
		return -ENOTCONN;
	if (fd < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < ch->keys.fresh; i++)
		if (key_at(ch, i)->region == r)
			return -EEXIST;
	err = sock_make_rkey(ch->keys.fresh, &rkey);
	if (err)
		return err;
	msg = sock_pool_get(&ch->keys);
	if (!msg)
		return -ENOSPC;
	*(struct shm_key *)msg->data = (struct shm_key){.region = r, .fd = fd};
	msg->frame = (struct sock_frame){
		.type = FRAME_REGION, .arg = access, .rkey = rkey, .len = r->len};
	shm_link_send(ch, msg);
	*key = (struct region_key){.len = r->len, .rkey = rkey, .access = access};
	return 0;
}

int shm_fence(struct channel *base)
{
	struct shm_channel *ch = shm_channel_of(base);

	if (ch->keys.fresh) {
		int err = sock_source_watch(&ch->process, ch->pidfd, EPOLLIN);

		if (err)
			return err;
	}
	sock_source_unwatch(&ch->sock.source);
	shutdown(ch->sock.fd, SHUT_RDWR);
	ch->sock.phase = ch->keys.fresh ? SOCK_OVER : SOCK_FENCED;
	sock_source_pend(&ch->sock.source);
	return 0;
}

/* Behaves as if the process had ended. */
void shm_fence_at_once(struct channel *base)
{
	struct shm_channel *ch = shm_channel_of(base);

	if (ch->process.fd >= 0)
		sock_source_pend(&ch->process);
}

void shm_server_fini(struct shm_channel *ch)
{
	sock_source_fini(&ch->process);
	if (ch->pidfd >= 0)
		close(ch->pidfd);
	sock_pool_fini(&ch->keys);
}
