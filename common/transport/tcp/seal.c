/* seal.c - see seal.h. */
#include "common/transport/tcp/seal.h"

#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/cut_guard.h"
#include "common/base/nodump.h"

#ifndef TCP_ULP
#define TCP_ULP 31
#endif

/* A server has a channel for each I/O thread of each client, so these are small: one record to read
 * into, two to send from. */
enum { IN_ROOM = 2 * RECORD_BYTES_MAX, OUT_ROOM = 2 * RECORD_BYTES_MAX };

/* ---- by the kernel --------------------------------------------------------------------------- */

/* Whether the socket does it from now on. */
static bool kernel_takes(int fd, int direction, const struct direction_key *key)
{
	struct tls12_crypto_info_aes_gcm_256 info;
	bool ok;

	/* For both directions; EEXIST the second time. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) < 0 && errno != EEXIST)
		return false;
	record_kernel_info(key, &info);
	ok = setsockopt(fd, SOL_TLS, direction, &info, sizeof(info)) == 0;
	explicit_bzero(&info, sizeof(info));
	return ok;
}

/* At least what the kernel's records of so many bytes are. */
static uint64_t blocks_of(size_t bytes)
{
	return bytes / AEAD_BLOCK_BYTES + 2 * (bytes / RECORD_CONTENT_MAX + 1);
}

static bool is_worn(enum tcp_seal_kind kind, uint64_t kernel_blocks, const struct aead *aead)
{
	if (kind == TCP_SEAL_KERNEL)
		return kernel_blocks >= aead_worn_blocks();
	return kind == TCP_SEAL_USER && aead_worn(aead);
}

bool tcp_seal_out_worn(const struct tcp_seal_out *s)
{
	return is_worn(s->kind, s->blocks, &s->records.aead);
}

bool tcp_seal_in_worn(const struct tcp_seal_in *s)
{
	return is_worn(s->kind, s->blocks, &s->records.aead);
}

void tcp_seal_in_spliced(struct tcp_seal_in *s, size_t bytes)
{
	s->blocks += blocks_of(bytes);
}

/* ---- out ------------------------------------------------------------------------------------- */

int tcp_seal_out_begin(struct tcp_seal_out *s, int fd, const struct direction_key *key)
{
	int err;

	if (kernel_takes(fd, TLS_TX, key)) {
		s->kind = TCP_SEAL_KERNEL;
		return 0;
	}
	s->buf = nodump_alloc(OUT_ROOM);
	if (!s->buf)
		return -ENOMEM;
	err = record_out_init(&s->records, key);
	if (err)
		return err;
	s->room = OUT_ROOM;
	s->kind = TCP_SEAL_USER;
	return 0;
}

void tcp_seal_out_fini(struct tcp_seal_out *s)
{
	if (s->kind == TCP_SEAL_USER)
		record_out_fini(&s->records);
	nodump_free(s->buf);
	*s = (struct tcp_seal_out){0};
}

static ssize_t send_plain(int fd, struct iovec *iov, int niov)
{
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = (size_t)niov};
	ssize_t n;

	do
		n = sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Sends what is sealed. 0: all of it is out. */
static int send_sealed(struct tcp_seal_out *s, int fd)
{
	while (s->at < s->end) {
		struct iovec iov = {s->buf + s->at, s->end - s->at};
		ssize_t n = send_plain(fd, &iov, 1);

		if (n < 0)
			return (int)n;
		s->at += (size_t)n;
	}
	return 0;
}

ssize_t tcp_seal_send(struct tcp_seal_out *s, int fd, struct iovec *iov, int niov)
{
	ssize_t n;

	if (s->kind != TCP_SEAL_USER) {
		n = send_plain(fd, iov, niov);
		if (n > 0)
			s->blocks += blocks_of((size_t)n);
		return n;
	}
	if (s->at == s->end) {
		n = record_out_seal(&s->records, iov, niov, s->buf, s->room, &s->plain);
		/* A system call would have said so. */
		if (n >= 0 && cut_guard_have_lost(iov, niov))
			n = -EFAULT;
		if (n < 0) {
			/* The peer still listens, and would wait for these bytes. */
			shutdown(fd, SHUT_RDWR);
			return n;
		}
		s->at = 0;
		s->end = (size_t)n;
	}
	n = send_sealed(s, fd);
	return n < 0 ? n : (ssize_t)s->plain;
}

/* ---- in -------------------------------------------------------------------------------------- */

int tcp_seal_in_begin(
	struct tcp_seal_in *s, int fd, const struct direction_key *key, enum record_memory memory)
{
	int err;

	s->memory = memory;
	if (kernel_takes(fd, TLS_RX, key)) {
		s->kind = TCP_SEAL_KERNEL;
		return 0;
	}
	s->buf = nodump_alloc(IN_ROOM);
	if (!s->buf)
		return -ENOMEM;
	err = record_in_init(&s->records, key, s->buf, IN_ROOM);
	if (err)
		return err;
	s->kind = TCP_SEAL_USER;
	return 0;
}

void tcp_seal_in_fini(struct tcp_seal_in *s)
{
	if (s->kind == TCP_SEAL_USER)
		record_in_fini(&s->records);
	nodump_free(s->buf);
	*s = (struct tcp_seal_in){0};
}

static ssize_t recv_plain(int fd, struct iovec *iov, int niov, bool *drained)
{
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = (size_t)niov};
	size_t want = 0;
	ssize_t got;

	if (*drained)
		return 0;
	for (int i = 0; i < niov; i++)
		want += iov[i].iov_len;
	got = recvmsg(fd, &mh, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (got == 0)
		return -ECONNRESET;
	*drained = (size_t)got < want;
	return got;
}

/* The kernel's TLS has errors of its own for a record that is not the peer's, or has no data. */
static ssize_t kernel_error(ssize_t got)
{
	return got == -EIO || got == -EINVAL || got == -EMSGSIZE ? -EBADMSG : got;
}

ssize_t tcp_seal_recv(struct tcp_seal_in *s, int fd, struct iovec *iov, int niov, bool *drained)
{
	struct iovec space;
	ssize_t got;

	if (s->kind == TCP_SEAL_NONE)
		return recv_plain(fd, iov, niov, drained);
	if (s->kind == TCP_SEAL_KERNEL) {
		got = kernel_error(recv_plain(fd, iov, niov, drained));
		if (got > 0)
			s->blocks += blocks_of((size_t)got);
		return got;
	}
	for (;;) {
		got = record_in_take(&s->records, iov, niov, s->memory);
		if (got > 0 && cut_guard_have_lost(iov, niov))
			return -EFAULT;
		if (got || *drained)
			return got;
		space.iov_base = record_in_space(&s->records, &space.iov_len);
		got = recv_plain(fd, &space, 1, drained);
		if (got <= 0)
			return got;
		record_in_fed(&s->records, (size_t)got);
	}
}
