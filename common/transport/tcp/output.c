/* output.c - sending on a server's channel, by two threads.
 *
 * Pieces are queued under the channel's lock. If no thread is sending, a thread sets `sending` and
 * calls sendmsg without the lock; the other thread only queues. The queue's thread sends just once,
 * so that it never carries a READ's bytes. The I/O thread sends the rest when EPOLLOUT comes.
 */
#include "common/transport/tcp/internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/base/log.h"

void tcp_bye_piece(struct sock_piece *piece, struct iovec *iov, uint8_t header[FRAME_BYTES])
{
	struct sock_frame frame = {.type = FRAME_BYE};

	sock_frame_encode(&frame, header);
	*iov = (struct iovec){.iov_base = header, .iov_len = FRAME_BYTES};
	piece->iov = iov;
	piece->niov = 1;
}

void tcp_watch_locked(struct tcp_server *ch)
{
	bool over = ch->closed || ch->stopped;
	bool reading = !over && !ch->sock.stalled && !ch->replying;
	bool writing = !over && ch->sock.blocked;
	uint32_t interest = (reading ? EPOLLIN : 0) | (writing ? EPOLLOUT : 0);
	struct epoll_event event = {.events = interest, .data.ptr = ch};
	int op = EPOLL_CTL_MOD;

	if (interest == ch->watched)
		return;
	/* Epoll reports a peer that hung up whatever the interest is: without interest, leave the
	 * set. */
	if (!interest)
		op = EPOLL_CTL_DEL;
	else if (!ch->watched)
		op = EPOLL_CTL_ADD;
	/* Only memory can be short here; then the channel stands still until its owner ends it. */
	if (epoll_ctl(ch->io->epfd, op, ch->sock.fd, &event) < 0)
		log_error("%s: epoll_ctl: %s", ch->sock.base.peer, errno_text(errno));
	ch->watched = interest;
}

static void piece_done_locked(struct tcp_server *ch, struct sock_piece *piece)
{
	if (piece->is_message)
		sock_pool_put(&ch->sock.send, container_of(piece, struct sock_msg, piece));
	else if (piece == &ch->reply)
		ch->replying = false;
	else if (!ch->out_dead)
		shutdown(ch->sock.fd, SHUT_WR); /* the BYE */
}

static void pieces_done_locked(struct tcp_server *ch, struct list *done)
{
	while (!list_empty(done))
		piece_done_locked(ch, list_entry(list_pop(done), struct sock_piece, node));
}

void tcp_output_add_locked(struct tcp_server *ch, struct sock_piece *piece)
{
	list_add_tail(&ch->out.pieces, &piece->node);
}

/* Gives up sending; the reading side finds out why the peer is gone. */
static void output_died_locked(struct tcp_server *ch)
{
	struct list done;

	list_init(&done);
	list_splice_tail(&done, &ch->out.pieces);
	tcp_out_init(&ch->out);
	ch->out_dead = true;
	pieces_done_locked(ch, &done);
}

/* Calls sendmsg once. False: nothing is left, or the socket is full. */
static bool send_some_locked(struct tcp_server *ch)
{
	struct iovec iov[TCP_IOV_MAX];
	struct list done;
	ssize_t sent;
	int niov;

	if (ch->out_dead)
		output_died_locked(ch);
	niov = tcp_out_gather(&ch->out, iov, TCP_IOV_MAX);
	if (!niov)
		return false;
	/* The peer answers by its new key, which the I/O thread takes first. EPOLLOUT wakes it. */
	if (ch->protect_in) {
		ch->sock.blocked = true;
		return false;
	}
	pthread_mutex_unlock(&ch->lock);
	sent = tcp_seal_send(&ch->seal_out, ch->sock.fd, iov, niov);
	pthread_mutex_lock(&ch->lock);
	if (sent == -EAGAIN) {
		ch->sock.blocked = true;
		return false;
	}
	if (sent < 0) {
		/* The region has lost these bytes. Else the peer would wait for them. */
		if (sent == -EFAULT) {
			ch->faulted = true;
			shutdown(ch->sock.fd, SHUT_RDWR);
		}
		output_died_locked(ch);
		return false;
	}
	tcp_server_passed(ch, sent);
	list_init(&done);
	tcp_out_advance(&ch->out, (size_t)sent, &done);
	pieces_done_locked(ch, &done);
	return true;
}

void tcp_output_once(struct tcp_server *ch)
{
	bool replying;

	pthread_mutex_lock(&ch->lock);
	if (!ch->sending && !ch->sock.blocked) {
		replying = ch->replying;
		ch->sending = true;
		send_some_locked(ch);
		ch->sending = false;
		/* A reply went out along with a message. The I/O thread may have the next request
		 * already, and nothing more to read from the socket. EPOLLOUT makes it go on. */
		if (!list_empty(&ch->out.pieces) || (replying && !ch->replying))
			ch->sock.blocked = true;
		tcp_watch_locked(ch);
	}
	pthread_mutex_unlock(&ch->lock);
}

void tcp_output_all(struct tcp_server *ch)
{
	pthread_mutex_lock(&ch->lock);
	if (!ch->sending) {
		ch->sending = true;
		ch->sock.blocked = false;
		while (send_some_locked(ch))
			continue;
		ch->sending = false;
	}
	pthread_mutex_unlock(&ch->lock);
}
