/* link.c - frames over the Unix socket, in both directions. */
#include "common/transport/shm/internal.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/base/util.h"

void shm_channel_init(struct shm_channel *ch)
{
	list_init(&ch->out);
	ch->pidfd = -1;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

const struct channel_limits shm_limits = {
	.max_sge_read = 1024,
	.max_sge_write = 1024,
	.max_work_bytes = 1U << 30,
};

/* Beside a packet's bytes the kernel counts so many for itself. */
enum { PACKET_OVERHEAD = 32 };

void shm_link_make_room(int fd, uint32_t msg_bytes)
{
	int now = 0, want = (int)msg_bytes + FRAME_BYTES + PACKET_OVERHEAD;
	socklen_t len = sizeof(now);

	if (!getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &now, &len) && now >= want)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
}

/* net.core.wmem_max bounds a socket's buffer. */
int shm_link_clip(uint32_t *msg_bytes)
{
	autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(int);
	int size;

	if (fd < 0)
		return -errno;
	shm_link_make_room(fd, *msg_bytes);
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len) < 0)
		return -errno;
	*msg_bytes = (uint32_t)min_u64(*msg_bytes, (uint64_t)size - FRAME_BYTES - PACKET_OVERHEAD);
	return 0;
}

/* ---- out ------------------------------------------------------------------------------------- */

union fd_control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void attach_fd(struct msghdr *mh, union fd_control *control, int fd)
{
	struct cmsghdr *cmsg;

	memset(control, 0, sizeof(*control));
	mh->msg_control = control->bytes;
	mh->msg_controllen = sizeof(control->bytes);
	cmsg = CMSG_FIRSTHDR(mh);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
}

/* Sends one packet; 0 or -errno. */
static int send_packet(int fd, const struct sock_msg *msg)
{
	struct msghdr mh = {.msg_iov = (struct iovec *)msg->iov, .msg_iovlen = msg->piece.niov};
	union fd_control control;

	if (msg->frame.type == FRAME_REGION)
		attach_fd(&mh, &control, ((const struct shm_key *)msg->data)->fd);
	return sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void shm_link_bye(struct shm_channel *ch, int status)
{
	struct sock_frame frame = {.type = FRAME_BYE, .arg = (uint32_t)status};
	uint8_t header[FRAME_BYTES];

	sock_frame_encode(&frame, header);
	/* If the peer can't take it, it finds the socket closed. */
	(void)send(ch->sock.fd, header, sizeof(header), MSG_NOSIGNAL | MSG_DONTWAIT);
	ch->bye_sent = true;
}

/* The socket is full, or too many descriptors are in flight: both pass as the peer reads. */
static bool shm_link_is_full(int err)
{
	return err == -EAGAIN || err == -ENOBUFS || err == -ETOOMANYREFS;
}

void shm_link_flush(struct shm_channel *ch)
{
	bool was_blocked = ch->sock.blocked;

	ch->sock.blocked = false;
	while (!list_empty(&ch->out)) {
		struct sock_msg *msg = sock_msg_at(ch->out.next);
		int err = send_packet(ch->sock.fd, msg);

		if (shm_link_is_full(err)) {
			ch->sock.blocked = true;
			break;
		}
		list_del(&msg->piece.node);
		if (msg->frame.type == FRAME_MESSAGE)
			sock_pool_put(&ch->sock.send, msg);
		/* Any other error: the peer is gone. Its earlier frames are still unread, and the
		 * receiving side finds the end behind them. */
	}
	if (ch->bye_due && !ch->sock.blocked && !ch->bye_sent)
		shm_link_bye(ch, 0);
	if (ch->sock.blocked != was_blocked)
		sock_channel_watch(&ch->sock);
}

void shm_link_send(struct shm_channel *ch, struct sock_msg *msg)
{
	sock_msg_seal(msg, msg->frame.type == FRAME_MESSAGE ? (uint32_t)msg->frame.len : 0);
	list_add_tail(&ch->out, &msg->piece.node);
	if (!ch->sock.blocked)
		shm_link_flush(ch);
}

/* ---- in -------------------------------------------------------------------------------------- */

static int take_fd(struct msghdr *mh)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(mh);
	int fd = -1;

	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS &&
		cmsg->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

/* Receives one packet into msg. Returns the bytes of its payload, or -errno. -ECONNRESET: the peer
 * is gone. */
static ssize_t recv_packet(struct shm_channel *ch, struct sock_msg *msg, int *fd)
{
	struct iovec iov[2] = {
		{.iov_base = msg->header, .iov_len = FRAME_BYTES},
		{.iov_base = msg->data, .iov_len = ch->sock.base.limits.msg_bytes},
	};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
	union fd_control control;
	ssize_t n;

	/* A server leaves no room for descriptors, so the kernel closes those that a client
	 * sends. */
	if (!ch->sock.base.server) {
		mh.msg_control = control.bytes;
		mh.msg_controllen = sizeof(control.bytes);
	}
	n = recvmsg(ch->sock.fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* The peer closed with something of ours unread. The kernel reports that once, before the
	 * peer's packets. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(ch->sock.fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	*fd = take_fd(&mh);
	if (n == 0)
		return -ECONNRESET;
	if (n < FRAME_BYTES || (mh.msg_flags & MSG_TRUNC))
		return -EPROTO;
	return n - FRAME_BYTES;
}

static int check_frame(const struct shm_channel *ch, const struct sock_frame *frame, ssize_t len)
{
	switch (frame->type) {
	case FRAME_MESSAGE:
		return frame->len == (uint64_t)len ? 0 : -EPROTO;
	case FRAME_BYE:
		return len ? -EPROTO : 0;
	case FRAME_REGION:
		return ch->sock.base.server || len ? -EPROTO : 0;
	default:
		return -EPROTO;
	}
}

static void peer_gone(struct shm_channel *ch, int err)
{
	/* The peer closed in answer to our BYE. */
	if (err == -ECONNRESET && ch->bye_sent)
		err = 0;
	shutdown(ch->sock.fd, SHUT_RDWR);
	sock_channel_fail(&ch->sock, err);
}

int shm_link_recv(struct shm_channel *ch, struct sock_msg **out, int *fd)
{
	struct sock_msg *msg = sock_pool_get(&ch->sock.recv);
	ssize_t len;
	int err;

	*fd = -1;
	if (!msg) {
		ch->sock.stalled = true;
		sock_channel_watch(&ch->sock);
		return 0;
	}
	len = recv_packet(ch, msg, fd);
	err = len < 0 ? (int)len : sock_frame_decode(msg->header, &msg->frame);
	if (!err)
		err = check_frame(ch, &msg->frame, len);
	if (!err && msg->frame.type != FRAME_BYE) {
		*out = msg;
		return 1;
	}
	if (!err)
		peer_gone(ch, sock_peer_status((int32_t)msg->frame.arg));
	else if (err != -EAGAIN && err != -EINTR)
		peer_gone(ch, err);
	sock_pool_put(&ch->sock.recv, msg);
	if (*fd >= 0)
		close(steal_fd(fd));
	return 0;
}
