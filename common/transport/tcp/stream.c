/* stream.c - see stream.h. */
#include "common/transport/tcp/stream.h"

#include <errno.h>
#include <sys/socket.h>

/* ---- out ------------------------------------------------------------------------------------- */

void tcp_out_init(struct tcp_out *out)
{
	*out = (struct tcp_out){0};
	list_init(&out->pieces);
}

int tcp_out_gather(const struct tcp_out *out, struct iovec *iov, int max)
{
	uint32_t at = out->at;
	int n = 0;

	list_for_each (node, &out->pieces) {
		const struct sock_piece *piece = list_entry(node, struct sock_piece, node);

		for (; at < piece->niov && n < max; at++)
			iov[n++] = piece->iov[at];
		if (n == max)
			break;
		at = 0;
	}
	if (n) {
		iov[0].iov_base = (uint8_t *)iov[0].iov_base + out->skip;
		iov[0].iov_len -= out->skip;
	}
	return n;
}

void tcp_out_advance(struct tcp_out *out, size_t bytes, struct list *done)
{
	while (bytes) {
		struct sock_piece *piece = list_entry(out->pieces.next, struct sock_piece, node);
		size_t left = piece->iov[out->at].iov_len - out->skip;

		if (bytes < left) {
			out->skip += bytes;
			return;
		}
		bytes -= left;
		out->skip = 0;
		if (++out->at == piece->niov) {
			out->at = 0;
			list_del(&piece->node);
			list_add_tail(done, &piece->node);
		}
	}
}

/* ---- in -------------------------------------------------------------------------------------- */

void tcp_in_payload(struct tcp_in *in, const struct iovec *iov, uint32_t niov, bool hold)
{
	in->iov = iov;
	in->niov = niov;
	in->skip = 0;
	in->hold = hold;
	in->header_got = 0;
}

static void advance(struct tcp_in *in, size_t bytes)
{
	while (in->niov && bytes) {
		size_t left = in->iov->iov_len - in->skip;

		if (bytes < left) {
			in->skip += bytes;
			return;
		}
		bytes -= left;
		in->skip = 0;
		in->iov++;
		in->niov--;
	}
	in->header_got += (uint32_t)bytes;
}

/* Lists the memory that the payload still lacks, and leaves room for the header behind it. */
static uint32_t gather(const struct tcp_in *in, struct iovec iov[TCP_IOV_MAX])
{
	uint32_t n = 0;

	for (; n < in->niov && n < TCP_IOV_MAX - 1; n++)
		iov[n] = in->iov[n];
	if (n) {
		iov[0].iov_base = (uint8_t *)iov[0].iov_base + in->skip;
		iov[0].iov_len -= in->skip;
	}
	return n;
}

ssize_t tcp_in_copy(struct tcp_in *in, int fd)
{
	struct iovec iov[TCP_IOV_MAX];
	ssize_t got = readv(fd, iov, (int)gather(in, iov));

	if (got < 0)
		return -errno;
	advance(in, (size_t)got);
	return got;
}

ssize_t tcp_in_fill(struct tcp_in *in, struct tcp_seal_in *seal, int fd)
{
	struct iovec iov[TCP_IOV_MAX];
	uint32_t n = gather(in, iov);
	ssize_t got;

	if (n == in->niov && !in->hold)
		iov[n++] = (struct iovec){
			.iov_base = in->header + in->header_got,
			.iov_len = FRAME_BYTES - in->header_got,
		};
	got = tcp_seal_recv(seal, fd, iov, (int)n, &in->drained);
	if (got > 0)
		advance(in, (size_t)got);
	return got;
}
