/* wire.h - cursors that write little-endian values into a message and read them.
 *
 * A cursor never passes its end: a put or get beyond it sets the cursor's error and does nothing
 * (get gives zeros). So a whole message is coded first and checked once. No I/O, no allocation.
 */
#ifndef RMEMFS_COMMON_RPC_WIRE_H
#define RMEMFS_COMMON_RPC_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* version: of the protocol (wire_version.h), where bytes of messages are coded; else 0. */
struct wire_out {
	uint8_t *start, *pos, *end;
	bool overflow;
	uint32_t version;
};

struct wire_in {
	const uint8_t *pos, *end;
	bool truncated;
	uint32_t version;
};

static inline void wire_out_init(struct wire_out *w, void *buf, size_t len)
{
	*w = (struct wire_out){.start = buf, .pos = buf, .end = (uint8_t *)buf + len};
}

static inline size_t wire_out_len(const struct wire_out *w)
{
	return (size_t)(w->pos - w->start);
}

static inline size_t wire_out_room(const struct wire_out *w)
{
	return (size_t)(w->end - w->pos);
}

static inline void wire_put(struct wire_out *w, const void *data, size_t len)
{
	if (w->overflow || len > wire_out_room(w)) {
		w->overflow = true;
		return;
	}
	if (len)
		memcpy(w->pos, data, len);
	w->pos += len;
}

static inline void wire_in_init(struct wire_in *r, const void *buf, size_t len)
{
	*r = (struct wire_in){.pos = buf, .end = (const uint8_t *)buf + len};
}

static inline size_t wire_in_left(const struct wire_in *r)
{
	return (size_t)(r->end - r->pos);
}

/* The next len bytes in place, or NULL beyond the end. */
static inline const void *wire_get_ref(struct wire_in *r, size_t len)
{
	const void *at = r->pos;

	if (r->truncated || len > wire_in_left(r)) {
		r->truncated = true;
		return NULL;
	}
	r->pos += len;
	return at;
}

static inline void wire_get(struct wire_in *r, void *data, size_t len)
{
	const void *at = wire_get_ref(r, len);

	if (at && len)
		memcpy(data, at, len);
	else if (len)
		memset(data, 0, len);
}

#define WIRE_SCALAR(bits)                                                             \
	static inline void wire_put_u##bits(struct wire_out *w, uint##bits##_t value) \
	{                                                                             \
		uint##bits##_t le = htole##bits(value);                               \
		wire_put(w, &le, sizeof(le));                                         \
	}                                                                             \
	static inline uint##bits##_t wire_get_u##bits(struct wire_in *r)              \
	{                                                                             \
		uint##bits##_t le;                                                    \
		wire_get(r, &le, sizeof(le));                                         \
		return le##bits##toh(le);                                             \
	}
#define htole8(x) (x)
#define le8toh(x) (x)
WIRE_SCALAR(8)
WIRE_SCALAR(16)
WIRE_SCALAR(32)
WIRE_SCALAR(64)
#undef WIRE_SCALAR
#undef htole8
#undef le8toh

#endif
