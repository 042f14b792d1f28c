/* talk.c - see talk.h. */
#include "daemon/handover/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

struct talk_head {
	uint32_t kind, len;
};

/* ---- sending --------------------------------------------------------------------------------- */

static int send_rest(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The descriptors go with the head. */
static int send_head(int fd, const struct talk_head *head, const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(TALK_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)head, sizeof(*head)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(nfds * sizeof(int))};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, nfds * sizeof(int));
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return send_rest(fd, (const uint8_t *)head + n, sizeof(*head) - (size_t)n);
}

int talk_send(
	int fd, enum talk_kind kind, const void *data, uint32_t len, const int *fds, unsigned nfds)
{
	const struct timeval limit = {.tv_sec = TALK_SEND_MS / 1000};
	const struct talk_head head = {.kind = kind, .len = len};
	int err;

	if (len > TALK_BYTES_MAX || nfds > TALK_FDS_MAX)
		return -EMSGSIZE;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	err = send_head(fd, &head, fds, nfds);
	return err ? err : send_rest(fd, data, len);
}

int talk_send_failed(int fd, const char *why)
{
	return talk_send(fd, TALK_FAILED, why, (uint32_t)strlen(why), NULL, 0);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Descriptors that do not fit are closed. */
static void take_fds(struct talk_message *m, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (m->nfds < TALK_FDS_MAX)
				m->fds[m->nfds++] = fd;
			else
				close(fd);
		}
	}
}

/* Returns how many bytes have come: fewer than len at the stream's end only. */
static ssize_t receive_bytes(
	int fd, int64_t until, struct talk_message *m, uint8_t *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(TALK_FDS_MAX * sizeof(int))];
		} control;
		struct iovec iov = {data + got, len - got};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control)};
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		int64_t left = until == INT64_MAX ? -1 : max_i64(0, until - now_ms());
		ssize_t n;

		if (poll(&pfd, 1, (int)left) == 0)
			return -ETIMEDOUT;
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0 && errno != ECONNRESET)
			return -errno;
		if (n <= 0)
			break;
		take_fds(m, &msg);
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* {"error":"TEXT"} of a daemon that answers the question as it does others. */
static int receive_refusal(
	int fd, int64_t until, struct talk_message *m, const struct talk_head *head)
{
	static const char before[] = "{\"error\":\"";
	size_t room = 4096, skip = strlen(before);
	ssize_t n;
	char *text = calloc(1, room);

	m->data = (uint8_t *)text;
	if (!text)
		return -ENOMEM;
	memcpy(text, head, sizeof(*head));
	n = receive_bytes(fd, until, m, m->data + sizeof(*head), room - sizeof(*head) - 1);
	if (n < 0 || strncmp(text, before, skip) != 0)
		return -EPROTO;
	memmove(text, text + skip, strlen(text + skip) + 1);
	text[strcspn(text, "\"")] = '\0';
	m->kind = TALK_FAILED;
	m->len = (uint32_t)strlen(text);
	return 0;
}

static int receive(int fd, int64_t until, struct talk_message *m)
{
	struct talk_head head;
	ssize_t n = receive_bytes(fd, until, m, (uint8_t *)&head, sizeof(head));

	if (n < (ssize_t)sizeof(head))
		return n < 0 ? (int)n : -ECONNRESET;
	if (*(const char *)&head == '{')
		return receive_refusal(fd, until, m, &head);
	if (head.kind < TALK_OFFER || head.kind > TALK_FAILED || head.len > TALK_BYTES_MAX)
		return -EPROTO;
	m->kind = (enum talk_kind)head.kind;
	m->len = head.len;
	m->data = calloc(1, (size_t)head.len + 1);
	if (!m->data)
		return -ENOMEM;
	n = receive_bytes(fd, until, m, m->data, head.len);
	if (n < (ssize_t)head.len)
		return n < 0 ? (int)n : -ECONNRESET;
	return 0;
}

int talk_receive(int fd, int limit_ms, struct talk_message *m)
{
	int64_t until = limit_ms < 0 ? INT64_MAX : now_ms() + limit_ms;
	int err;

	*m = (struct talk_message){0};
	err = receive(fd, until, m);
	if (err)
		talk_fini(m);
	return err;
}

void talk_fini(struct talk_message *m)
{
	for (unsigned i = 0; i < m->nfds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	free(m->data);
	*m = (struct talk_message){0};
}
