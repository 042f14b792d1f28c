/* rpc_reply.c - coding of replies, which the server sends. */
#include "common/rpc/rpc.h"

#include <errno.h>

#include "common/rpc/rpc_fields.h"

/* Header: op, slot, status, seq. With a status other than 0, a text is the body. */

#define AUTH_FIELDS(F) F(tail, tail)
RPC_MESSAGE(auth_fields, struct rpc_auth_reply, AUTH_FIELDS)

#define put_auth put_auth_fields
static inline void get_auth(struct wire_in *r, struct rpc_auth_reply *m)
{
	get_auth_fields(r, m);
	r->truncated |= m->tail.len > RPC_AUTH_FLIGHT_MAX;
}

#define SQUASH_FIELDS(F) \
	F(u8, kind)      \
	F(u32, anonuid)  \
	F(u32, anongid)
RPC_MESSAGE(squash_fields, struct squash, SQUASH_FIELDS)

#define put_squash put_squash_fields
static inline void get_squash(struct wire_in *r, struct squash *m)
{
	get_squash_fields(r, m);
	/* An anonymous root would be none. */
	r->truncated |= m->kind >= SQUASH_KINDS ||
			(m->kind != SQUASH_NONE && (m->anonuid == 0 || m->anongid == 0));
}

#define ATTACH_FIELDS(F)        \
	F(u64, session)         \
	F(id, token)            \
	F(id, store_id)         \
	F(u64, incarnation)     \
	F(flag, resumed)        \
	F(u16, nslots)          \
	F(u16, nreserved)       \
	F(u32, lease_ms)        \
	F(u32, lease_limit)     \
	F(u32, peer_timeout_ms) \
	F(i64, server_time)     \
	F(u32, nregions)        \
	F(u64, npages)          \
	F(flag, quotas)         \
	F(u64, snapshot)        \
	F(squash, squash)       \
	F(attr, root)
RPC_MESSAGE(attach, struct rpc_attach_reply, ATTACH_FIELDS)

#define REGIONS_FIELDS(F) \
	F(u32, version)   \
	F(u32, nregions)  \
	F(tail, tail)
RPC_MESSAGE(regions, struct rpc_regions_reply, REGIONS_FIELDS)

#define PING_FIELDS(F)                  \
	F(i64, server_time)             \
	F(u64, snapshot)                \
	F(flag, frozen)                 \
	F(u64, give_pages)              \
	F(u32, trial, RMEMFS_WIRE_NEXT) \
	F(tail, tail)
RPC_MESSAGE(ping, struct rpc_ping_reply, PING_FIELDS)

#define STATUS_FIELDS(F) \
	F(u32, total)    \
	F(tail, tail)
RPC_MESSAGE(status, struct rpc_status_reply, STATUS_FIELDS)

#define SNAPSHOT_FIELDS(F) \
	F(u8, state)       \
	F(u64, done)       \
	F(u64, total)      \
	F(u64, pause_ns)   \
	F(text, text)
RPC_MESSAGE(snapshot_fields, struct rpc_snapshot_reply, SNAPSHOT_FIELDS)

#define put_snapshot put_snapshot_fields
static inline void get_snapshot(struct wire_in *r, struct rpc_snapshot_reply *m)
{
	get_snapshot_fields(r, m);
	r->truncated |= m->state > SNAPSHOT_FAILED;
}

#define GETXATTR_FIELDS(F) \
	F(u32, total)      \
	F(u64, sum)        \
	F(tail, tail)
RPC_MESSAGE(getxattr, struct rpc_getxattr_reply, GETXATTR_FIELDS)

#define LISTXATTR_FIELDS(F) \
	F(flag, last)       \
	F(tail, tail)
RPC_MESSAGE(listxattr, struct rpc_listxattr_reply, LISTXATTR_FIELDS)

#define PROGRESS_FIELDS(F) \
	F(attr, attr)      \
	F(u64, done)
RPC_MESSAGE(progress, struct rpc_progress_reply, PROGRESS_FIELDS)

#define QUOTA_FIELDS(F) F(u64, npages)
RPC_MESSAGE(quota, struct rpc_quota_reply, QUOTA_FIELDS)

#define GETLK_FIELDS(F) \
	F(u8, type)     \
	F(u32, pid)     \
	F(u64, start)   \
	F(u64, end)
RPC_MESSAGE(getlk_fields, struct rpc_getlk_reply, GETLK_FIELDS)

#define put_getlk put_getlk_fields
static inline void get_getlk(struct wire_in *r, struct rpc_getlk_reply *m)
{
	get_getlk_fields(r, m);
	r->truncated |= m->type > LOCK_EXCLUSIVE || m->start > m->end || m->end > LOCK_END_MAX;
}

#define LEASE_FIELDS(F) \
	F(u8, type)     \
	F(u32, ms)      \
	F(u64, number)  \
	F(flag, passing)
RPC_MESSAGE(lease_fields, struct lease, LEASE_FIELDS)

#define put_lease put_lease_fields
static inline void get_lease(struct wire_in *r, struct lease *lease)
{
	get_lease_fields(r, lease);
	r->truncated |= lease->type > LEASE_EXCLUSIVE;
}

#define ENTRY_FIXED_FIELDS(F)  \
	F(attr, attr)          \
	F(attr, parent)        \
	F(lease, lease)        \
	F(lease, parent_lease) \
	F(flag, created)       \
	F(u32, nextents)       \
	F(u32, trial, RMEMFS_WIRE_NEXT)
RPC_MESSAGE(entry_fixed, struct rpc_entry_reply, ENTRY_FIXED_FIELDS)

static void put_entry(struct wire_out *w, const struct rpc_entry_reply *m)
{
	put_entry_fixed(w, m);
	put_extents(w, m->nhead, m->head, INLINE_EXTENTS);
	put_extents(w, m->ngrant, m->grant, GRANT_EXTENTS);
}

static void get_entry(struct wire_in *r, struct rpc_entry_reply *m)
{
	get_entry_fixed(r, m);
	get_extents(r, &m->nhead, m->head, INLINE_EXTENTS);
	get_extents(r, &m->ngrant, m->grant, GRANT_EXTENTS);
	r->truncated |= m->nhead > m->nextents;
}

#define LENT_FIELDS(F) \
	F(u64, first)  \
	F(u8, n)
RPC_MESSAGE(lent_fields, struct rpc_lent, LENT_FIELDS)

#define put_lent put_lent_fields
static inline void get_lent(struct wire_in *r, struct rpc_lent *m)
{
	get_lent_fields(r, m);
	r->truncated |= m->n > NUMBERS_LENT || (m->n && !m->first);
}

static void put_create(struct wire_out *w, const struct rpc_entry_reply *m)
{
	put_entry(w, m);
	put_lent(w, &m->lent);
}

static void get_create(struct wire_in *r, struct rpc_entry_reply *m)
{
	get_entry(r, m);
	get_lent(r, &m->lent);
}

static void put_attr_reply(struct wire_out *w, const struct rpc_attr_reply *m)
{
	put_attr(w, &m->attr);
	put_lease(w, &m->lease);
}

static void get_attr_reply(struct wire_in *r, struct rpc_attr_reply *m)
{
	get_attr(r, &m->attr);
	get_lease(r, &m->lease);
}

/* 0 or -errno, except -ECANCELED: a client marks with it the requests that it has withdrawn
 * itself. */
static bool is_status(int32_t status)
{
	return status <= 0 && status != -ECANCELED;
}

#define NAMES_FIELDS(F) \
	F(u16, done)    \
	F(u32, refused)
RPC_MESSAGE(names_done, struct rpc_names_reply, NAMES_FIELDS)

static void put_names(struct wire_out *w, const struct rpc_names_reply *m)
{
	put_names_done(w, m);
	put_lent(w, &m->lent);
}

static void get_names(struct wire_in *r, struct rpc_names_reply *m)
{
	get_names_done(r, m);
	get_lent(r, &m->lent);
}

static void put_makes(struct wire_out *w, const struct rpc_makes_reply *m)
{
	w->overflow |= m->n > MAKES_MAX;
	wire_put_u8(w, m->n);
	for (uint8_t i = 0; i < m->n && !w->overflow; i++)
		wire_put_u32(w, (uint32_t)m->status[i]);
	put_lent(w, &m->lent);
	put_names_done(w, &m->names);
}

static void get_makes(struct wire_in *r, struct rpc_makes_reply *m)
{
	m->n = wire_get_u8(r);
	r->truncated |= m->n > MAKES_MAX;
	for (uint8_t i = 0; i < m->n && !r->truncated; i++) {
		m->status[i] = (int32_t)wire_get_u32(r);
		r->truncated |= !is_status(m->status[i]);
	}
	get_lent(r, &m->lent);
	get_names_done(r, &m->names);
	r->truncated |= !m->n && !m->names.done && !m->names.refused;
}

#define REMOVE_FIELDS(F) \
	F(attr, child)   \
	F(attr, parent)  \
	F(u64, number)
RPC_MESSAGE(remove, struct rpc_remove_reply, REMOVE_FIELDS)

#define RENAME_FIELDS(F)    \
	F(attr, parent)     \
	F(attr, new_parent) \
	F(attr, moved)      \
	F(attr, other)      \
	F(u64, number)
RPC_MESSAGE(rename, struct rpc_rename_reply, RENAME_FIELDS)

#define READLINK_FIELDS(F) F(target, target)
RPC_MESSAGE(readlink, struct rpc_readlink_reply, READLINK_FIELDS)

#define READDIR_FIELDS(F) \
	F(u64, parent)    \
	F(flag, plus)     \
	F(tail, tail)
RPC_MESSAGE(readdir, struct rpc_readdir_reply, READDIR_FIELDS)

#define EXTENTS_FIELDS(F) \
	F(flag, last)     \
	F(tail, tail)
RPC_MESSAGE(extents_reply, struct rpc_extents_reply, EXTENTS_FIELDS)

#define STATFS_FIELDS(F)   \
	F(u64, pages)      \
	F(u64, free_pages) \
	F(u64, inodes)     \
	F(u64, free_inodes)
RPC_MESSAGE(statfs, struct rpc_statfs_reply, STATFS_FIELDS)

static void put_grant_reply(struct wire_out *w, const struct rpc_grant_reply *m)
{
	put_extents(w, m->ngrant, m->grant, GRANT_EXTENTS);
	wire_put_u64(w, m->answers);
}

static void get_grant_reply(struct wire_in *r, struct rpc_grant_reply *m)
{
	get_extents(r, &m->ngrant, m->grant, GRANT_EXTENTS);
	m->answers = wire_get_u64(r);
}

#define BODIES(F)                              \
	F(RPC_ATTACH, attach, attach)          \
	F(RPC_AUTH, auth, auth)                \
	F(RPC_REGIONS, regions, regions)       \
	F(RPC_PING, ping, ping)                \
	F(RPC_STATUS, status, status_text)     \
	F(RPC_WHO, status, status_text)        \
	F(RPC_RELOAD, status, status_text)     \
	F(RPC_SNAPSHOT, snapshot, snapshot)    \
	F(RPC_GETXATTR, getxattr, getxattr)    \
	F(RPC_LISTXATTR, listxattr, listxattr) \
	F(RPC_FALLOCATE, progress, progress)   \
	F(RPC_COPY, progress, progress)        \
	F(RPC_QUOTA, quota, quota)             \
	F(RPC_GETLK, getlk, getlk)             \
	F(RPC_LOOKUP, entry, entry)            \
	F(RPC_CREATE, create, entry)           \
	F(RPC_TMPFILE, entry, entry)           \
	F(RPC_MKNOD, entry, entry)             \
	F(RPC_MKDIR, create, entry)            \
	F(RPC_SYMLINK, create, entry)          \
	F(RPC_LINK, create, entry)             \
	F(RPC_LEASE, entry, entry)             \
	F(RPC_GETATTR, attr_reply, attr)       \
	F(RPC_SETATTR, attr_reply, attr)       \
	F(RPC_COMMIT, attr_reply, attr)        \
	F(RPC_MAKE, makes, makes)              \
	F(RPC_SETXATTR, attr_reply, attr)      \
	F(RPC_REMOVEXATTR, attr_reply, attr)   \
	F(RPC_UNLINK, remove, remove)          \
	F(RPC_RMDIR, remove, remove)           \
	F(RPC_NAMES, names, names)             \
	F(RPC_RENAME, rename, rename)          \
	F(RPC_READLINK, readlink, readlink)    \
	F(RPC_READDIR, readdir, readdir)       \
	F(RPC_EXTENTS, extents_reply, extents) \
	F(RPC_STATFS, statfs, statfs)          \
	F(RPC_GRANT, grant_reply, grant)
#define NO_BODIES(F)  \
	F(RPC_BYE)    \
	F(RPC_CANCEL) \
	F(RPC_EVICT)  \
	F(RPC_LOG)    \
	F(RPC_TRIAL)  \
	F(RPC_RETURN) \
	F(RPC_STAGE) F(RPC_FROZEN) F(RPC_UNPROTECT) F(RPC_LOCK) F(RPC_CONVERT) F(RPC_OP_MAX)
RPC_BODIES(struct rpc_reply, BODIES, NO_BODIES)

int rpc_reply_encode(
	const struct rpc_reply *rep, uint32_t version, void *buf, size_t buflen, size_t *len)
{
	const struct rpc_op_info *info = rpc_op_info(rep->op);
	struct wire_out w;

	if (!info->name || info->since > version || !is_status(rep->status))
		return -EPROTO;
	wire_out_init(&w, buf, buflen);
	w.version = version;
	wire_put_u16(&w, rep->op);
	wire_put_u16(&w, rep->slot);
	wire_put_u32(&w, (uint32_t)rep->status);
	wire_put_u64(&w, rep->seq);
	if (rep->status)
		put_text(&w, &rep->text);
	else
		put_body(&w, rep);
	if (w.overflow)
		return -EMSGSIZE;
	*len = wire_out_len(&w);
	return 0;
}

/* Nothing protects AUTH's answers yet: they have nothing that could be changed unseen. */
static bool is_header(const struct rpc_reply *rep, uint32_t version)
{
	const struct rpc_op_info *info = rpc_op_info(rep->op);

	return info->name && info->since <= version && is_status(rep->status) &&
	       (info->slotted || rep->slot == RPC_NO_SLOT) && (rep->op != RPC_AUTH || !rep->seq);
}

/* Sets only those members of a body's arrays that are in use: replies are large, and one is decoded
 * for each operation. */
int rpc_reply_decode(struct rpc_reply *rep, uint32_t version, const void *buf, size_t len)
{
	struct wire_in r;

	wire_in_init(&r, buf, len);
	r.version = version;
	rep->op = wire_get_u16(&r);
	rep->slot = wire_get_u16(&r);
	rep->status = (int32_t)wire_get_u32(&r);
	rep->seq = wire_get_u64(&r);
	rep->text = (struct rpc_str){0};
	if (r.truncated || !is_header(rep, version))
		return -EPROTO;
	if (rep->status)
		get_text(&r, &rep->text);
	else
		get_body(&r, rep);
	return r.truncated || wire_in_left(&r) ? -EPROTO : 0;
}

size_t rpc_reply_tail_at(unsigned op, uint32_t version)
{
	switch (op) {
	case RPC_AUTH:
		return RPC_HEADER_BYTES;
	case RPC_REGIONS:
		return RPC_TAIL_AT(REGIONS_FIELDS);
	case RPC_PING:
		return RPC_TAIL_AT(PING_FIELDS);
	case RPC_STATUS:
	case RPC_WHO:
	case RPC_RELOAD:
		return RPC_TAIL_AT(STATUS_FIELDS);
	case RPC_READDIR:
		return RPC_TAIL_AT(READDIR_FIELDS);
	case RPC_EXTENTS:
		return RPC_TAIL_AT(EXTENTS_FIELDS);
	case RPC_GETXATTR:
		return RPC_TAIL_AT(GETXATTR_FIELDS);
	case RPC_LISTXATTR:
		return RPC_TAIL_AT(LISTXATTR_FIELDS);
	default:
		return 0;
	}
}
