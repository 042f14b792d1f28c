/* rpc_request.c - requests: what clients send. */
#include "common/rpc.h"

#include <errno.h>
#include <stdio.h>

#include "common/rpc_fields.h"

/* Header: op, slot, four bytes of zero, seq. */

#define ATTACH_FIELDS(F)            \
	F(id, owner)                \
	F(u64, instance)            \
	F(u64, session)             \
	F(u16, channel)             \
	F(u16, nchannels)           \
	F(u32, flags)               \
	F(u32, wait_ms)             \
	F(export_name, export_name) \
	F(text, client)
RPC_MESSAGE(attach, struct rpc_attach, ATTACH_FIELDS)

#define REGIONS_FIELDS(F) F(u32, first)
RPC_MESSAGE(regions, struct rpc_regions, REGIONS_FIELDS)

#define COUNTERS_FIELDS(F)  \
	F(u64, reads)       \
	F(u64, writes)      \
	F(u64, read_bytes)  \
	F(u64, write_bytes) \
	F(u64, rpcs)        \
	F(u64, rpc_data_bytes)
RPC_MESSAGE(counters, struct rpc_counters, COUNTERS_FIELDS)

#define STATUS_FIELDS(F) F(u32, offset)
RPC_MESSAGE(status, struct rpc_status, STATUS_FIELDS)

#define NAME_REQUEST_FIELDS(F) \
	F(u64, parent)         \
	F(name, name)
RPC_MESSAGE(name_request, struct rpc_name_request, NAME_REQUEST_FIELDS)

#define INO_REQUEST_FIELDS(F) F(u64, ino)
RPC_MESSAGE(ino_request, struct rpc_ino_request, INO_REQUEST_FIELDS)

#define READDIR_FIELDS(F) \
	F(u64, ino)       \
	F(u64, cookie)    \
	F(u32, bytes)     \
	F(flag, plus)
RPC_MESSAGE(readdir, struct rpc_readdir, READDIR_FIELDS)

#define EXTENTS_FIELDS(F) \
	F(u64, ino)       \
	F(u64, fpage)
RPC_MESSAGE(extents_request, struct rpc_extents, EXTENTS_FIELDS)

#define SETATTR_FIELDS(F) \
	F(u64, ino)       \
	F(u32, valid)     \
	F(u32, mode)      \
	F(u32, uid)       \
	F(u32, gid)       \
	F(u64, size)      \
	F(i64, atime)     \
	F(i64, mtime)     \
	F(i64, ctime)
RPC_MESSAGE(setattr, struct rpc_setattr, SETATTR_FIELDS)

#define CREATE_FIELDS(F)   \
	F(u64, parent)     \
	F(u32, mode)       \
	F(u32, uid)        \
	F(u32, gid)        \
	F(u32, rdev)       \
	F(u32, want_pages) \
	F(flag, exclusive) \
	F(name, name)      \
	F(target, target)
RPC_MESSAGE(create, struct rpc_create, CREATE_FIELDS)

#define LINK_FIELDS(F) \
	F(u64, ino)    \
	F(u64, parent) \
	F(name, name)
RPC_MESSAGE(link, struct rpc_link, LINK_FIELDS)

#define RENAME_FIELDS(F)   \
	F(u64, parent)     \
	F(u64, new_parent) \
	F(u32, flags)      \
	F(name, name)      \
	F(name, new_name)
RPC_MESSAGE(rename, struct rpc_rename, RENAME_FIELDS)

#define COMMIT_FIXED_FIELDS(F) \
	F(u64, ino)            \
	F(u32, flags)          \
	F(u64, size)           \
	F(i64, mtime)          \
	F(u32, want_pages)
#define COMMIT_FIELDS(F)       \
	COMMIT_FIXED_FIELDS(F) \
	F(tail, tail)
RPC_MESSAGE(commit, struct rpc_commit, COMMIT_FIELDS)
enum { COMMIT_FIXED_BYTES = 32, RETURN_FIXED_BYTES = 4, INO_BYTES = 8 };

#define GRANT_FIELDS(F)    \
	F(u32, want_pages) \
	F(flag, wait)
RPC_MESSAGE(grant, struct rpc_grant, GRANT_FIELDS)

#define RETURN_FIELDS(F) \
	F(u32, kind)     \
	F(tail, tail)
RPC_MESSAGE(return, struct rpc_return, RETURN_FIELDS)

static void put_body(struct wire_out *w, const struct rpc_request *q)
{
	switch ((enum rpc_op)q->op) {
	case RPC_ATTACH:
		put_attach(w, &q->attach);
		break;
	case RPC_REGIONS:
		put_regions(w, &q->regions);
		break;
	case RPC_PING:
	case RPC_BYE:
		put_counters(w, &q->ping);
		break;
	case RPC_STATUS:
		put_status(w, &q->status);
		break;
	case RPC_LOOKUP:
	case RPC_UNLINK:
	case RPC_RMDIR:
		put_name_request(w, &q->name);
		break;
	case RPC_GETATTR:
	case RPC_READLINK:
		put_ino_request(w, &q->ino);
		break;
	case RPC_READDIR:
		put_readdir(w, &q->readdir);
		break;
	case RPC_EXTENTS:
		put_extents_request(w, &q->extents);
		break;
	case RPC_SETATTR:
		put_setattr(w, &q->setattr);
		break;
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
		put_create(w, &q->create);
		break;
	case RPC_LINK:
		put_link(w, &q->link);
		break;
	case RPC_RENAME:
		put_rename(w, &q->rename);
		break;
	case RPC_COMMIT:
		put_commit(w, &q->commit);
		break;
	case RPC_GRANT:
		put_grant(w, &q->grant);
		break;
	case RPC_RETURN:
		put_return(w, &q->ret);
		break;
	case RPC_STATFS:
	case RPC_OP_MAX:
		break;
	}
}

static void get_body(struct wire_in *r, struct rpc_request *q)
{
	switch ((enum rpc_op)q->op) {
	case RPC_ATTACH:
		get_attach(r, &q->attach);
		break;
	case RPC_REGIONS:
		get_regions(r, &q->regions);
		break;
	case RPC_PING:
	case RPC_BYE:
		get_counters(r, &q->ping);
		break;
	case RPC_STATUS:
		get_status(r, &q->status);
		break;
	case RPC_LOOKUP:
	case RPC_UNLINK:
	case RPC_RMDIR:
		get_name_request(r, &q->name);
		break;
	case RPC_GETATTR:
	case RPC_READLINK:
		get_ino_request(r, &q->ino);
		break;
	case RPC_READDIR:
		get_readdir(r, &q->readdir);
		break;
	case RPC_EXTENTS:
		get_extents_request(r, &q->extents);
		break;
	case RPC_SETATTR:
		get_setattr(r, &q->setattr);
		break;
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
	case RPC_SYMLINK:
		get_create(r, &q->create);
		break;
	case RPC_LINK:
		get_link(r, &q->link);
		break;
	case RPC_RENAME:
		get_rename(r, &q->rename);
		break;
	case RPC_COMMIT:
		get_commit(r, &q->commit);
		break;
	case RPC_GRANT:
		get_grant(r, &q->grant);
		break;
	case RPC_RETURN:
		get_return(r, &q->ret);
		break;
	case RPC_STATFS:
	case RPC_OP_MAX:
		break;
	}
}

enum {
	SET_ALL = SET_MODE | SET_UID | SET_GID | SET_SIZE | SET_ATIME | SET_MTIME | SET_ATIME_NOW |
		  SET_MTIME_NOW | SET_CTIME,
	RENAME_ALL = RENAME_NOREPLACE | RENAME_EXCHANGE,
	COMMIT_ALL = COMMIT_SIZE | COMMIT_MTIME,
};

static bool tail_of(const struct rpc_tail *tail, size_t element_bytes)
{
	return tail->len % element_bytes == 0;
}

/* Values that only together, or with the op, are in range. */
static bool body_ok(const struct rpc_request *q)
{
	switch ((enum rpc_op)q->op) {
	case RPC_ATTACH:
		return q->attach.channel < q->attach.nchannels &&
		       !(q->attach.flags & ~(uint32_t)ATTACH_READ_ONLY);
	case RPC_SETATTR:
		return !(q->setattr.valid & ~(uint32_t)SET_ALL) && q->setattr.size <= INT64_MAX;
	case RPC_SYMLINK:
		return q->create.target.len > 0;
	case RPC_CREATE:
	case RPC_MKNOD:
	case RPC_MKDIR:
		return q->create.target.len == 0;
	case RPC_RENAME:
		return !(q->rename.flags & ~(uint32_t)RENAME_ALL) && q->rename.flags != RENAME_ALL;
	case RPC_COMMIT:
		return !(q->commit.flags & ~(uint32_t)COMMIT_ALL) && q->commit.size <= INT64_MAX &&
		       tail_of(&q->commit.tail, RPC_EXTENT_BYTES);
	case RPC_RETURN:
		return (q->ret.kind == RETURN_INODES && tail_of(&q->ret.tail, INO_BYTES)) ||
		       (q->ret.kind == RETURN_GRANTS && tail_of(&q->ret.tail, RPC_EXTENT_BYTES));
	default:
		return true;
	}
}

static bool header_ok(const struct rpc_request *q)
{
	const struct rpc_op_info *info = rpc_op_info(q->op);

	if (!info->name)
		return false;
	return info->slotted ? q->slot != RPC_NO_SLOT && q->seq : q->slot == RPC_NO_SLOT && !q->seq;
}

int rpc_request_encode(const struct rpc_request *req, void *buf, size_t buflen, size_t *len)
{
	struct wire_out w;

	if (!rpc_op_info(req->op)->name)
		return -EPROTO;
	wire_out_init(&w, buf, buflen);
	wire_put_u16(&w, req->op);
	wire_put_u16(&w, req->slot);
	wire_put_u32(&w, 0);
	wire_put_u64(&w, req->seq);
	put_body(&w, req);
	if (w.overflow)
		return -EMSGSIZE;
	*len = wire_out_len(&w);
	return 0;
}

int rpc_request_decode(struct rpc_request *req, const void *buf, size_t len)
{
	struct rpc_request q = {0};
	struct wire_in r;
	uint32_t zero;

	wire_in_init(&r, buf, len);
	q.op = wire_get_u16(&r);
	q.slot = wire_get_u16(&r);
	zero = wire_get_u32(&r);
	q.seq = wire_get_u64(&r);
	if (r.truncated || zero || !header_ok(&q))
		return -EPROTO;
	get_body(&r, &q);
	if (r.truncated || wire_in_left(&r) || !body_ok(&q))
		return -EPROTO;
	*req = q;
	return 0;
}

size_t rpc_request_tail_at(unsigned op)
{
	switch (op) {
	case RPC_COMMIT:
		return RPC_HEADER_BYTES + COMMIT_FIXED_BYTES;
	case RPC_RETURN:
		return RPC_HEADER_BYTES + RETURN_FIXED_BYTES;
	default:
		return 0;
	}
}
