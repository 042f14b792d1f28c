/* frame.h - frames on a socket after the hello: a 32-byte header and a payload.
 *
 *     MESSAGE  len bytes; arg is the immediate if FRAME_IMM
 *     BYE      the sender has finished: arg is its status (0: in order)
 *     REGION   shm, server to client, with a descriptor: rkey, len, access in arg
 *     READ     tcp, client to server: count ranges, the first one in the header, the others
 *              behind it as 16 bytes each
 *     WRITE    the same; after the ranges come the bytes of all of them
 *     DONE     tcp, server to client: the oldest READ or WRITE ended with arg; len bytes follow
 *
 * All little-endian; fields that a type doesn't use are 0. READ and WRITE are answered in order.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_FRAME_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_FRAME_H

#include <stdint.h>

enum sock_frame_type {
	FRAME_MESSAGE = 1,
	FRAME_BYE,
	FRAME_REGION,
	FRAME_READ,
	FRAME_WRITE,
	FRAME_DONE,
};

enum { FRAME_IMM = 1 };
enum { FRAME_BYTES = 32, FRAME_RANGE_BYTES = 16 };

struct sock_frame {
	uint8_t type, flags;
	uint32_t count;
	uint32_t arg;
	uint32_t rkey;
	uint64_t addr;
	uint64_t len;
};

/* One contiguous piece of a region. */
struct sock_range {
	uint64_t addr;
	uint32_t len;
	uint32_t rkey;
};

void sock_frame_encode(const struct sock_frame *frame, uint8_t out[FRAME_BYTES]);
/* -EPROTO: unknown type or flags, or a MESSAGE with a field that it does not use. */
int sock_frame_decode(const uint8_t in[FRAME_BYTES], struct sock_frame *frame);

void sock_range_encode(const struct sock_range *range, uint8_t out[FRAME_RANGE_BYTES]);
void sock_range_decode(const uint8_t in[FRAME_RANGE_BYTES], struct sock_range *range);

#endif
