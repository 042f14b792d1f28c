/* rpc_fields.h - codes one field of a message, and makes a message from a list of fields.
 *
 * A message is described once, by a list of fields in the order of the wire:
 *
 *     #define PING_FIELDS(F) F(u64, reads) F(u64, writes) ...
 *     RPC_MESSAGE(ping, struct rpc_counters, PING_FIELDS)
 *
 * makes put_ping() and get_ping() from it, so that the two can't differ. Each kind of field has a
 * put_KIND and a get_KIND. A value out of its range counts as truncated, and that ends decoding.
 *
 * F(u32, pages, 9) is a field that the message has since version 9 of the protocol. To earlier ones
 * it is not sent, and from them it is read as 0. New fields come before a tail.
 *
 * Only the message files of rpc.h include this.
 */
#ifndef RMEMFS_COMMON_RPC_RPC_FIELDS_H
#define RMEMFS_COMMON_RPC_RPC_FIELDS_H

#include "common/rpc/rpc.h"

/* Both headers are 16 bytes. */
enum { RPC_HEADER_BYTES = 16 };

#define RPC_SCALAR_FIELD(kind, type, width)                              \
	static inline void put_##kind(struct wire_out *w, const type *v) \
	{                                                                \
		wire_put_u##width(w, (uint##width##_t) * v);             \
	}                                                                \
	static inline void get_##kind(struct wire_in *r, type *v)        \
	{                                                                \
		*v = (type)wire_get_u##width(r);                         \
	}
RPC_SCALAR_FIELD(u8, uint8_t, 8)
RPC_SCALAR_FIELD(u16, uint16_t, 16)
RPC_SCALAR_FIELD(u32, uint32_t, 32)
RPC_SCALAR_FIELD(u64, uint64_t, 64)
RPC_SCALAR_FIELD(i64, int64_t, 64)
#undef RPC_SCALAR_FIELD

static inline void put_flag(struct wire_out *w, const bool *v)
{
	wire_put_u8(w, *v);
}

static inline void get_flag(struct wire_in *r, bool *v)
{
	uint8_t byte = wire_get_u8(r);

	r->truncated |= byte > 1;
	*v = byte == 1;
}

/* 16 bytes: an owner's or a store's id. */
static inline void put_id(struct wire_out *w, const uint8_t (*v)[16])
{
	wire_put(w, *v, sizeof(*v));
}

static inline void get_id(struct wire_in *r, uint8_t (*v)[16])
{
	wire_get(r, *v, sizeof(*v));
}

/* The same, where the message has it only by reference. NULL: zeros. */
static inline void put_id_ref(struct wire_out *w, const uint8_t *const *v)
{
	static const uint8_t none[16];

	wire_put(w, *v ? *v : none, sizeof(none));
}

static inline void get_id_ref(struct wire_in *r, const uint8_t **v)
{
	*v = wire_get_ref(r, 16);
}

static inline void put_str(struct wire_out *w, const struct rpc_str *v)
{
	wire_put_u16(w, v->len);
	wire_put(w, v->s, v->len);
}

static inline void get_str(struct wire_in *r, struct rpc_str *v)
{
	uint16_t len = wire_get_u16(r);

	v->s = wire_get_ref(r, len);
	v->len = v->s ? len : 0;
}

static inline bool rpc_name_is_dots(const struct rpc_str *name)
{
	return name->len && name->s[0] == '.' &&
	       (name->len == 1 || (name->len == 2 && name->s[1] == '.'));
}

static inline bool rpc_name_ok(const struct rpc_str *name)
{
	if (name->len < 1 || name->len > NAME_BYTES_MAX || rpc_name_is_dots(name))
		return false;
	return !memchr(name->s, '/', name->len) && !memchr(name->s, '\0', name->len);
}

/* A directory entry's name. */
#define put_name put_str
static inline void get_name(struct wire_in *r, struct rpc_str *v)
{
	get_str(r, v);
	r->truncated |= !rpc_name_ok(v);
}

/* A name to look up: also "." and "..". */
#define put_lookup_name put_str
static inline void get_lookup_name(struct wire_in *r, struct rpc_str *v)
{
	get_str(r, v);
	r->truncated |= !rpc_name_ok(v) && !rpc_name_is_dots(v);
}

#define put_export_name put_str
static inline void get_export_name(struct wire_in *r, struct rpc_str *v)
{
	get_name(r, v);
	r->truncated |= v->len > EXPORT_NAME_MAX;
}

/* Text for people. It may be empty, and is cut to RPC_TEXT_MAX. */
static inline void put_text(struct wire_out *w, const struct rpc_str *v)
{
	struct rpc_str cut = {v->s, v->len < RPC_TEXT_MAX ? v->len : RPC_TEXT_MAX};

	put_str(w, &cut);
}

static inline void get_text(struct wire_in *r, struct rpc_str *v)
{
	get_str(r, v);
	r->truncated |= v->len > RPC_TEXT_MAX;
}

/* An extended attribute's name, prefix included. */
#define put_xattr_name put_str
static inline void get_xattr_name(struct wire_in *r, struct rpc_str *v)
{
	get_str(r, v);
	r->truncated |= v->len < 1 || v->len > NAME_BYTES_MAX || memchr(v->s, '\0', v->len);
}

/* A symbolic link's target; empty where there is none. */
#define put_target put_str
static inline void get_target(struct wire_in *r, struct rpc_str *v)
{
	get_str(r, v);
	r->truncated |= v->len > SYMLINK_BYTES_MAX || (v->len && memchr(v->s, '\0', v->len));
}

/* The rest of the message. A tail that was filled in place is already exactly where it belongs. */
static inline void put_tail(struct wire_out *w, const struct rpc_tail *v)
{
	if (v->data != w->pos)
		wire_put(w, v->data, v->len);
	else if (v->len <= wire_out_room(w))
		w->pos += v->len;
	else
		w->overflow = true;
}

static inline void get_tail(struct wire_in *r, struct rpc_tail *v)
{
	size_t len = wire_in_left(r);

	v->data = wire_get_ref(r, len);
	v->len = v->data ? (uint32_t)len : 0;
	v->version = r->version;
}

/* The same with a length before it, and with more behind. */
static inline void put_part(struct wire_out *w, const struct rpc_tail *v)
{
	w->overflow |= v->len > UINT16_MAX;
	wire_put_u16(w, (uint16_t)v->len);
	wire_put(w, v->data, v->len);
}

static inline void get_part(struct wire_in *r, struct rpc_tail *v)
{
	uint16_t len = wire_get_u16(r);

	v->data = wire_get_ref(r, len);
	v->len = v->data ? len : 0;
	v->version = r->version;
}

static inline bool rpc_is_since(uint32_t version, uint32_t since)
{
	return version >= since;
}

/* Whether messages of this version have a field with this third argument, or with none. */
#define RPC_HAS_FIELD(version, ...) (!(__VA_ARGS__ + 0) || rpc_is_since(version, __VA_ARGS__ + 0))

#define RPC_PUT_FIELD(kind, field, ...)             \
	if (RPC_HAS_FIELD(w->version, __VA_ARGS__)) \
		put_##kind(w, &m->field);
#define RPC_GET_FIELD(kind, field, ...)             \
	if (RPC_HAS_FIELD(r->version, __VA_ARGS__)) \
		get_##kind(r, &m->field);           \
	else                                        \
		memset(&m->field, 0, sizeof(m->field));
#define RPC_MESSAGE(name, type, FIELDS)                                  \
	static inline void put_##name(struct wire_out *w, const type *m) \
	{                                                                \
		FIELDS(RPC_PUT_FIELD)                                    \
	}                                                                \
	static inline void get_##name(struct wire_in *r, type *m)        \
	{                                                                \
		FIELDS(RPC_GET_FIELD)                                    \
	}

/* The length of a list of fields that have a fixed one: in the version `version`, and in all
 * versions. A tail counts as 0. */
enum {
	RPC_BYTES_u8 = 1,
	RPC_BYTES_u16 = 2,
	RPC_BYTES_u32 = 4,
	RPC_BYTES_u64 = 8,
	RPC_BYTES_i64 = 8,
	RPC_BYTES_flag = 1,
	RPC_BYTES_tail = 0,
};
#define RPC_FIELD_BYTES(kind, field, ...) \
	+(RPC_HAS_FIELD(version, __VA_ARGS__) ? (size_t)RPC_BYTES_##kind : 0)
#define RPC_EACH_FIELD_BYTES(kind, field, ...) +RPC_BYTES_##kind
#define RPC_TAIL_AT(FIELDS)                    (RPC_HEADER_BYTES FIELDS(RPC_FIELD_BYTES))

/* put_body() and get_body() of a union's messages. BODIES(F) lists F(op, name, member) for each op
 * that has a body; name is the message's. NO_BODIES(F) lists F(op) for the others. */
#define RPC_PUT_BODY(op, name, member)     \
	case op:                           \
		put_##name(w, &m->member); \
		break;
#define RPC_GET_BODY(op, name, member)     \
	case op:                           \
		get_##name(r, &m->member); \
		break;
#define RPC_NO_BODY(op) case op:
#define RPC_BODIES(type, BODIES, NO_BODIES)                     \
	static void put_body(struct wire_out *w, const type *m) \
	{                                                       \
		switch ((enum rpc_op)m->op) {                   \
			BODIES(RPC_PUT_BODY)                    \
			NO_BODIES(RPC_NO_BODY)                  \
			break;                                  \
		}                                               \
	}                                                       \
	static void get_body(struct wire_in *r, type *m)        \
	{                                                       \
		switch ((enum rpc_op)m->op) {                   \
			BODIES(RPC_GET_BODY)                    \
			NO_BODIES(RPC_NO_BODY)                  \
			break;                                  \
		}                                               \
	}

#define RPC_ATTR_FIELDS(F) \
	F(u64, ino)        \
	F(u64, size)       \
	F(u64, npages)     \
	F(i64, atime)      \
	F(i64, mtime)      \
	F(i64, ctime)      \
	F(i64, btime)      \
	F(u32, mode)       \
	F(u32, nlink)      \
	F(u32, uid)        \
	F(u32, gid)        \
	F(u32, rdev)       \
	F(u32, generation) \
	F(u32, flags)
RPC_MESSAGE(attr, struct attr, RPC_ATTR_FIELDS)

#define RPC_EXTENT_FIELDS(F) \
	F(u64, fpage)        \
	F(u32, npages)       \
	F(u32, page)         \
	F(u16, target)       \
	F(u16, region)
RPC_MESSAGE(extent_fields, struct extent, RPC_EXTENT_FIELDS)

/* No extent is empty, and none exceeds the last page number. */
#define put_extent put_extent_fields
static inline void get_extent(struct wire_in *r, struct extent *e)
{
	get_extent_fields(r, e);
	r->truncated |=
		!e->npages || e->npages > UINT32_MAX - e->page || e->npages > UINT64_MAX - e->fpage;
}

/* A counted array of extents, at most max. */
static inline void put_extents(struct wire_out *w, uint8_t n, const struct extent *e, uint8_t max)
{
	w->overflow |= n > max;
	wire_put_u8(w, n);
	for (uint8_t i = 0; i < n && !w->overflow; i++)
		put_extent(w, &e[i]);
}

static inline void get_extents(struct wire_in *r, uint8_t *n, struct extent *e, uint8_t max)
{
	*n = wire_get_u8(r);
	r->truncated |= *n > max;
	for (uint8_t i = 0; i < *n && !r->truncated; i++)
		get_extent(r, &e[i]);
}

#endif
