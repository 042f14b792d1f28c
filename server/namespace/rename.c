/* rename.c - RENAME, with NOREPLACE, EXCHANGE and WHITEOUT. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "server/namespace/ns.h"

/* One end of the move: a directory, a place in it, and what is there. dir points to the other
 * end's when both are one directory, so that it is changed and saved as one. */
struct end {
	struct stored_inode own_dir, *dir;
	struct dirent_slot slot;
	const struct rpc_str *name;
	struct stored_inode inode; /* if slot.ino */
};

static int load_end(struct ns_call *c, uint64_t parent, const struct rpc_str *name, struct end *end)
{
	int err = ns_find(c, parent, name, &end->own_dir, &end->slot);

	end->dir = &end->own_dir;
	end->name = name;
	if (!err && end->slot.ino)
		err = ns_load_entry(c, &end->slot, &end->inode);
	return err;
}

/* No path is as long. But a process that goes down step by step gets as deep, and other requests
 * wait while the server climbs up. */
enum { DEPTH_MAX = 4096 };

/* Is dir the directory `above`, or somewhere below it? -ELOOP: it is too deep to tell. */
static int is_within(
	struct ns_call *c, const struct stored_inode *dir, uint64_t above, bool *within)
{
	struct stored_inode at = *dir;

	for (unsigned n = 0; at.attr.ino != above && at.attr.ino != ROOT_INO; n++) {
		int err = n < DEPTH_MAX ? inode_load(c->v, at.parent, &at) : -ELOOP;

		if (err == -ESTALE)
			return store_damaged(c->m->store, STORE_INODE, STORE_KEY(at.key));
		if (err)
			return err;
	}
	*within = at.attr.ino == above;
	return 0;
}

/* A directory can't move below itself. A move within one directory needs no check. */
static int check_loop(struct ns_call *c, const struct end *moving, const struct end *to)
{
	bool within = false;
	int err;

	if (!inode_is_dir(&moving->inode) || moving->dir == to->dir)
		return 0;
	err = is_within(c, to->dir, moving->slot.ino, &within);
	return !err && within ? -EINVAL : err;
}

static int check_replace(struct ns_call *c, const struct end *from, const struct end *to)
{
	bool from_dir = inode_is_dir(&from->inode), to_dir = inode_is_dir(&to->inode);
	bool empty = true;
	int err = 0;

	if (from_dir && !to_dir)
		return -ENOTDIR;
	if (!from_dir && to_dir)
		return -EISDIR;
	if (to_dir)
		err = dirent_empty(c->v, to->inode.key, &empty);
	return !err && !empty ? -ENOTEMPTY : err;
}

static int check_links(const struct end *from, const struct end *to)
{
	bool gains = inode_is_dir(&from->inode) && !(to->slot.ino && inode_is_dir(&to->inode));

	return gains && from->dir != to->dir && to->dir->attr.nlink >= NLINK_MAX ? -EMLINK : 0;
}

/* Devices 0:0 hide names of a lower layer from overlay mounts. */
static uint32_t whiteout_gid(const struct ns_call *c, const struct end *from)
{
	const struct attr *dir = &from->dir->attr;

	return dir->mode & S_ISGID ? dir->gid : c->req->rename.gid;
}

static int ns_rename_check(struct ns_call *c, struct end *from, struct end *to)
{
	uint32_t flags = c->req->rename.flags;
	int err;

	if (!from->slot.ino)
		return -ENOENT;
	if (flags == RENAME_EXCHANGE && !to->slot.ino)
		return -ENOENT;
	if (flags & RENAME_NOREPLACE && to->slot.ino)
		return -EEXIST;
	err = check_loop(c, from, to);
	if (!err && flags == RENAME_EXCHANGE)
		err = check_loop(c, to, from);
	else if (!err && to->slot.ino && to->slot.ino != from->slot.ino)
		err = check_replace(c, from, to);
	if (!err)
		err = check_links(from, to);
	if (!err && flags == RENAME_EXCHANGE)
		err = check_links(to, from);
	if (!err && flags & RENAME_WHITEOUT)
		err = ns_check_new(c, c->req->rename.uid, whiteout_gid(c, from));
	if (!err)
		err = ns_check_expected(c, &from->slot, &c->req->rename.expected);
	return err ? err : ns_check_expected(c, &to->slot, &c->req->rename.new_expected);
}

static int check_unknown(struct ns_call *c, const struct end *from, const struct end *to)
{
	const struct stored_inode *const all[] = {from->dir, to->dir, &from->inode, &to->inode};

	return ns_check_unknown(c, all, to->slot.ino ? 4 : 3);
}

/* Gives end's inode the other end's name and parent. */
static int ns_rename_move(struct ns_call *c, struct end *end, struct end *to)
{
	struct stored_inode *i = &end->inode;
	int err = dirent_put(c->v, &to->slot, to->name, i->attr.ino, dirent_type(i->attr.mode));

	if (err)
		return err;
	if (inode_is_dir(i)) {
		i->parent = to->dir->attr.ino;
		end->dir->attr.nlink--;
		to->dir->attr.nlink++;
	}
	ns_changed(c, &i->attr);
	return inode_save(c->v, i);
}

static int replace(struct ns_call *c, struct end *from, struct end *to)
{
	int err = dirent_del(c->v, &from->slot);

	if (!err && to->slot.ino) {
		if (inode_is_dir(&to->inode))
			to->dir->attr.nlink--;
		err = ns_drop_link(c, &to->inode, &c->rep->rename.number);
	}
	return err ? err : ns_rename_move(c, from, to);
}

static int leave_whiteout(struct ns_call *c, struct end *from)
{
	struct stored_inode i;
	int err;

	inode_init(c->v, &i, S_IFCHR, c->req->rename.uid, whiteout_gid(c, from), c->ctx->now);
	i.parent = from->dir->attr.ino;
	err = inode_add(c->v, &i);
	return err ? err : dirent_put(c->v, &from->slot, from->name, i.attr.ino, DT_CHR);
}

static int exchange(struct ns_call *c, struct end *from, struct end *to)
{
	int err = ns_rename_move(c, from, to);

	return err ? err : ns_rename_move(c, to, from);
}

static void ns_rename_fill(struct ns_call *c, const struct end *from, const struct end *to)
{
	struct rpc_rename_reply *rep = &c->rep->rename;

	rep->parent = from->dir->attr;
	rep->new_parent = to->dir->attr;
	rep->moved = from->inode.attr;
	if (to->slot.ino && to->slot.ino != from->slot.ino)
		rep->other = to->inode.attr;
}

static int ns_rename_change(struct ns_call *c, struct end *from, struct end *to)
{
	uint32_t flags = c->req->rename.flags;
	int err = flags == RENAME_EXCHANGE ? exchange(c, from, to) : replace(c, from, to);

	if (!err && flags & RENAME_WHITEOUT)
		err = leave_whiteout(c, from);
	if (!err)
		err = ns_touch_dir(c, from->dir);
	if (!err && to->dir != from->dir)
		err = ns_touch_dir(c, to->dir);
	return err;
}

int ns_rename(struct ns_call *c)
{
	const struct rpc_rename *req = &c->req->rename;
	struct end from, to;
	int err;

	if (!rpc_rename_flags_ok(req->flags))
		return -EINVAL;
	err = load_end(c, req->parent, &req->name, &from);
	if (!err)
		err = load_end(c, req->new_parent, &req->new_name, &to);
	if (err)
		return err;
	if (req->parent == req->new_parent)
		to.dir = from.dir;
	err = ns_rename_check(c, &from, &to);
	if (!err && to.slot.ino != from.slot.ino) {
		err = check_unknown(c, &from, &to);
		if (!err)
			err = ns_room(c, ROOM_PAGES, true);
		if (!err)
			err = ns_rename_change(c, &from, &to);
	}
	/* Two names of one inode: POSIX leaves both. */
	if (!err)
		ns_rename_fill(c, &from, &to);
	return err;
}
