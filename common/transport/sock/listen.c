/* listen.c - see listen.h. */
#include "common/transport/sock/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/log.h"
#include "common/transport/sock/unix.h"
#include "common/base/util.h"

enum { BACKLOG = 1024, ACCEPTS_PER_POLL = 32 };

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Accepts a connection by means of the spare descriptor and closes it, since one left in the queue
 * would keep the listener ready for ever. */
static void refuse_one(struct sock_listener *l)
{
	static struct log_ratelimit limit;
	int fd;

	if (log_ratelimit_ok(&limit, 10000))
		log_error("connections are refused: out of file descriptors: raise RLIMIT_NOFILE "
			  "(LimitNOFILE= or ulimit -n)");
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	l->spare_fd = open_spare();
}

static bool accept_one(struct sock_listener *l)
{
	struct transport_address peer = {.addrlen = sizeof(peer.addr)};
	int fd = accept4(
		l->fd, (struct sockaddr *)&peer.addr, &peer.addrlen, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		sock_guest_new(&l->guests, fd, &peer);
		return true;
	}
	switch (errno) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
		if (!sock_guests_drop_oldest(&l->guests))
			refuse_one(l);
		return true;
	default:
		/* The connection has failed already, or memory is short for now. */
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

/* *address becomes the bound one. */
static int bind_inet(int fd, struct transport_address *address)
{
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address->addr, address->addrlen) < 0 ||
		getsockname(fd, (struct sockaddr *)&address->addr, &address->addrlen) < 0)
		return -errno;
	return 0;
}

/* A bound socket that does not listen keeps nobody from using the address. */
int sock_probe(struct transport *t, const struct transport_address *address)
{
	struct transport_address bound = *address;
	autoclose int fd = -1;

	(void)t;
	if (address->kind == TRANSPORT_SHM)
		return sock_unix_probe(address);
	fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : bind_inet(fd, &bound);
}

static int listener_bind(struct sock_listener *l)
{
	int err;

	if (l->base.address.kind == TRANSPORT_SHM)
		err = sock_unix_bind(l->fd, &l->base.address, &l->dev, &l->ino);
	else
		err = bind_inet(l->fd, &l->base.address);
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
	sock_source_init(&l->source, q, listener_poll);
	l->spare_fd = open_spare();
	err = sock_guests_init(&l->guests, q, admit);
	l->fd = socket(address->addr.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!err)
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

	sock_guests_fini(&l->guests);
	sock_source_fini(&l->source);
	if (l->ino)
		sock_unix_unbind(&base->address, l->dev, l->ino);
	if (l->fd >= 0)
		close(l->fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	free(l);
}
