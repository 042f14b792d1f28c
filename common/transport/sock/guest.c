/* guest.c - see guest.h. */
#include "common/transport/sock/guest.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include "common/transport/address.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/sock/unix.h"
#include "common/base/util.h"

enum {
	GUESTS_MAX = 1024,
	GUESTS_SHARE = 8, /* a listener has at most one guest per so many descriptors */
	GUEST_MS = 10000,
	LOG_MS = 1000, /* between two lines of a kind, so that no peer can fill the log */
};

static enum transport_kind sock_guest_kind_of(const struct sock_guest *guest)
{
	return guest->guests->q->base.transport->ops->kind;
}

static void format_peer(const struct sock_guest *guest, char *buf, size_t len)
{
	char text[100];

	if (sock_guest_kind_of(guest) == TRANSPORT_SHM) {
		snprintf(buf, len, "shm pid %d", guest->pid);
		return;
	}
	address_format(&guest->peer, text, sizeof(text));
	snprintf(buf, len, "tcp %s", text);
}

static void guest_delete(struct sock_guest *guest)
{
	list_del(&guest->node);
	guest->guests->n--;
	sock_source_fini(&guest->source);
	if (guest->fd >= 0)
		close(guest->fd);
	if (guest->pidfd >= 0)
		close(guest->pidfd);
	free(guest);
}

static struct sock_guest *oldest_guest(struct sock_guests *guests)
{
	if (list_empty(&guests->list))
		return NULL;
	return list_entry(guests->list.next, struct sock_guest, node);
}

/* ---- time and number ------------------------------------------------------------------------- */

/* One timer serves all: guests expire in the order they came. */
static void set_timer(struct sock_guests *guests)
{
	struct sock_guest *oldest = oldest_guest(guests);
	int64_t left = oldest ? oldest->since_ms + GUEST_MS - now_ms() : 0;
	struct itimerspec spec = {0};

	if (oldest) {
		left = left > 0 ? left : 1;
		spec.it_value.tv_sec = left / 1000;
		spec.it_value.tv_nsec = left % 1000 * 1000000;
	}
	timerfd_settime(guests->timer_fd, 0, &spec, NULL);
}

static int timer_poll(struct sock_source *s, struct event *events, int max)
{
	struct sock_guests *guests = container_of(s, struct sock_guests, timer);
	static struct log_ratelimit limit;
	struct sock_guest *guest;
	uint64_t expirations;
	char peer[128];

	(void)!read(guests->timer_fd, &expirations, sizeof(expirations));
	while ((guest = oldest_guest(guests)) && now_ms() >= guest->since_ms + GUEST_MS) {
		format_peer(guest, peer, sizeof(peer));
		if (log_ratelimit_ok(&limit, LOG_MS))
			log_warning("%s: connection closed: it said nothing for %d s", peer,
				GUEST_MS / 1000);
		guest_delete(guest);
	}
	set_timer(guests);
	return 0;
}

/* Reads the limit each time, since others may change that of a running process. */
static unsigned guests_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return GUESTS_MAX;
	return (unsigned)max_u64(1, min_u64(limit.rlim_cur / GUESTS_SHARE, GUESTS_MAX));
}

bool sock_guests_drop_oldest(struct sock_guests *guests)
{
	static struct log_ratelimit limit;
	struct sock_guest *guest = oldest_guest(guests);
	char peer[128];

	if (!guest)
		return false;
	format_peer(guest, peer, sizeof(peer));
	if (log_ratelimit_ok(&limit, LOG_MS))
		log_warning("%s: connection closed: too many others wait, and it has said nothing",
			peer);
	guest_delete(guest);
	return true;
}

int sock_guests_init(struct sock_guests *guests, struct sock_evq *q, sock_admit_fn *admit)
{
	guests->q = q;
	guests->admit = admit;
	list_init(&guests->list);
	sock_source_init(&guests->timer, q, timer_poll);
	guests->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (guests->timer_fd < 0)
		return -errno;
	return sock_source_watch(&guests->timer, guests->timer_fd, EPOLLIN);
}

void sock_guests_fini(struct sock_guests *guests)
{
	struct sock_guest *guest;

	while ((guest = oldest_guest(guests)))
		guest_delete(guest);
	sock_source_fini(&guests->timer);
	if (guests->timer_fd >= 0)
		close(guests->timer_fd);
}

/* ---- hello ----------------------------------------------------------------------------------- */

/* Tells a peer that speaks our protocol why it is refused; others get a closed connection. */
static int check_hello(struct sock_guest *guest)
{
	static struct log_ratelimit strangers, versions = {.burst = HELLO_LOG_BURST};
	struct transport_hello answer = {.status = -EPROTO};
	char peer[128], why[HELLO_WHY_BYTES];
	int err = transport_hello_judge(guest->hello, &answer.version, why);
	bool is_version = err == -EPROTONOSUPPORT;

	guest->version = answer.version;
	if (!err)
		return 0;
	/* Log before the answer, so that a refused peer's user finds the reason here, too. */
	if (log_ratelimit_ok(
		    is_version ? &versions : &strangers, is_version ? HELLO_LOG_MS : LOG_MS)) {
		format_peer(guest, peer, sizeof(peer));
		log_warning("%s: refused: %s", peer, why);
	}
	if (is_version)
		(void)sock_hello_send(guest->fd, &answer);
	return -EPROTO;
}

static int sock_guest_admit(struct sock_guest *guest, struct sock_channel **out)
{
	static struct log_ratelimit limit;
	int err = check_hello(guest);
	char peer[128];

	if (err)
		return err;
	err = guest->guests->admit(guest, out);
	if (err && log_ratelimit_ok(&limit, LOG_MS)) {
		format_peer(guest, peer, sizeof(peer));
		log_error("%s: refused: %s", peer, errno_text(err));
	}
	return err;
}

static int guest_poll(struct sock_source *s, struct event *events, int max)
{
	struct sock_guest *guest = container_of(s, struct sock_guest, source);
	struct sock_channel *ch = NULL;
	int ret = sock_hello_recv(guest->fd, guest->hello, &guest->hello_got);

	if (ret == 0)
		return 0;
	/* The peer and the log have got a refusal already. */
	if (ret > 0)
		sock_guest_admit(guest, &ch);
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
	int err;

	sock_source_unwatch(&guest->source);
	err = sock_channel_init(ch, guest->source.q, true, limits, poll);
	if (err)
		return err;
	memcpy(ch->hello, guest->hello, sizeof(ch->hello));
	ch->base.version = guest->version;
	format_peer(guest, ch->base.peer, sizeof(ch->base.peer));
	ch->base.peer_address = guest->peer.addr;
	ch->base.peer_pid = guest->pid;
	ch->base.peer_uid_known = sock_guest_kind_of(guest) == TRANSPORT_SHM;
	ch->base.peer_uid = guest->uid;
	ch->fd = steal_fd(&guest->fd);
	return 0;
}

/* ---- a new one ------------------------------------------------------------------------------- */

static int guest_identify(struct sock_guest *guest)
{
	int one = 1;

	if (sock_guest_kind_of(guest) == TRANSPORT_SHM)
		return sock_unix_peer(guest->fd, &guest->pid, &guest->uid, &guest->pidfd);
	setsockopt(guest->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static int guest_begin(struct sock_guest *guest)
{
	int err;

	do
		err = guest_identify(guest);
	while ((err == -EMFILE || err == -ENFILE) && sock_guests_drop_oldest(guest->guests));
	return err ? err : sock_source_watch(&guest->source, guest->fd, EPOLLIN);
}

void sock_guest_new(struct sock_guests *guests, int fd, const struct transport_address *peer)
{
	static struct log_ratelimit limit;
	struct sock_guest *guest = calloc(1, sizeof(*guest));
	int err;

	if (!guest) {
		close(fd);
		return;
	}
	guest->guests = guests;
	guest->peer = *peer;
	guest->since_ms = now_ms();
	guest->fd = fd;
	guest->pidfd = -1;
	list_init(&guest->node);
	sock_source_init(&guest->source, guests->q, guest_poll);
	guests->n++;
	err = guest_begin(guest);
	if (err) {
		if (log_ratelimit_ok(&limit, LOG_MS))
			log_error("a connection was dropped: %s", errno_text(err));
		guest_delete(guest);
		return;
	}
	for (unsigned max = guests_max(); guests->n > max;)
		if (!sock_guests_drop_oldest(guests))
			break;
	list_add_tail(&guests->list, &guest->node);
	if (guests->n == 1)
		set_timer(guests);
	/* Poll it before the next connections are accepted, so that a guest whose hello has arrived
	 * is not dropped for them. */
	sock_source_pend(&guest->source);
}
