/* seal.h - the bytes of a tcp channel, plain or as TLS 1.3 records: by the kernel, or by ourselves.
 *
 * A channel begins plain. tcp_seal_begin() protects one direction from the next byte on. Where the
 * kernel has TLS (the module tls), the socket does the rest, and splice(2) goes on working.
 * Elsewhere the records are made here (common/auth/record.h). Both sides may differ.
 *
 * OWNERSHIP  Memory for records is allocated by tcp_seal_begin(), and freed by tcp_seal_fini().
 * THREADS    Each direction belongs to the thread that sends, or reads, at that time.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TCP_SEAL_H
#define RMEMFS_COMMON_TRANSPORT_TCP_SEAL_H

#include "common/auth/record.h"

enum tcp_seal_kind {
	TCP_SEAL_NONE,   /* plain */
	TCP_SEAL_KERNEL, /* the socket seals */
	TCP_SEAL_USER,   /* we do */
};

struct tcp_seal_out {
	enum tcp_seal_kind kind;
	struct record_out records;
	uint8_t *buf;
	size_t room;
	size_t at, end;  /* in buf: sealed, and not sent yet */
	size_t plain;    /* the plain bytes in buf */
	uint64_t blocks; /* TCP_SEAL_KERNEL: as aead.h counts them, at least */
};

struct tcp_seal_in {
	enum tcp_seal_kind kind;
	enum record_memory memory; /* where the bytes go */
	struct record_in records;
	uint8_t *buf;
	uint64_t blocks; /* the same */
};

/* All zeros is plain. fd: the connected socket. -ENOMEM and others of record.h. */
int tcp_seal_out_begin(struct tcp_seal_out *s, int fd, const struct direction_key *key);
int tcp_seal_in_begin(
	struct tcp_seal_in *s, int fd, const struct direction_key *key, enum record_memory memory);
void tcp_seal_out_fini(struct tcp_seal_out *s);
void tcp_seal_in_fini(struct tcp_seal_in *s);

/* Sends bytes of the vectors, and returns how many plain ones are out. -EAGAIN: the socket is full;
 * call again with vectors that begin with the same bytes. They may have changed meanwhile: what was
 * sealed is sent. Other errors of sendmsg(2), and those of record.h, after which the socket is shut
 * down: the reading side ends the channel. */
ssize_t tcp_seal_send(struct tcp_seal_out *s, int fd, struct iovec *iov, int niov);

/* Reads once, if need be, into the vectors: the bytes; 0: nothing there now; -ECONNRESET: the end;
 * -EBADMSG: somebody has changed the bytes; others of recvmsg(2). *drained, if set, forbids to read
 * from the socket, and is set when the socket was left empty. */
ssize_t tcp_seal_recv(struct tcp_seal_in *s, int fd, struct iovec *iov, int niov, bool *drained);

/* So many bytes have come by splice(2), which is for TCP_SEAL_KERNEL. */
void tcp_seal_in_spliced(struct tcp_seal_in *s, size_t bytes);

/* Whether the direction's key has been used enough. The kernel does not count. */
bool tcp_seal_out_worn(const struct tcp_seal_out *s);
bool tcp_seal_in_worn(const struct tcp_seal_in *s);

/* Whether tcp_seal_recv() has something to give of which the socket does not tell. */
static inline bool tcp_seal_in_ready(const struct tcp_seal_in *s)
{
	return s->kind == TCP_SEAL_USER && record_in_ready(&s->records);
}

#endif
