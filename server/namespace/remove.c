/* remove.c - UNLINK and RMDIR. */
#include <errno.h>

#include "common/base/util.h"
#include "server/namespace/ns.h"

int ns_drop_link(struct ns_call *c, struct stored_inode *i, uint64_t *number)
{
	int err = 0;

	i->attr.nlink = inode_is_dir(i) ? 0 : i->attr.nlink - 1;
	ns_changed(c, &i->attr);
	if (i->attr.nlink == 0)
		err = ns_keep(c, i, number);
	return err ? err : inode_save(c->v, i);
}

/* Finds the name and loads its inode. */
static int ns_remove_find(struct ns_call *c, struct stored_inode *dir, struct dirent_slot *slot,
	struct stored_inode *child)
{
	const struct rpc_name_request *req = &c->req->name;
	int err = ns_find(c, req->parent, &req->name, dir, slot);

	if (err == -ENOSPC || (!err && !slot->ino))
		return -ENOENT;
	return err ? err : ns_load_entry(c, slot, child);
}

static int check_unknown(
	struct ns_call *c, const struct stored_inode *dir, const struct stored_inode *child)
{
	const struct stored_inode *const both[] = {dir, child};

	return ns_check_unknown(c, both, ARRAY_SIZE(both));
}

static int ns_remove_remove_name(struct ns_call *c, struct stored_inode *dir,
	const struct dirent_slot *slot, struct stored_inode *child)
{
	int err = dirent_del(c->v, slot);

	if (!err)
		err = ns_drop_link(c, child, &c->rep->remove.number);
	if (!err)
		err = ns_touch_dir(c, dir);
	c->rep->remove.child = child->attr;
	c->rep->remove.parent = dir->attr;
	return err;
}

int ns_unlink(struct ns_call *c)
{
	struct stored_inode dir, child;
	struct dirent_slot slot;
	int err = ns_remove_find(c, &dir, &slot, &child);

	if (!err && inode_is_dir(&child))
		err = -EISDIR;
	if (!err)
		err = ns_check_expected(c, &slot, &c->req->name.expected);
	if (!err)
		err = check_unknown(c, &dir, &child);
	if (!err)
		err = ns_room(c, ROOM_PAGES, false);
	return err ? err : ns_remove_remove_name(c, &dir, &slot, &child);
}

int ns_rmdir(struct ns_call *c)
{
	struct stored_inode dir, child;
	struct dirent_slot slot;
	bool empty;
	int err = ns_remove_find(c, &dir, &slot, &child);

	if (!err && !inode_is_dir(&child))
		err = -ENOTDIR;
	if (!err)
		err = dirent_empty(c->v, child.key, &empty);
	if (!err && !empty)
		err = -ENOTEMPTY;
	if (!err)
		err = ns_check_expected(c, &slot, &c->req->name.expected);
	if (!err)
		err = check_unknown(c, &dir, &child);
	if (!err)
		err = ns_room(c, ROOM_PAGES, false);
	if (err)
		return err;
	dir.attr.nlink--;
	return ns_remove_remove_name(c, &dir, &slot, &child);
}
