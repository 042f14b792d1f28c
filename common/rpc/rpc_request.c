/* rpc_request.c - coding of requests, which clients send. */
#include "common/rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/rpc/rpc_fields.h"
#include "common/base/util.h"

/* Header: op, slot, four bytes of zero, seq. */

#define ATTACH_FIELDS(F)            \
	F(id, owner)                \
	F(u64, instance)            \
	F(u64, session)             \
	F(id_ref, store_id)         \
	F(u64, ended)               \
	F(i64, born)                \
	F(u16, channel)             \
	F(u16, nchannels)           \
	F(u32, flags)               \
	F(u32, wait_ms)             \
	F(export_name, export_name) \
	F(id_ref, token)            \
	F(text, client)
RPC_MESSAGE(attach, struct rpc_attach, ATTACH_FIELDS)

#define AUTH_FIELDS(F) \
	F(u8, step)    \
	F(tail, tail)
RPC_MESSAGE(auth, struct rpc_auth, AUTH_FIELDS)

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

void rpc_counters_add(struct rpc_counters *sum, const struct rpc_counters *more)
{
#define ADD(kind, name, ...) sum->name += more->name;
	COUNTERS_FIELDS(ADD)
#undef ADD
}

void rpc_counters_subtract(struct rpc_counters *counted, const struct rpc_counters *before)
{
#define SUBTRACT(kind, name, ...) counted->name -= min_u64(counted->name, before->name);
	COUNTERS_FIELDS(SUBTRACT)
#undef SUBTRACT
}

#define BYE_FIELDS(F)         \
	F(counters, counters) \
	F(flag, lost)
RPC_MESSAGE(bye, struct rpc_bye, BYE_FIELDS)

#define CANCEL_FIELDS(F) \
	F(u16, slot)     \
	F(u64, seq)
RPC_MESSAGE(cancel, struct rpc_cancel, CANCEL_FIELDS)

#define STATUS_FIELDS(F) F(u32, offset)
RPC_MESSAGE(status, struct rpc_status, STATUS_FIELDS)

#define WHO_FIELDS(F)               \
	F(u32, offset)              \
	F(export_name, export_name) \
	F(target, path)
RPC_MESSAGE(who, struct rpc_who, WHO_FIELDS)

#define EVICT_FIELDS(F) F(u64, session)
RPC_MESSAGE(evict, struct rpc_evict, EVICT_FIELDS)

#define LOG_FIELDS(F) F(u8, level)
RPC_MESSAGE(log, struct rpc_log, LOG_FIELDS)

#define SNAPSHOT_FIELDS(F)          \
	F(u8, command)              \
	F(export_name, export_name) \
	F(target, dir)
RPC_MESSAGE(snapshot, struct rpc_snapshot, SNAPSHOT_FIELDS)

#define NAME_OF_FIELDS(F) \
	F(u64, ino)       \
	F(flag, exactly)
RPC_MESSAGE(name_of, struct rpc_name_of, NAME_OF_FIELDS)

#define NAME_REQUEST_FIELDS(F) \
	F(u64, parent)         \
	F(name_of, expected)   \
	F(name, name)
RPC_MESSAGE(name_request, struct rpc_name_request, NAME_REQUEST_FIELDS)

#define LOOKUP_FIELDS(F) \
	F(u64, parent)   \
	F(u8, look)      \
	F(lookup_name, name)
RPC_MESSAGE(lookup, struct rpc_name_request, LOOKUP_FIELDS)

#define INO_REQUEST_FIELDS(F) F(u64, ino)
RPC_MESSAGE(ino_request, struct rpc_ino_request, INO_REQUEST_FIELDS)

#define GETATTR_FIELDS(F) \
	F(u64, ino)       \
	F(u8, look)
RPC_MESSAGE(getattr, struct rpc_ino_request, GETATTR_FIELDS)

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

#define ID_RANGE_FIELDS(F) \
	F(u32, first)      \
	F(u32, last)
RPC_MESSAGE(id_range, struct id_range, ID_RANGE_FIELDS)

#define RIGHTS_FIELDS(F)    \
	F(flag, bound)      \
	F(id_range, owners) \
	F(id_range, groups)
RPC_MESSAGE(rights, struct rights, RIGHTS_FIELDS)

#define SETATTR_FIELDS(F) \
	F(u64, ino)       \
	F(u32, valid)     \
	F(u32, mode)      \
	F(u32, uid)       \
	F(u32, gid)       \
	F(u64, size)      \
	F(i64, atime)     \
	F(i64, mtime)     \
	F(i64, ctime)     \
	F(rights, rights)
RPC_MESSAGE(setattr, struct rpc_setattr, SETATTR_FIELDS)

#define CREATE_FIELDS(F)   \
	F(u64, parent)     \
	F(u32, mode)       \
	F(u32, umask)      \
	F(u32, uid)        \
	F(u32, gid)        \
	F(u32, rdev)       \
	F(u32, want_pages) \
	F(flag, exclusive) \
	F(u8, numbers)     \
	F(name, name)      \
	F(target, target)
RPC_MESSAGE(create, struct rpc_create, CREATE_FIELDS)

#define TMPFILE_FIELDS(F) \
	F(u64, parent)    \
	F(u32, mode)      \
	F(u32, umask)     \
	F(u32, uid)       \
	F(u32, gid)       \
	F(u32, want_pages)
RPC_MESSAGE(tmpfile, struct rpc_create, TMPFILE_FIELDS)

#define LINK_FIELDS(F) \
	F(u64, ino)    \
	F(u64, parent) \
	F(u8, numbers) \
	F(name, name)
RPC_MESSAGE(link, struct rpc_link, LINK_FIELDS)

#define RENAME_FIELDS(F)         \
	F(u64, parent)           \
	F(u64, new_parent)       \
	F(u32, flags)            \
	F(u32, uid)              \
	F(u32, gid)              \
	F(name_of, expected)     \
	F(name_of, new_expected) \
	F(name, name)            \
	F(name, new_name)
RPC_MESSAGE(rename, struct rpc_rename, RENAME_FIELDS)

/* The part of COMMIT that tells what was written. */
#define WRITTEN_FIELDS(F) \
	F(u64, ino)       \
	F(u32, flags)     \
	F(u64, size)      \
	F(i64, mtime)     \
	F(i64, ctime)     \
	F(i64, atime)     \
	F(u32, mode)      \
	F(u32, uid)       \
	F(u32, gid)
RPC_MESSAGE(written, struct rpc_commit, WRITTEN_FIELDS)

#define COMMIT_FIELDS(F)  \
	WRITTEN_FIELDS(F) \
	F(u64, lease)     \
	F(u8, keep)       \
	F(tail, tail)
RPC_MESSAGE(commit, struct rpc_commit, COMMIT_FIELDS)

#define MAKES_FIELDS(F)     \
	F(u8, numbers)      \
	F(u16, names_bytes) \
	F(tail, tail)
RPC_MESSAGE(makes, struct rpc_makes, MAKES_FIELDS)

#define NAMES_FIELDS(F) \
	F(u8, numbers)  \
	F(tail, tail)
RPC_MESSAGE(names, struct rpc_names, NAMES_FIELDS)

#define MAKING_FIELDS(F)    \
	F(written, commit)  \
	F(u64, make.parent) \
	F(i64, make.time)   \
	F(u32, make.mode)   \
	F(u32, make.umask)  \
	F(u32, make.uid)    \
	F(u32, make.gid)    \
	F(name, make.name)  \
	F(part, commit.tail)
RPC_MESSAGE(making, struct rpc_making, MAKING_FIELDS)
enum {
	RPC_BYTES_written = 0 WRITTEN_FIELDS(RPC_EACH_FIELD_BYTES),
	RPC_BYTES_name = 2, /* the lengths */
	RPC_BYTES_part = 2,
};
static_assert(0 MAKING_FIELDS(RPC_EACH_FIELD_BYTES) == RPC_MAKING_BYTES, "rpc.h has the length");

enum { INO_BYTES = 8 };

#define GRANT_FIELDS(F)    \
	F(u32, want_pages) \
	F(flag, wait)
RPC_MESSAGE(grant, struct rpc_grant, GRANT_FIELDS)

#define RETURN_FIELDS(F) \
	F(u32, kind)     \
	F(u64, answers)  \
	F(tail, tail)
RPC_MESSAGE(return, struct rpc_return, RETURN_FIELDS)

#define GETXATTR_FIELDS(F) \
	F(u64, ino)        \
	F(u32, offset)     \
	F(u32, keep)       \
	F(xattr_name, name)
RPC_MESSAGE(getxattr, struct rpc_getxattr, GETXATTR_FIELDS)

#define LISTXATTR_FIELDS(F) \
	F(u64, ino)         \
	F(u64, cookie)
RPC_MESSAGE(listxattr, struct rpc_listxattr, LISTXATTR_FIELDS)

#define SETXATTR_FIELDS(F)  \
	F(u64, ino)         \
	F(u32, flags)       \
	F(u32, stage)       \
	F(u32, total)       \
	F(rights, rights)   \
	F(xattr_name, name) \
	F(tail, tail)
RPC_MESSAGE(setxattr, struct rpc_setxattr, SETXATTR_FIELDS)

#define REMOVEXATTR_FIELDS(F) \
	F(u64, ino)           \
	F(xattr_name, name)   \
	F(rights, rights)
RPC_MESSAGE(removexattr, struct rpc_removexattr, REMOVEXATTR_FIELDS)

#define STAGE_FIELDS(F) \
	F(u32, stage)   \
	F(u32, offset)  \
	F(tail, tail)
RPC_MESSAGE(stage, struct rpc_stage, STAGE_FIELDS)

#define FALLOCATE_FIELDS(F) \
	F(u64, ino)         \
	F(u32, mode)        \
	F(u64, offset)      \
	F(u64, len)
RPC_MESSAGE(fallocate, struct rpc_fallocate, FALLOCATE_FIELDS)

#define COPY_FIELDS(F)     \
	F(u64, src)        \
	F(u64, src_offset) \
	F(u64, dst)        \
	F(u64, dst_offset) \
	F(u64, len)
RPC_MESSAGE(copy, struct rpc_copy, COPY_FIELDS)

#define QUOTA_FIELDS(F) \
	F(u8, kind)     \
	F(u32, id)      \
	F(u64, npages)  \
	F(flag, give_back)
RPC_MESSAGE(quota, struct rpc_quota, QUOTA_FIELDS)

#define LEASE_FIELDS(F) \
	F(u64, ino)     \
	F(u8, type)     \
	F(u8, flags)
RPC_MESSAGE(lease, struct rpc_lease, LEASE_FIELDS)

#define LOCK_FIELDS(F) \
	F(u64, ino)    \
	F(u64, owner)  \
	F(u64, wait)   \
	F(u64, start)  \
	F(u64, end)    \
	F(u32, pid)    \
	F(u8, kind)    \
	F(u8, type)
RPC_MESSAGE(lock, struct rpc_lock, LOCK_FIELDS)

#define CONVERT_FIELDS(F) F(u8, state)
RPC_MESSAGE(convert, struct rpc_convert, CONVERT_FIELDS)

#define FROZEN_FIELDS(F) F(u64, snapshot)
RPC_MESSAGE(frozen, struct rpc_frozen, FROZEN_FIELDS)

#define BODIES(F)                                    \
	F(RPC_ATTACH, attach, attach)                \
	F(RPC_REGIONS, regions, regions)             \
	F(RPC_PING, counters, ping)                  \
	F(RPC_BYE, bye, bye)                         \
	F(RPC_CANCEL, cancel, cancel)                \
	F(RPC_AUTH, auth, auth)                      \
	F(RPC_STATUS, status, status)                \
	F(RPC_WHO, who, who)                         \
	F(RPC_EVICT, evict, evict)                   \
	F(RPC_LOG, log, log)                         \
	F(RPC_LOOKUP, lookup, name)                  \
	F(RPC_UNLINK, name_request, name)            \
	F(RPC_RMDIR, name_request, name)             \
	F(RPC_GETATTR, getattr, ino)                 \
	F(RPC_READLINK, ino_request, ino)            \
	F(RPC_READDIR, readdir, readdir)             \
	F(RPC_EXTENTS, extents_request, extents)     \
	F(RPC_SETATTR, setattr, setattr)             \
	F(RPC_CREATE, create, create)                \
	F(RPC_MKNOD, create, create)                 \
	F(RPC_MKDIR, create, create)                 \
	F(RPC_SYMLINK, create, create)               \
	F(RPC_LINK, link, link)                      \
	F(RPC_RENAME, rename, rename)                \
	F(RPC_COMMIT, commit, commit)                \
	F(RPC_MAKE, makes, makes)                    \
	F(RPC_NAMES, names, names)                   \
	F(RPC_GRANT, grant, grant)                   \
	F(RPC_RETURN, return, ret)                   \
	F(RPC_SNAPSHOT, snapshot, snapshot)          \
	F(RPC_GETXATTR, getxattr, getxattr)          \
	F(RPC_LISTXATTR, listxattr, listxattr)       \
	F(RPC_FROZEN, frozen, frozen)                \
	F(RPC_UNPROTECT, tail, unprotect.tail)       \
	F(RPC_TMPFILE, tmpfile, create)              \
	F(RPC_SETXATTR, setxattr, setxattr)          \
	F(RPC_REMOVEXATTR, removexattr, removexattr) \
	F(RPC_STAGE, stage, stage)                   \
	F(RPC_FALLOCATE, fallocate, fallocate)       \
	F(RPC_COPY, copy, copy)                      \
	F(RPC_QUOTA, quota, quota)                   \
	F(RPC_LEASE, lease, lease)                   \
	F(RPC_CONVERT, convert, convert)             \
	F(RPC_GETLK, lock, lock)                     \
	F(RPC_LOCK, lock, lock)
#define NO_BODIES(F) F(RPC_STATFS) F(RPC_RELOAD) F(RPC_TRIAL) F(RPC_OP_MAX)
RPC_BODIES(struct rpc_request, BODIES, NO_BODIES)

enum {
	SET_ALL = SET_MODE | SET_UID | SET_GID | SET_SIZE | SET_ATIME | SET_MTIME | SET_ATIME_NOW |
		  SET_MTIME_NOW | SET_CTIME | SET_NO_CAPS | SET_NO_PRIVILEGES,
	COMMIT_ALL =
		COMMIT_MODE | COMMIT_UID | COMMIT_GID | COMMIT_SIZE | COMMIT_ATIME | COMMIT_MTIME,
	LEASE_FLAGS_ALL = LEASE_PIN | LEASE_IF_FREE | LEASE_OR_LAYOUT,
	LOOK_ALL = LOOK_LEASE | LOOK_LEASE_DIR,
	SETXATTR_ALL = SETXATTR_CREATE | SETXATTR_REPLACE | SETXATTR_KILL_SGID,
};

bool rpc_rename_flags_ok(uint32_t flags)
{
	return !(flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_WHITEOUT)) ||
	       flags == RENAME_EXCHANGE;
}

static bool tail_of(const struct rpc_tail *tail, size_t element_bytes)
{
	return tail->len % element_bytes == 0;
}

static bool range_ok(uint64_t offset, uint64_t len)
{
	return len <= INT64_MAX && offset <= INT64_MAX - len;
}

static bool setxattr_ok(const struct rpc_setxattr *q)
{
	return !(q->flags & ~(uint32_t)SETXATTR_ALL) && q->total <= XATTR_VALUE_MAX &&
	       q->tail.len <= q->total && (q->stage != 0) == (q->tail.len < q->total);
}

static bool copy_ok(const struct rpc_copy *q)
{
	return q->len && range_ok(q->src_offset, q->len) && range_ok(q->dst_offset, q->len);
}

static bool snapshot_ok(const struct rpc_snapshot *q)
{
	return q->command >= SNAPSHOT_START && q->command <= SNAPSHOT_CANCEL &&
	       (q->dir.len > 0) == (q->command == SNAPSHOT_START);
}

static bool name_changes_ok(const struct rpc_tail *tail)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct rpc_name_change change;

	while (rpc_get_name_change(&r, &change))
		;
	return !r.truncated;
}

static bool names_ok(const struct rpc_names *q)
{
	return q->numbers <= NUMBERS_ANEW && q->tail.len && name_changes_ok(&q->tail);
}

static bool return_ok(const struct rpc_return *q)
{
	switch (q->kind) {
	case RETURN_INODES:
		return !q->answers && tail_of(&q->tail, INO_BYTES);
	case RETURN_GRANTS:
		return tail_of(&q->tail, RPC_EXTENT_BYTES);
	case RETURN_LEASES:
		return !q->answers && tail_of(&q->tail, RPC_RETURNED_BYTES);
	case RETURN_ALL:
		return !q->answers && !q->tail.len;
	default:
		return false;
	}
}

static bool commit_ok(const struct rpc_commit *q)
{
	return !(q->flags & ~(uint32_t)COMMIT_ALL) && q->size <= INT64_MAX &&
	       (q->lease ? q->keep > LEASE_NONE && q->keep < LEASE_EXCLUSIVE
			 : q->keep == LEASE_NONE) &&
	       tail_of(&q->tail, RPC_EXTENT_BYTES);
}

bool rpc_put_making(struct wire_out *w, const struct rpc_making *making)
{
	size_t len = RPC_MAKING_BYTES + making->make.name.len + making->commit.tail.len;

	if (w->overflow || len > wire_out_room(w))
		return false;
	put_making(w, making);
	return true;
}

bool rpc_get_making(struct wire_in *r, struct rpc_making *making)
{
	if (!wire_in_left(r))
		return false;
	making->commit.lease = 0;
	making->commit.keep = LEASE_NONE;
	get_making(r, making);
	r->truncated |= !commit_ok(&making->commit) || !S_ISREG(making->make.mode);
	return !r->truncated;
}

void rpc_makes_parts(const struct rpc_makes *makes, struct rpc_tail *names, struct rpc_tail *files)
{
	*names = *files = makes->tail;
	names->len = makes->names_bytes;
	files->data += makes->names_bytes;
	files->len -= makes->names_bytes;
}

static bool makes_ok(const struct rpc_makes *q)
{
	struct rpc_tail names, files;
	struct rpc_making making;
	struct wire_in r;
	unsigned n = 0;

	if (q->names_bytes >= q->tail.len)
		return false;
	rpc_makes_parts(q, &names, &files);
	r = rpc_tail_reader(&files);
	while (n <= MAKES_MAX && rpc_get_making(&r, &making))
		n++;
	return q->numbers <= NUMBERS_ANEW && n && n <= MAKES_MAX && !r.truncated &&
	       name_changes_ok(&names);
}

static bool lease_ok(const struct rpc_lease *q)
{
	return !(q->flags & ~LEASE_FLAGS_ALL) &&
	       (q->type == LEASE_SHARED || q->type == LEASE_EXCLUSIVE ||
		       (q->type == LEASE_NONE && q->flags & LEASE_PIN));
}

static bool lock_ok(const struct rpc_lock *q)
{
	return (q->kind == LOCK_KIND_POSIX || q->kind == LOCK_KIND_FLOCK) &&
	       q->type <= LOCK_EXCLUSIVE && q->start <= q->end && q->end <= LOCK_END_MAX;
}

/* Checks values whose range depends on each other or on the op. */
static bool body_ok(const struct rpc_request *q)
{
	switch ((enum rpc_op)q->op) {
	case RPC_ATTACH:
		return q->attach.channel < q->attach.nchannels &&
		       !(q->attach.flags & ~(uint32_t)ATTACH_ALL);
	case RPC_AUTH:
		return (q->auth.step == 1 || q->auth.step == 2) && q->auth.tail.len &&
		       q->auth.tail.len <= RPC_AUTH_FLIGHT_MAX && !q->seq;
	case RPC_LOOKUP:
		return !(q->name.look & ~LOOK_ALL);
	case RPC_GETATTR:
		return !(q->ino.look & ~LOOK_LEASE);
	case RPC_SETATTR:
		return !(q->setattr.valid & ~(uint32_t)SET_ALL) && q->setattr.size <= INT64_MAX;
	case RPC_SYMLINK:
		return q->create.target.len > 0 && q->create.numbers <= NUMBERS_ANEW;
	case RPC_CREATE:
	case RPC_MKDIR:
		return q->create.target.len == 0 && q->create.numbers <= NUMBERS_ANEW;
	case RPC_MKNOD:
		return q->create.target.len == 0 && !q->create.numbers;
	case RPC_LINK:
		return q->link.numbers <= NUMBERS_ANEW;
	case RPC_RENAME:
		return rpc_rename_flags_ok(q->rename.flags);
	case RPC_COMMIT:
		return commit_ok(&q->commit);
	case RPC_MAKE:
		return makes_ok(&q->makes);
	case RPC_NAMES:
		return names_ok(&q->names);
	case RPC_RETURN:
		return return_ok(&q->ret);
	case RPC_SNAPSHOT:
		return snapshot_ok(&q->snapshot);
	case RPC_WHO:
		return q->who.path.len > 0;
	case RPC_LOG:
		return q->log.level >= LOG_LEVEL_ERROR && q->log.level <= LOG_LEVEL_DEBUG;
	case RPC_SETXATTR:
		return setxattr_ok(&q->setxattr);
	case RPC_STAGE:
		return q->stage.stage && (q->stage.tail.len || !q->stage.offset) &&
		       q->stage.offset <= XATTR_VALUE_MAX &&
		       q->stage.tail.len <= XATTR_VALUE_MAX - q->stage.offset;
	case RPC_FALLOCATE:
		return q->fallocate.len && range_ok(q->fallocate.offset, q->fallocate.len);
	case RPC_COPY:
		return copy_ok(&q->copy);
	case RPC_QUOTA:
		return q->quota.kind == QUOTA_USER || q->quota.kind == QUOTA_GROUP;
	case RPC_UNPROTECT:
		return tail_of(&q->unprotect.tail, RPC_EXTENT_BYTES);
	case RPC_LEASE:
		return lease_ok(&q->lease);
	case RPC_CONVERT:
		return q->convert.state >= CONVERT_SHARES && q->convert.state <= CONVERT_NOT_NOW;
	case RPC_GETLK:
		return lock_ok(&q->lock) && q->lock.type != LOCK_FREE && !q->lock.wait;
	case RPC_LOCK:
		return lock_ok(&q->lock);
	default:
		return true;
	}
}

static bool header_ok(const struct rpc_request *q, uint32_t version)
{
	const struct rpc_op_info *info = rpc_op_info(q->op);

	if (!info->name || info->since > version)
		return false;
	return info->slotted ? q->slot != RPC_NO_SLOT && q->seq : q->slot == RPC_NO_SLOT;
}

int rpc_request_encode(
	const struct rpc_request *req, uint32_t version, void *buf, size_t buflen, size_t *len)
{
	const struct rpc_op_info *info = rpc_op_info(req->op);
	struct wire_out w;

	if (!info->name || info->since > version)
		return -EPROTO;
	wire_out_init(&w, buf, buflen);
	w.version = version;
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

int rpc_request_decode(struct rpc_request *req, uint32_t version, const void *buf, size_t len)
{
	struct rpc_request q = {0};
	struct wire_in r;
	uint32_t zero;

	wire_in_init(&r, buf, len);
	r.version = version;
	q.op = wire_get_u16(&r);
	q.slot = wire_get_u16(&r);
	zero = wire_get_u32(&r);
	q.seq = wire_get_u64(&r);
	if (r.truncated || zero || !header_ok(&q, version))
		return -EPROTO;
	get_body(&r, &q);
	if (r.truncated || wire_in_left(&r) || !body_ok(&q))
		return -EPROTO;
	*req = q;
	return 0;
}

size_t rpc_request_tail_at(unsigned op, uint32_t version)
{
	switch (op) {
	case RPC_AUTH:
		return RPC_TAIL_AT(AUTH_FIELDS);
	case RPC_COMMIT:
		return RPC_TAIL_AT(COMMIT_FIELDS);
	case RPC_MAKE:
		return RPC_TAIL_AT(MAKES_FIELDS);
	case RPC_RETURN:
		return RPC_TAIL_AT(RETURN_FIELDS);
	case RPC_STAGE:
		return RPC_TAIL_AT(STAGE_FIELDS);
	case RPC_NAMES:
		return RPC_TAIL_AT(NAMES_FIELDS);
	case RPC_UNPROTECT:
		return RPC_HEADER_BYTES;
	default:
		return 0;
	}
}
