/* stream.h - bytes in and out of a stream socket, without copies of our own. Pieces go out from
 * their memory; payloads come in to where they belong.
 *
 * THREADS    None of its own: one thread, or the caller's lock.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TCP_STREAM_H
#define RMEMFS_COMMON_TRANSPORT_TCP_STREAM_H

#include <sys/types.h>
#include <sys/uio.h>

#include "common/transport/sock/pool.h"
#include "common/transport/tcp/seal.h"

/* At most so many vectors go to one system call. */
enum { TCP_IOV_MAX = 512 };

/* A queue of pieces, the first of them perhaps partly sent. */
struct tcp_out {
	struct list pieces;
	uint32_t at; /* vector of the first piece that is next */
	size_t skip; /* bytes of that vector already sent */
};

void tcp_out_init(struct tcp_out *out);

/* Lists what to send next, over as many pieces as fit. More pieces may be queued before the
 * matching tcp_out_advance. */
int tcp_out_gather(const struct tcp_out *out, struct iovec *iov, int max);
/* So many bytes are out: moves the finished pieces to done. */
void tcp_out_advance(struct tcp_out *out, size_t bytes, struct list *done);
/* A header, and before it the rest of the last header's payload. */
struct tcp_in {
	const struct iovec *iov;
	uint32_t niov;
	size_t skip;
	bool hold;    /* no header follows the payload: don't read on */
	bool drained; /* the last read took all there was; the caller clears it for a new turn */
	uint32_t header_got;
	uint8_t header[FRAME_BYTES];
};

/* Starts the payload of the whole header; the next header follows it. */
void tcp_in_payload(struct tcp_in *in, const struct iovec *iov, uint32_t niov, bool hold);

static inline bool tcp_in_payload_done(const struct tcp_in *in)
{
	return in->niov == 0;
}

static inline bool tcp_in_header_done(const struct tcp_in *in)
{
	return in->header_got == FRAME_BYTES;
}

/* One read into payload and header, as tcp_seal_recv(). */
ssize_t tcp_in_fill(struct tcp_in *in, struct tcp_seal_in *seal, int fd);
/* One read into the payload alone, from any descriptor: bytes, or -errno. */
ssize_t tcp_in_copy(struct tcp_in *in, int fd);

#endif
