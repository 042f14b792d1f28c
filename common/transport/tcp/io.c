/* io.c - the I/O threads of a tcp server.
 *
 * The first transport_listen starts them, transport_close ends and joins them. A channel belongs to
 * one of them from channel_accept until it has been dropped. channel_fence and channel_delete ask
 * for that, and the thread acknowledges it between two rounds of its loop. From then on no byte of
 * the peer's is read into a region. */
#include "common/transport/tcp/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/base/util.h"

enum {
	WAIT_BATCH = 64,
	/* So many reads in one go before other channels have their turn. */
	FILLS_PER_TURN = 16,
};

/* ---- requests -------------------------------------------------------------------------------- */

/* The connection can't be used any more: nothing is read from it again. */
static void close_input(struct tcp_server *ch, int status)
{
	bool drain = status == 0 || status == -EACCES;

	pthread_mutex_lock(&ch->lock);
	/* Where the peer must still learn something, queued frames go out first. */
	shutdown(ch->sock.fd, drain ? SHUT_WR : SHUT_RDWR);
	ch->closed = true;
	ch->closed_status = status;
	tcp_watch_locked(ch);
	pthread_mutex_unlock(&ch->lock);
	sock_source_notify(&ch->sock.source);
}

static void begin_payload(struct tcp_server *ch, enum tcp_stage stage, const struct iovec *iov,
	uint32_t niov, bool hold)
{
	ch->stage = stage;
	tcp_in_payload(&ch->in, iov, niov, hold);
}

/* Queues the answer to the request, with niov vectors of memory in reply_iov[1..]. */
static void reply(struct tcp_server *ch, int status, uint32_t niov, uint64_t len)
{
	struct sock_frame frame = {.type = FRAME_DONE, .arg = (uint32_t)status, .len = len};

	sock_frame_encode(&frame, ch->reply_header);
	ch->reply_iov[0] =
		(struct iovec){.iov_base = ch->reply_header, .iov_len = sizeof(ch->reply_header)};
	ch->reply.iov = ch->reply_iov;
	ch->reply.niov = 1 + niov;
	ch->refused = status != 0;
	pthread_mutex_lock(&ch->lock);
	ch->replying = true;
	tcp_output_add_locked(ch, &ch->reply);
	pthread_mutex_unlock(&ch->lock);
	tcp_output_all(ch);
}

/* Finds the memory of a range, if the channel's peer has the right to this access. */
static int resolve(struct tcp_server *ch, const struct sock_range *range, struct iovec *out)
{
	unsigned access = ch->request.type == FRAME_READ ? REGION_READ : REGION_WRITE;
	uint32_t index = range->rkey & 0xffff;
	const struct tcp_published *published;

	if (index >= atomic_load_explicit(&ch->npublished, memory_order_acquire))
		return -EACCES;
	published = &ch->published[index];
	if (published->rkey != range->rkey || !(published->access & access) || !range->len ||
		!range_within(range->addr, range->len, published->region->len))
		return -EACCES;
	out->iov_base = (uint8_t *)published->region->addr + range->addr;
	out->iov_len = range->len;
	return 0;
}

/* All ranges are known. No byte moves before all of them have been checked. */
static void run_request(struct tcp_server *ch)
{
	struct sock_range range = {
		.addr = ch->request.addr,
		.len = (uint32_t)ch->request.len,
		.rkey = ch->request.rkey,
	};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ch->request.count; i++) {
		if (i)
			sock_range_decode(ch->ranges + (i - 1) * FRAME_RANGE_BYTES, &range);
		if (resolve(ch, &range, &ch->reply_iov[1 + i])) {
			tcp_server_refused(ch);
			begin_payload(ch, TCP_HEADER, NULL, 0, true);
			reply(ch, -EACCES, 0, 0);
			return;
		}
		bytes += range.len;
	}
	if (ch->request.type == FRAME_WRITE) {
		begin_payload(ch, TCP_DATA, ch->reply_iov + 1, ch->request.count, false);
		return;
	}
	begin_payload(ch, TCP_HEADER, NULL, 0, false);
	reply(ch, 0, ch->request.count, bytes);
}

static int take_request(struct tcp_server *ch)
{
	uint32_t more = ch->request.count - 1;

	if (!ch->request.count || ch->request.count > ch->sock.base.limits.max_works_read ||
		ch->request.len > UINT32_MAX)
		return -EPROTO;
	if (!more) {
		run_request(ch);
		return 0;
	}
	ch->ranges_iov =
		(struct iovec){.iov_base = ch->ranges, .iov_len = (size_t)more * FRAME_RANGE_BYTES};
	begin_payload(ch, TCP_RANGES, &ch->ranges_iov, 1, true);
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Without a free buffer the header stays where it is, and channel_recv_done makes us go on. */
static int take_message(struct tcp_server *ch)
{
	struct sock_msg *msg;

	if (ch->request.len > sock_channel_msg_bytes(&ch->sock))
		return -EPROTO;
	pthread_mutex_lock(&ch->lock);
	msg = sock_pool_get(&ch->sock.recv);
	ch->sock.stalled = !msg;
	pthread_mutex_unlock(&ch->lock);
	if (!msg)
		return 0;
	msg->frame = ch->request;
	msg->iov[0] = (struct iovec){.iov_base = msg->data, .iov_len = ch->request.len};
	ch->message = msg;
	begin_payload(ch, TCP_MESSAGE, msg->iov, ch->request.len ? 1 : 0, false);
	return 0;
}

/* A message that came plain is too late once the channel is protected. */
static int deliver_message(struct tcp_server *ch)
{
	bool late;

	ch->stage = TCP_HEADER;
	pthread_mutex_lock(&ch->lock);
	late = ch->protect_in;
	if (!late)
		list_add_tail(&ch->received, &steal_ptr(&ch->message)->piece.node);
	pthread_mutex_unlock(&ch->lock);
	if (late)
		return -EPROTO;
	sock_source_notify(&ch->sock.source);
	return 0;
}

/* ---- a channel's turn ------------------------------------------------------------------------ */

static int take_header(struct tcp_server *ch)
{
	int err = sock_frame_decode(ch->in.header, &ch->request);

	if (err)
		return err;
	switch (ch->request.type) {
	case FRAME_MESSAGE:
		return take_message(ch);
	case FRAME_READ:
	case FRAME_WRITE:
		return take_request(ch);
	case FRAME_BYE:
		close_input(ch, sock_peer_status((int32_t)ch->request.arg));
		return 0;
	default:
		return -EPROTO;
	}
}

static int payload_done(struct tcp_server *ch)
{
	int err = 0;

	switch (ch->stage) {
	case TCP_RANGES:
		run_request(ch);
		break;
	case TCP_DATA:
		ch->stage = TCP_HEADER;
		reply(ch, 0, 0, 0);
		break;
	case TCP_MESSAGE:
		err = deliver_message(ch);
		break;
	case TCP_HEADER:
		break;
	}
	return err;
}

/* From the next byte on. Bytes that came before the peer could know that are not its own. */
static int protect_locked(struct tcp_server *ch)
{
	int err = -EPROTO;

	ch->protect_in = false;
	if (tcp_in_payload_done(&ch->in) && ch->stage == TCP_HEADER && !ch->in.header_got)
		err = tcp_seal_in_begin(&ch->seal_in, ch->sock.fd, &ch->key_in, RECORD_SHARED);
	explicit_bzero(&ch->key_in, sizeof(ch->key_in));
	return err;
}

/* Reads without the lock what only the I/O thread changes. The queue's thread may change the rest
 * meanwhile; tcp_watch_locked checks that again. Returns 1, 0, or -errno. */
static int may_go_on(struct tcp_server *ch)
{
	int ret;

	pthread_mutex_lock(&ch->lock);
	ret = ch->protect_in ? protect_locked(ch) : 0;
	if (!ret)
		ret = !ch->replying && !ch->sock.stalled && !ch->closed && !ch->stopped;
	pthread_mutex_unlock(&ch->lock);
	return ret;
}

/* Unread bytes make the socket ready again, but not those that we have already. EPOLLOUT makes the
 * thread go on. */
static void yield_turn(struct tcp_server *ch)
{
	if (!tcp_seal_in_ready(&ch->seal_in))
		return;
	pthread_mutex_lock(&ch->lock);
	ch->sock.blocked = true;
	pthread_mutex_unlock(&ch->lock);
}

/* Reads the peer's requests and executes them, until nothing more can be done for now. */
static int read_requests(struct tcp_server *ch)
{
	int fills = 0, err;

	ch->in.drained = false;
	while ((err = may_go_on(ch)) > 0) {
		ssize_t got;

		if (ch->refused)
			return -EACCES;
		if (tcp_in_payload_done(&ch->in) && ch->stage != TCP_HEADER) {
			err = payload_done(ch);
			if (err)
				return err;
			continue;
		}
		if (tcp_in_payload_done(&ch->in) && tcp_in_header_done(&ch->in)) {
			err = take_header(ch);
			if (err)
				return err;
			continue;
		}
		if (fills++ == FILLS_PER_TURN) {
			yield_turn(ch);
			return 0;
		}
		got = tcp_in_fill(&ch->in, &ch->seal_in, ch->sock.fd);
		if (got <= 0)
			return (int)got;
		tcp_server_passed(ch, got);
	}
	return err;
}

static void tcp_io_serve(struct tcp_server *ch)
{
	int err;

	if (ch->stopped)
		return;
	/* Takes a new key before the answer that it must not miss goes out. */
	err = may_go_on(ch);
	if (err >= 0) {
		tcp_output_all(ch);
		err = read_requests(ch);
	}
	if (err) {
		/* The peer has closed in answer to our BYE. */
		pthread_mutex_lock(&ch->lock);
		if (err == -ECONNRESET && ch->bye_sent)
			err = 0;
		if (ch->faulted)
			err = -EFAULT;
		pthread_mutex_unlock(&ch->lock);
		close_input(ch, err);
		return;
	}
	pthread_mutex_lock(&ch->lock);
	tcp_watch_locked(ch);
	pthread_mutex_unlock(&ch->lock);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void tcp_io_wake(struct tcp_io *io)
{
	uint64_t one = 1;

	/* A full counter wakes the thread, too. */
	(void)!write(io->wakefd, &one, sizeof(one));
}

/* Whether the peer is in the middle of a request and has not closed the connection. */
static bool is_cut_off(const struct tcp_server *ch)
{
	return !ch->closed && (ch->stage == TCP_RANGES || ch->stage == TCP_DATA) &&
	       !tcp_in_payload_done(&ch->in);
}

static void drop_locked(struct tcp_io *io, struct tcp_server *ch)
{
	pthread_mutex_lock(&ch->lock);
	tcp_watch_locked(ch); /* it is stopped: out of the set */
	if (is_cut_off(ch))
		tcp_server_refused(ch);
	pthread_mutex_unlock(&ch->lock);
	ch->dropped = true;
	sock_source_notify(&ch->sock.source);
	pthread_cond_broadcast(&io->dropped);
}

/* Runs after a round, so that no event of a dropped channel is left to serve. */
static void do_drops(struct tcp_io *io)
{
	pthread_mutex_lock(&io->lock);
	while (!list_empty(&io->drops))
		drop_locked(io, list_entry(list_pop(&io->drops), struct tcp_server, drop));
	pthread_mutex_unlock(&io->lock);
}

static void *io_main(void *arg)
{
	struct epoll_event ready[WAIT_BATCH];
	struct tcp_io *io = arg;
	uint64_t count;

	while (!io->stopping) {
		int n = epoll_wait(io->epfd, ready, WAIT_BATCH, -1);

		for (int i = 0; i < n; i++) {
			if (ready[i].data.ptr)
				tcp_io_serve(ready[i].data.ptr);
			else
				(void)!read(io->wakefd, &count, sizeof(count));
		}
		do_drops(io);
	}
	return NULL;
}

static int io_init(struct tcp_io *io, unsigned index)
{
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t all, before;
	char name[16];
	int err;

	list_init(&io->drops);
	io->epfd = epoll_create1(EPOLL_CLOEXEC);
	io->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (io->epfd < 0 || io->wakefd < 0 ||
		epoll_ctl(io->epfd, EPOLL_CTL_ADD, io->wakefd, &event) < 0)
		return -errno;
	/* The program's own threads handle signals, but for the one of memory that this one touches
	 * (cut_guard.h). */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&io->thread, NULL, io_main, io);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	io->running = true;
	snprintf(name, sizeof(name), "tcp-io-%u", index);
	pthread_setname_np(io->thread, name);
	return 0;
}

static void io_fini(struct tcp_io *io)
{
	if (io->running) {
		io->stopping = true;
		tcp_io_wake(io);
		pthread_join(io->thread, NULL);
	}
	if (io->epfd >= 0)
		close(io->epfd);
	if (io->wakefd >= 0)
		close(io->wakefd);
	pthread_cond_destroy(&io->dropped);
	pthread_mutex_destroy(&io->lock);
}

static int start_locked(struct tcp_transport *t)
{
	unsigned want = t->base.config.io_threads ? t->base.config.io_threads : 1;
	int err = 0;

	t->io = calloc(want, sizeof(*t->io));
	if (!t->io)
		return -ENOMEM;
	while (t->nio < want && !err) {
		struct tcp_io *io = &t->io[t->nio];

		io->epfd = io->wakefd = -1;
		pthread_mutex_init(&io->lock, NULL);
		pthread_cond_init(&io->dropped, NULL);
		err = io_init(io, t->nio++);
	}
	if (err)
		tcp_io_stop(t);
	return err;
}

int tcp_io_start(struct tcp_transport *t)
{
	int err = 0;

	pthread_mutex_lock(&t->lock);
	if (!t->nio)
		err = start_locked(t);
	pthread_mutex_unlock(&t->lock);
	return err;
}

void tcp_io_stop(struct tcp_transport *t)
{
	while (t->nio)
		io_fini(&t->io[--t->nio]);
	free(t->io);
	t->io = NULL;
}

void tcp_io_add(struct tcp_transport *t, struct tcp_server *ch)
{
	ch->io = &t->io[t->next_io++ % t->nio];
	pthread_mutex_lock(&ch->lock);
	tcp_watch_locked(ch);
	pthread_mutex_unlock(&ch->lock);
}

void tcp_io_drop(struct tcp_server *ch)
{
	struct tcp_io *io = ch->io;

	ch->stopped = true;
	shutdown(ch->sock.fd, SHUT_RDWR);
	pthread_mutex_lock(&io->lock);
	list_add_tail(&io->drops, &ch->drop);
	pthread_mutex_unlock(&io->lock);
	tcp_io_wake(io);
}

bool tcp_io_dropped(struct tcp_server *ch)
{
	bool dropped;

	pthread_mutex_lock(&ch->io->lock);
	dropped = ch->dropped;
	pthread_mutex_unlock(&ch->io->lock);
	return dropped;
}

void tcp_io_wait_dropped(struct tcp_server *ch)
{
	pthread_mutex_lock(&ch->io->lock);
	while (!ch->dropped)
		pthread_cond_wait(&ch->io->dropped, &ch->io->lock);
	pthread_mutex_unlock(&ch->io->lock);
}
