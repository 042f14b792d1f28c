/* frame.c - see frame.h. */
#include "common/transport/sock/frame.h"

#include <assert.h>
#include <errno.h>

#include "common/rpc/wire.h"

void sock_frame_encode(const struct sock_frame *frame, uint8_t out[FRAME_BYTES])
{
	struct wire_out w;

	wire_out_init(&w, out, FRAME_BYTES);
	wire_put_u8(&w, frame->type);
	wire_put_u8(&w, frame->flags);
	wire_put_u16(&w, 0);
	wire_put_u32(&w, frame->count);
	wire_put_u32(&w, frame->arg);
	wire_put_u32(&w, frame->rkey);
	wire_put_u64(&w, frame->addr);
	wire_put_u64(&w, frame->len);
	assert(!w.overflow && wire_out_len(&w) == FRAME_BYTES);
}

/* The other types' fields are checked where they are used. */
static bool has_unused_fields(const struct sock_frame *frame)
{
	return frame->type == FRAME_MESSAGE && (frame->count || frame->rkey || frame->addr ||
						       (frame->arg && !(frame->flags & FRAME_IMM)));
}

int sock_frame_decode(const uint8_t in[FRAME_BYTES], struct sock_frame *frame)
{
	struct wire_in r;
	uint16_t zero;

	wire_in_init(&r, in, FRAME_BYTES);
	frame->type = wire_get_u8(&r);
	frame->flags = wire_get_u8(&r);
	zero = wire_get_u16(&r);
	frame->count = wire_get_u32(&r);
	frame->arg = wire_get_u32(&r);
	frame->rkey = wire_get_u32(&r);
	frame->addr = wire_get_u64(&r);
	frame->len = wire_get_u64(&r);
	if (frame->type < FRAME_MESSAGE || frame->type > FRAME_DONE || zero ||
		(frame->flags & ~FRAME_IMM) || has_unused_fields(frame))
		return -EPROTO;
	return 0;
}

void sock_range_encode(const struct sock_range *range, uint8_t out[FRAME_RANGE_BYTES])
{
	struct wire_out w;

	wire_out_init(&w, out, FRAME_RANGE_BYTES);
	wire_put_u64(&w, range->addr);
	wire_put_u32(&w, range->len);
	wire_put_u32(&w, range->rkey);
}

void sock_range_decode(const uint8_t in[FRAME_RANGE_BYTES], struct sock_range *range)
{
	struct wire_in r;

	wire_in_init(&r, in, FRAME_RANGE_BYTES);
	range->addr = wire_get_u64(&r);
	range->len = wire_get_u32(&r);
	range->rkey = wire_get_u32(&r);
}
