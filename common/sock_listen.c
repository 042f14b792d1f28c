/* sock_listen.c - see sock_listen.h. */
#include "common/sock_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "common/address.h"
#include "common/log.h"
#include "common/sock_unix.h"
#include "common/util.h"
#include "common/wire.h"

enum {
	BACKLOG = 1024,
	GUESTS_MAX = 1024,
	GUESTS_SHARE = 8, /* a listener's guests are at most one to so many descriptors */
	ACCEPTS_PER_POLL = 32,
};

/* ---- guests ---------------------------------------------------------------------------------- */

static void guest_delete(struct sock_guest *guest)
{
	list_del(&guest->node);
	guest->listener->nguests--;
	sock_source_fini(&guest->source);
	if (guest->fd >= 0)
		close(guest->fd);
	if (guest->pidfd >= 0)
		close(guest->pidfd);
	free(guest);
}

/* Looked up each time, since others may change the limit of a running process. */
static unsigned guests_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return GUESTS_MAX;
	return (unsigned)max_u64(1, min_u64(limit.rlim_cur / GUESTS_SHARE, GUESTS_MAX));
}

static bool drop_oldest_guest(struct sock_listener *l)
{
	if (list_empty(&l->guests))
		return false;
	guest_delete(list_entry(l->guests.next, struct sock_guest, node));
	return true;
}

/* Says why to a peer that speaks our protocol; others get a closed connection. */
static int check_hello(struct sock_guest *guest)
{
	static struct log_ratelimit limit;
	struct transport_hello peer, answer = {
					     .version = RMEMFS_WIRE_VERSION,
					     .status = -EPROTO,
				     };
	int err = transport_hello_decode(guest->hello, &peer);

	if (!err && peer.version == RMEMFS_WIRE_VERSION)
		return 0;
	if (!err)
		(void)sock_hello_send(guest->fd, &answer);
	if (log_ratelimit_ok(&limit, 1000)) {
		if (err)
			log_warning("a peer was refused: it does not speak our protocol");
		else
			log_warning("a peer was refused: protocol version %u, ours is %u",
				peer.version, RMEMFS_WIRE_VERSION);
	}
	return -EPROTO;
}

static int guest_poll(struct sock_source *s, struct event *events, int max)
{
	struct sock_guest *guest = container_of(s, struct sock_guest, source);
	struct sock_channel *ch = NULL;
	int ret = sock_hello_recv(guest->fd, guest->hello, &guest->hello_got);

	if (ret == 0)
		return 0;
	if (ret > 0 && !check_hello(guest)) {
		ret = guest->listener->admit(guest, &ch);
		if (ret)
			log_error("a peer was refused: %s", errno_text(ret));
	}
	guest_delete(guest);
	if (!ch)
		return 0;
	events[0] = sock_event(ch, EV_INCOMING, 0);
	return 1;
}

int sock_guest_move(struct sock_guest *guest, struct sock_channel *ch,
	const struct channel_limits *limits,
	int (*poll)(struct sock_source *s, struct event *events, int max))
{
	struct transport_address peer = {.addrlen = sizeof(peer.addr)};
	char text[100];
	int err;

	sock_source_unwatch(&guest->source);
	err = sock_channel_init(ch, guest->source.q, true, limits, poll);
	if (err)
		return err;
	memcpy(ch->hello, guest->hello, sizeof(ch->hello));
	peer.kind = ch->base.transport->ops->kind;
	if (peer.kind == TRANSPORT_SHM) {
		snprintf(ch->base.peer, sizeof(ch->base.peer), "shm pid %d", guest->pid);
	} else {
		getpeername(guest->fd, (struct sockaddr *)&peer.addr, &peer.addrlen);
		address_format(&peer, text, sizeof(text));
		snprintf(ch->base.peer, sizeof(ch->base.peer), "tcp %s", text);
	}
	ch->base.peer_pid = guest->pid;
	ch->fd = steal_fd(&guest->fd);
	return 0;
}

static int guest_identify(struct sock_guest *guest)
{
	int one = 1;

	if (guest->listener->base.q->transport->ops->kind == TRANSPORT_SHM)
		return sock_unix_peer(guest->fd, &guest->pid, &guest->pidfd);
	setsockopt(guest->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static void guest_new(struct sock_listener *l, int fd)
{
	static struct log_ratelimit limit;
	struct sock_guest *guest = calloc(1, sizeof(*guest));
	int err;

	if (!guest) {
		close(fd);
		return;
	}
	guest->listener = l;
	guest->fd = fd;
	guest->pidfd = -1;
	list_init(&guest->node);
	sock_source_init(&guest->source, l->source.q, guest_poll);
	l->nguests++;
	do
		err = guest_identify(guest);
	while ((err == -EMFILE || err == -ENFILE) && drop_oldest_guest(l));
	if (!err)
		err = sock_source_watch(&guest->source, fd, EPOLLIN);
	if (err) {
		if (log_ratelimit_ok(&limit, 1000))
			log_error("a connection was dropped: %s", errno_text(err));
		guest_delete(guest);
		return;
	}
	for (unsigned max = guests_max(); l->nguests > max;)
		if (!drop_oldest_guest(l))
			break;
	list_add_tail(&l->guests, &guest->node);
}

/* ---- listener -------------------------------------------------------------------------------- */

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Takes a connection off the queue by means of the spare descriptor and closes it, since one left
 * there would keep the listener ready for ever. */
static void refuse_one(struct sock_listener *l)
{
	static struct log_ratelimit limit;
	int fd;

	if (log_ratelimit_ok(&limit, 10000))
		log_error("connections are refused: out of file descriptors (RLIMIT_NOFILE)");
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	l->spare_fd = open_spare();
}

static bool accept_one(struct sock_listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		guest_new(l, fd);
		return true;
	}
	switch (errno) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
		if (!drop_oldest_guest(l))
			refuse_one(l);
		return true;
	default:
		/* The connection has failed already, or memory is short for the moment. */
		return errno == ECONNABORTED || errno == EINTR;
	}
}

static int listener_poll(struct sock_source *s, struct event *events, int max)
{
	struct sock_listener *l = container_of(s, struct sock_listener, source);

	for (int i = 0; i < ACCEPTS_PER_POLL; i++)
		if (!accept_one(l))
			break;
	return 0;
}

static int bind_inet(struct sock_listener *l)
{
	struct transport_address *address = &l->base.address;
	int one = 1;

	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l->fd, (struct sockaddr *)&address->addr, address->addrlen) < 0 ||
		getsockname(l->fd, (struct sockaddr *)&address->addr, &address->addrlen) < 0)
		return -errno;
	return 0;
}

static int listener_bind(struct sock_listener *l)
{
	int err;

	if (l->base.address.kind == TRANSPORT_SHM)
		err = sock_unix_bind(l->fd, &l->base.address, &l->dev, &l->ino);
	else
		err = bind_inet(l);
	if (err)
		return err;
	return listen(l->fd, BACKLOG) < 0 ? -errno : 0;
}

int sock_listen(struct evq *base, const struct transport_address *address, sock_admit_fn *admit,
	struct listener **out)
{
	int type = address->kind == TRANSPORT_SHM ? SOCK_SEQPACKET : SOCK_STREAM;
	struct sock_evq *q = container_of(base, struct sock_evq, base);
	struct sock_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->base.q = base;
	l->base.address = *address;
	l->admit = admit;
	list_init(&l->guests);
	sock_source_init(&l->source, q, listener_poll);
	l->spare_fd = open_spare();
	l->fd = socket(address->addr.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = l->fd < 0 ? -errno : listener_bind(l);
	if (!err)
		err = sock_source_watch(&l->source, l->fd, EPOLLIN);
	if (err) {
		sock_listener_delete(&l->base);
		return err;
	}
	*out = &l->base;
	return 0;
}

void sock_listener_delete(struct listener *base)
{
	struct sock_listener *l = container_of(base, struct sock_listener, base);

	while (drop_oldest_guest(l))
		continue;
	sock_source_fini(&l->source);
	if (l->ino)
		sock_unix_unbind(&base->address, l->dev, l->ino);
	if (l->fd >= 0)
		close(l->fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	free(l);
}
