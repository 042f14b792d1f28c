/* rpc.c - the table of operations, and the elements of tails. */
#include "common/rpc/rpc.h"

#include <assert.h>

#include "common/rpc/rpc_fields.h"
#include "common/base/util.h"

const struct rpc_op_info *rpc_op_info(unsigned op)
{
	static const struct rpc_op_info none;
	static const struct rpc_op_info ops[RPC_OP_MAX] = {
		[RPC_ATTACH] = {"attach"},
		[RPC_REGIONS] = {"regions"},
		[RPC_PING] = {"ping"},
		[RPC_BYE] = {"bye"},
		[RPC_STATUS] = {"status"},
		[RPC_SNAPSHOT] = {"snapshot"},
		[RPC_WHO] = {"who"},
		[RPC_CANCEL] = {"cancel"},
		[RPC_RELOAD] = {"reload"},
		[RPC_EVICT] = {"evict"},
		[RPC_LOG] = {"log"},
		[RPC_AUTH] = {"auth"},
		[RPC_TRIAL] = {"trial", .since = RMEMFS_WIRE_NEXT},
		[RPC_LOOKUP] = {"lookup", .slotted = true},
		[RPC_GETATTR] = {"getattr", .slotted = true},
		[RPC_READLINK] = {"readlink", .slotted = true},
		[RPC_READDIR] = {"readdir", .slotted = true},
		[RPC_EXTENTS] = {"extents", .slotted = true},
		[RPC_STATFS] = {"statfs", .slotted = true},
		[RPC_GETXATTR] = {"getxattr", .slotted = true},
		[RPC_LISTXATTR] = {"listxattr", .slotted = true},
		[RPC_FROZEN] = {"frozen", .slotted = true},
		[RPC_UNPROTECT] = {"unprotect", .slotted = true},
		[RPC_GETLK] = {"getlk", .slotted = true},
		[RPC_SETATTR] = {"setattr", .mutates = true, .slotted = true},
		[RPC_CREATE] = {"create", .mutates = true, .slotted = true},
		[RPC_MKNOD] = {"mknod", .mutates = true, .slotted = true},
		[RPC_MKDIR] = {"mkdir", .mutates = true, .slotted = true},
		[RPC_SYMLINK] = {"symlink", .mutates = true, .slotted = true},
		[RPC_LINK] = {"link", .mutates = true, .slotted = true},
		[RPC_UNLINK] = {"unlink", .mutates = true, .slotted = true},
		[RPC_RMDIR] = {"rmdir", .mutates = true, .slotted = true},
		[RPC_RENAME] = {"rename", .mutates = true, .slotted = true},
		[RPC_COMMIT] = {"commit", .mutates = true, .slotted = true},
		[RPC_GRANT] = {"grant", .mutates = true, .slotted = true},
		[RPC_RETURN] = {"return", .mutates = true, .slotted = true},
		[RPC_TMPFILE] = {"tmpfile", .mutates = true, .slotted = true},
		[RPC_SETXATTR] = {"setxattr", .mutates = true, .slotted = true},
		[RPC_REMOVEXATTR] = {"removexattr", .mutates = true, .slotted = true},
		[RPC_STAGE] = {"stage", .mutates = true, .slotted = true},
		[RPC_FALLOCATE] = {"fallocate", .mutates = true, .slotted = true},
		[RPC_COPY] = {"copy", .mutates = true, .slotted = true},
		[RPC_QUOTA] = {"quota", .mutates = true, .slotted = true},
		[RPC_LEASE] = {"lease", .mutates = true, .slotted = true},
		[RPC_LOCK] = {"lock", .mutates = true, .slotted = true},
		[RPC_MAKE] = {"make", .mutates = true, .slotted = true},
		[RPC_NAMES] = {"names", .mutates = true, .slotted = true},
		[RPC_CONVERT] = {"convert", .mutates = true, .slotted = true},
	};

	return op < ARRAY_SIZE(ops) ? &ops[op] : &none;
}

/* ---- elements of tails ----------------------------------------------------------------------- */

#define REGION_FIELDS(F) \
	F(u32, index)    \
	F(u64, len)      \
	F(u64, addr)     \
	F(u32, rkey)     \
	F(u32, access)
RPC_MESSAGE(region, struct rpc_region, REGION_FIELDS)

#define RECALL_FIELDS(F) \
	F(u64, ino)      \
	F(u64, number)   \
	F(u8, keep)
RPC_MESSAGE(recall, struct rpc_recall, RECALL_FIELDS)

#define RETURNED_FIELDS(F) \
	F(u64, ino)        \
	F(u64, number)     \
	F(u8, keep)        \
	F(u8, pin)
RPC_MESSAGE(returned, struct rpc_returned, RETURNED_FIELDS)

#define NAME_CHANGE_FIELDS(F) \
	F(u8, kind)           \
	F(u64, ino)           \
	F(i64, time)
RPC_MESSAGE(name_change, struct rpc_name_change, NAME_CHANGE_FIELDS)

#define NAME_PLACE_FIELDS(F) \
	F(u64, parent)       \
	F(flag, keep)        \
	F(name, name)
RPC_MESSAGE(name_place, struct rpc_name_change, NAME_PLACE_FIELDS)

#define NAME_MADE_FIELDS(F) \
	F(u32, mode)        \
	F(u32, umask)       \
	F(u32, uid)         \
	F(u32, gid)
RPC_MESSAGE(name_made, struct rpc_name_change, NAME_MADE_FIELDS)

#define NAME_MOVED_FIELDS(F) \
	F(u64, new_parent)   \
	F(u64, replaced)     \
	F(name, new_name)
RPC_MESSAGE(name_moved, struct rpc_name_change, NAME_MOVED_FIELDS)

#define NAME_POINTS_FIELDS(F) \
	F(u32, uid)           \
	F(u32, gid)           \
	F(target, target)
RPC_MESSAGE(name_points, struct rpc_name_change, NAME_POINTS_FIELDS)

#define NAME_LINKED_FIELDS(F) F(u64, lent)
RPC_MESSAGE(name_linked, struct rpc_name_change, NAME_LINKED_FIELDS)

#define NAME_SET_FIELDS(F) \
	F(u32, valid)      \
	F(u32, mode)       \
	F(u32, uid)        \
	F(u32, gid)        \
	F(i64, atime)      \
	F(i64, mtime)
RPC_MESSAGE(name_set, struct rpc_name_change, NAME_SET_FIELDS)

#define DIRENT_FIELDS(F) \
	F(u64, cookie)   \
	F(u64, ino)      \
	F(u8, type)      \
	F(name, name)
RPC_MESSAGE(dirent, struct rpc_dirent, DIRENT_FIELDS)

/* Both sides fill and walk such tails without asking for the version. */
static_assert(0 RPC_EXTENT_FIELDS(RPC_EACH_FIELD_BYTES) == RPC_EXTENT_BYTES &&
		      0 REGION_FIELDS(RPC_EACH_FIELD_BYTES) == RPC_REGION_BYTES &&
		      0 RECALL_FIELDS(RPC_EACH_FIELD_BYTES) == RPC_RECALL_BYTES &&
		      0 RETURNED_FIELDS(RPC_EACH_FIELD_BYTES) == RPC_RETURNED_BYTES,
	"elements of tails are the same in all versions");

/* DT_* are the type bits of st_mode, shifted. */
enum { DT_MAX = 15, DT_SHIFT = 12, DIRENT_FIXED_BYTES = 19 };

void rpc_put_extent(struct wire_out *w, const struct extent *e)
{
	put_extent(w, e);
}

bool rpc_get_extent(struct wire_in *r, struct extent *e)
{
	if (!wire_in_left(r))
		return false;
	get_extent(r, e);
	return !r->truncated;
}

void rpc_put_region(struct wire_out *w, const struct rpc_region *region)
{
	put_region(w, region);
}

bool rpc_get_region(struct wire_in *r, struct rpc_region *region)
{
	if (!wire_in_left(r))
		return false;
	get_region(r, region);
	return !r->truncated;
}

/* A lease that may be kept is less than LEASE_EXCLUSIVE. */
static bool keep_ok(uint8_t keep)
{
	return keep < LEASE_EXCLUSIVE;
}

void rpc_put_recall(struct wire_out *w, const struct rpc_recall *recall)
{
	put_recall(w, recall);
}

bool rpc_get_recall(struct wire_in *r, struct rpc_recall *recall)
{
	if (!wire_in_left(r))
		return false;
	get_recall(r, recall);
	r->truncated |= !keep_ok(recall->keep) &&
			(recall->keep < RECALL_LOCKS || recall->keep > RECALL_ALONE);
	return !r->truncated;
}

void rpc_put_returned(struct wire_out *w, const struct rpc_returned *returned)
{
	put_returned(w, returned);
}

bool rpc_get_returned(struct wire_in *r, struct rpc_returned *returned)
{
	if (!wire_in_left(r))
		return false;
	get_returned(r, returned);
	r->truncated |= !keep_ok(returned->keep) || returned->pin > RETURN_PIN;
	return !r->truncated;
}

/* Without those of the names and targets. */
enum {
	NAME_CHANGE_BYTES = 17,
	NAME_NAMED_BYTES = NAME_CHANGE_BYTES + 11,
	NAME_MADE_BYTES = 16,
	NAME_MOVED_BYTES = 18,
	NAME_SET_BYTES = 32,
	NAME_POINTS_BYTES = 10,
	NAME_LINKED_BYTES = 8,
};

size_t rpc_name_change_bytes(enum rpc_name_kind kind, size_t name, size_t text)
{
	switch (kind) {
	case NAME_MKDIR:
		return NAME_NAMED_BYTES + name + NAME_MADE_BYTES;
	case NAME_MOVE:
		return NAME_NAMED_BYTES + name + NAME_MOVED_BYTES + text;
	case NAME_SYMLINK:
		return NAME_NAMED_BYTES + name + NAME_POINTS_BYTES + text;
	case NAME_LINK:
		return NAME_NAMED_BYTES + name + NAME_LINKED_BYTES;
	case NAME_SET:
		return NAME_CHANGE_BYTES + NAME_SET_BYTES;
	default:
		return NAME_NAMED_BYTES + name;
	}
}

bool rpc_put_name_change(struct wire_out *w, const struct rpc_name_change *change)
{
	size_t text = change->kind == NAME_SYMLINK ? change->target.len : change->new_name.len;
	size_t len = rpc_name_change_bytes(change->kind, change->name.len, text);

	if (w->overflow || len > wire_out_room(w))
		return false;
	put_name_change(w, change);
	if (change->kind == NAME_SET) {
		put_name_set(w, change);
		return true;
	}
	put_name_place(w, change);
	if (change->kind == NAME_MKDIR)
		put_name_made(w, change);
	else if (change->kind == NAME_MOVE)
		put_name_moved(w, change);
	else if (change->kind == NAME_SYMLINK)
		put_name_points(w, change);
	else if (change->kind == NAME_LINK)
		put_name_linked(w, change);
	return true;
}

static bool name_change_ok(const struct rpc_name_change *change)
{
	switch (change->kind) {
	case NAME_REMOVE:
		return true;
	case NAME_MKDIR:
		return !change->keep && !(change->mode & ~07777u);
	case NAME_MOVE:
		return change->replaced || !change->keep;
	case NAME_SET:
		return change->valid && !(change->valid & ~(uint32_t)NAME_SET_ALL) &&
		       !(change->mode & ~07777u);
	case NAME_SYMLINK:
		return !change->keep && change->target.len &&
		       change->target.len <= SYMLINK_BYTES_SHORT;
	case NAME_LINK:
		return !change->keep;
	default:
		return false;
	}
}

static void get_named(struct wire_in *r, struct rpc_name_change *change)
{
	get_name_place(r, change);
	if (change->kind == NAME_MKDIR)
		get_name_made(r, change);
	else if (change->kind == NAME_MOVE)
		get_name_moved(r, change);
	else if (change->kind == NAME_SYMLINK)
		get_name_points(r, change);
	else if (change->kind == NAME_LINK)
		get_name_linked(r, change);
}

bool rpc_get_name_change(struct wire_in *r, struct rpc_name_change *change)
{
	if (!wire_in_left(r))
		return false;
	*change = (struct rpc_name_change){0};
	get_name_change(r, change);
	if (change->kind == NAME_SET)
		get_name_set(r, change);
	else
		get_named(r, change);
	r->truncated |= !name_change_ok(change);
	return !r->truncated;
}

#define XATTR_ENTRY_FIELDS(F) \
	F(u64, cookie)        \
	F(xattr_name, name)
RPC_MESSAGE(xattr_entry, struct rpc_xattr_entry, XATTR_ENTRY_FIELDS)

enum { XATTR_ENTRY_FIXED_BYTES = 10 };

bool rpc_put_xattr_entry(struct wire_out *w, const struct rpc_xattr_entry *e)
{
	if (w->overflow || (size_t)XATTR_ENTRY_FIXED_BYTES + e->name.len > wire_out_room(w))
		return false;
	put_xattr_entry(w, e);
	return true;
}

bool rpc_get_xattr_entry(struct wire_in *r, struct rpc_xattr_entry *e)
{
	if (!wire_in_left(r))
		return false;
	get_xattr_entry(r, e);
	return !r->truncated;
}

static size_t attr_bytes(uint32_t version)
{
	return 0 RPC_ATTR_FIELDS(RPC_FIELD_BYTES);
}

bool rpc_put_dirent(struct wire_out *w, const struct rpc_dirent *d, bool plus)
{
	size_t bytes = DIRENT_FIXED_BYTES + d->name.len + (plus ? attr_bytes(w->version) : 0);

	if (w->overflow || bytes > wire_out_room(w))
		return false;
	put_dirent(w, d);
	if (plus)
		put_attr(w, &d->attr);
	return true;
}

bool rpc_get_dirent(struct wire_in *r, struct rpc_dirent *d, bool plus)
{
	if (!wire_in_left(r))
		return false;
	get_dirent(r, d);
	r->truncated |= d->type > DT_MAX;
	if (plus)
		get_attr(r, &d->attr);
	else
		d->attr = (struct attr){.ino = d->ino, .mode = (uint32_t)d->type << DT_SHIFT};
	return !r->truncated;
}
