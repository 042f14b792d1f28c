/* pipe.h - a pipe for a READ's bytes. They are moved to it in the pages that they arrived in,
 * instead of being copied to memory.
 *
 * A pipe's room is counted in pieces of pages, and packets make any number of pieces. Bytes that do
 * not fit are spilled to memory, and the next READs go there without a try.
 *
 * INVARIANT  tcp_pipe_begin() starts each answer with an empty pipe, whatever was left in it.
 * THREADS    None of its own.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TCP_PIPE_H
#define RMEMFS_COMMON_TRANSPORT_TCP_PIPE_H

#include <stdbool.h>

#include "common/transport/tcp/stream.h"

struct tcp_pipe {
	int out, in;      /* its ends to read and to write; -1: there is none */
	uint32_t headlen; /* of the answer that is arriving */
	uint64_t got;     /* bytes of the answer that arrived, without the head */
	uint64_t left;    /* bytes to come; 0: no answer is arriving */
	unsigned pause;   /* so many answers go to memory without a try */
};

/* If the system refuses a large enough pipe, there is none. */
void tcp_pipe_init(struct tcp_pipe *p);
void tcp_pipe_fini(struct tcp_pipe *p);

/* Starts an answer of so many bytes, with the head in front. False: it goes to memory.
 */
bool tcp_pipe_begin(struct tcp_pipe *p, const void *head, uint32_t headlen, uint64_t bytes);

/* Moves arrived bytes from the socket: bytes, 0: none are there, or -errno. -ECONNRESET: the end.
 * -ENOSPC: the pipe has no room, and only tcp_pipe_spill() can make some. */
ssize_t tcp_pipe_fill(struct tcp_pipe *p, int fd);

/* Takes the bytes out again, into the payload's memory, and ends the answer here. 0 or -errno. */
int tcp_pipe_spill(struct tcp_pipe *p, struct tcp_in *payload);

#endif
