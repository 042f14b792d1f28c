/* pipe.h - a pipe that a READ's bytes are moved to, in the pages that they arrived in, instead
 * of being copied to memory.
 *
 * A pipe's room is counted in pieces of pages, of which packets make any number: what does not fit
 * is spilled to memory, and after that the next READs go there without trying.
 *
 * INVARIANT  Whatever was left in it, an answer begins with an empty pipe: tcp_pipe_begin().
 * THREADS    None of its own.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_TCP_PIPE_H
#define RMEMFS_COMMON_TRANSPORT_TCP_PIPE_H

#include <stdbool.h>

#include "common/transport/tcp/stream.h"

struct tcp_pipe {
	int out, in;      /* its ends to read and to write; -1: there is none */
	uint32_t headlen; /* of the answer that is coming in */
	uint64_t got;     /* of its bytes, without the head */
	uint64_t left;    /* to come; 0: no answer is coming in */
	unsigned pause;   /* answers not to be tried */
};

/* Where the system refuses a pipe that is large enough there is none. */
void tcp_pipe_init(struct tcp_pipe *p);
void tcp_pipe_fini(struct tcp_pipe *p);

/* Starts on an answer of so many bytes, which the head goes before. False: it is to go to memory.
 */
bool tcp_pipe_begin(struct tcp_pipe *p, const void *head, uint32_t headlen, uint64_t bytes);

/* Moves what has come of it from the socket: bytes, 0: nothing is there, or -errno. -ECONNRESET:
 * the end. -ENOSPC: the pipe has no room, which only tcp_pipe_spill() can make. */
ssize_t tcp_pipe_fill(struct tcp_pipe *p, int fd);

/* Takes the bytes out again, into the payload's memory, and ends the answer here. 0 or -errno. */
int tcp_pipe_spill(struct tcp_pipe *p, struct tcp_in *payload);

#endif
