/* pipe.c - see pipe.h. */
#include "common/transport/tcp/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common/transport/transport.h"
#include "common/base/util.h"

enum {
	/* 1024 pages: more pieces than 1 MiB has in packets of 1448 bytes. */
	ROOM_BYTES = 4 << 20,
	/* Any process may have so much. It is enough over the loopback, whose pieces are larger. */
	ROOM_BYTES_UNPRIVILEGED = 1 << 20,
	/* A failed try costs as much as it was to save, and the next answers probably fail, too. */
	PAUSE = 256,
};

void tcp_pipe_init(struct tcp_pipe *p)
{
	int fds[2];

	*p = (struct tcp_pipe){.out = -1, .in = -1};
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	p->out = fds[0];
	p->in = fds[1];
	if (fcntl(p->in, F_SETPIPE_SZ, ROOM_BYTES) < 0 &&
		fcntl(p->in, F_SETPIPE_SZ, ROOM_BYTES_UNPRIVILEGED) < 0)
		tcp_pipe_fini(p);
}

void tcp_pipe_fini(struct tcp_pipe *p)
{
	if (p->out >= 0)
		close(steal_fd(&p->out));
	if (p->in >= 0)
		close(steal_fd(&p->in));
}

static void empty(struct tcp_pipe *p)
{
	uint8_t waste[PAGE_BYTES];

	while (read(p->out, waste, sizeof(waste)) > 0)
		continue;
}

bool tcp_pipe_begin(struct tcp_pipe *p, const void *head, uint32_t headlen, uint64_t bytes)
{
	if (p->out < 0)
		return false;
	if (p->pause) {
		p->pause--;
		return false;
	}
	empty(p);
	if (write(p->in, head, headlen) != (ssize_t)headlen)
		return false;
	p->headlen = headlen;
	p->got = 0;
	p->left = bytes;
	return true;
}

/* If nothing could be moved, either the pipe is full or nothing has arrived. */
static bool tcp_pipe_is_full(const struct tcp_pipe *p)
{
	struct pollfd room = {.fd = p->in, .events = POLLOUT};

	return poll(&room, 1, 0) == 0;
}

ssize_t tcp_pipe_fill(struct tcp_pipe *p, int fd)
{
	ssize_t n = splice(fd, NULL, p->in, NULL, p->left, SPLICE_F_NONBLOCK);

	if (n < 0 && errno == EAGAIN)
		return tcp_pipe_is_full(p) ? -ENOSPC : 0;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	p->got += (uint64_t)n;
	p->left -= (uint64_t)n;
	return n;
}

int tcp_pipe_spill(struct tcp_pipe *p, struct tcp_in *payload)
{
	uint8_t head[CHANNEL_HEAD_MAX];

	if (read(p->out, head, p->headlen) != (ssize_t)p->headlen)
		return -EIO;
	while (p->got) {
		ssize_t n = tcp_in_copy(payload, p->out);

		if (n <= 0)
			return n ? (int)n : -EIO;
		p->got -= (uint64_t)n;
	}
	p->left = 0;
	p->pause = PAUSE;
	return 0;
}
