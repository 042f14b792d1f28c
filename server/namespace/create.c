/* create.c - operations that make names or inodes: CREATE, TMPFILE, MKNOD, MKDIR, SYMLINK, LINK.
 */
#include <errno.h>

#include "common/base/util.h"
#include "server/namespace/ns.h"

/* Of a target over SYMLINK_BYTES_SHORT. */
enum { ROOM_PAGES_LONG_TARGET = 4 };

/* Where a new inode goes, and what it gets from there. */
struct new_place {
	struct stored_inode dir;
	struct dirent_slot slot; /* not of TMPFILE */
	struct heritage heritage;
};

/* -EEXIST with the slot filled: the name is taken. */
static int ns_create_find_place(
	struct ns_call *c, uint64_t parent, const struct rpc_str *name, struct new_place *place)
{
	int err = ns_find(c, parent, name, &place->dir, &place->slot);

	if (!err && place->slot.ino)
		return -EEXIST;
	return err ? err : ns_check_one_unknown(c, &place->dir);
}

static uint32_t child_gid(const struct ns_call *c, const struct stored_inode *dir)
{
	return group_of_new_inode(dir->attr.mode, dir->attr.gid, c->req->create.gid);
}

/* Checks that the export and the owner's quota have room for one more inode. Finds what it
 * inherits, and adds the store pages for that to *room. */
static int check_child(struct ns_call *c, struct new_place *place, uint32_t mode, uint64_t *room)
{
	int err = ns_check_new(c, c->req->create.uid, child_gid(c, &place->dir));

	return err ? err
		   : ns_inherit(c, &place->dir, mode, c->req->create.umask, &place->heritage, room);
}

static void init_child(struct ns_call *c, const struct new_place *place, struct stored_inode *i)
{
	const struct stored_inode *dir = &place->dir;
	uint32_t mode = place->heritage.mode;

	if (dir->attr.mode & S_ISGID && S_ISDIR(mode))
		mode |= S_ISGID;
	inode_init(c->v, i, mode, c->req->create.uid, child_gid(c, dir), c->ctx->now);
	i->parent = dir->attr.ino;
}

static int ns_create_add_name(struct ns_call *c, struct new_place *place,
	const struct rpc_str *name, const struct stored_inode *i)
{
	int err = dirent_put(c->v, &place->slot, name, i->attr.ino, dirent_type(i->attr.mode));

	if (!err)
		err = ns_touch_dir(c, &place->dir);
	if (!err)
		ns_fill_entry(c, i, &place->dir);
	return err;
}

static int add_child(struct ns_call *c, struct new_place *place, struct stored_inode *i)
{
	uint32_t mode = place->heritage.mode;
	int err;

	init_child(c, place, i);
	if (S_ISCHR(mode) || S_ISBLK(mode))
		i->attr.rdev = c->req->create.rdev;
	if (S_ISLNK(mode))
		i->attr.size = c->req->create.target.len;
	if (S_ISDIR(mode))
		place->dir.attr.nlink++;
	err = ns_heritage_put(c, &place->heritage, i);
	if (!err)
		err = inode_add(c->v, i);
	return err ? err : ns_create_add_name(c, place, &c->req->create.name, i);
}

/* Opens a file that is there already. An inode that can't be opened as a file came between the
 * kernel's lookup and now: -ESTALE makes the kernel look again. */
static int open_existing(struct ns_call *c, struct new_place *place, struct stored_inode *i)
{
	int err;

	if (c->req->create.exclusive)
		return -EEXIST;
	err = ns_load_entry(c, &place->slot, i);
	if (err)
		return err;
	if (inode_is_dir(i))
		return -EISDIR;
	return S_ISREG(i->attr.mode) ? ns_check_known(c, i) : -ESTALE;
}

int ns_create(struct ns_call *c)
{
	const struct rpc_create *req = &c->req->create;
	uint64_t want = req->want_pages;
	uint64_t room = ROOM_PAGES;
	struct new_place place;
	struct stored_inode inode;
	bool created, lends;
	int err = S_ISREG(req->mode) ? ns_create_find_place(c, req->parent, &req->name, &place)
				     : -EINVAL;

	created = !err;
	if (created)
		err = check_child(c, &place, S_IFREG | (req->mode & 07777), &room);
	else if (err == -EEXIST)
		err = open_existing(c, &place, &inode);
	if (!err)
		err = ns_room_and_grant(c, room, created || ns_lease_grows(c), &want);
	if (err)
		return err;
	lends = ns_may_lend(c, req->numbers);
	if (created)
		err = add_child(c, &place, &inode);
	else
		ns_fill_entry(c, &inode, &place.dir);
	if (!err)
		err = ns_pin(c, &inode, created);
	if (err)
		return err;
	c->rep->entry.created = created;
	err = ns_take_grant(c, want, c->rep->entry.grant, &c->rep->entry.ngrant);
	return err || !lends ? err : ns_lend(c, req->numbers, &c->rep->entry.lent);
}

/* The session keeps the inode, like a file whose last name went while it was open. For a shared
 * session the caller's ns_pin() does that. */
static int add_nameless(struct ns_call *c, const struct new_place *place, struct stored_inode *i)
{
	uint64_t number;
	int err;

	init_child(c, place, i);
	i->attr.nlink = 0;
	err = ns_heritage_put(c, &place->heritage, i);
	if (!err)
		err = inode_add(c->v, i);
	return err || c->ctx->shared ? err : ns_keep(c, i, &number);
}

int ns_tmpfile(struct ns_call *c)
{
	const struct rpc_create *req = &c->req->create;
	uint64_t want = req->want_pages, room = ROOM_PAGES;
	struct new_place place;
	struct stored_inode inode;
	int err = S_ISREG(req->mode) ? inode_load_dir(c->v, req->parent, &place.dir) : -EINVAL;

	if (!err)
		err = check_child(c, &place, S_IFREG | (req->mode & 07777), &room);
	if (!err)
		err = ns_room_and_grant(c, room, true, &want);
	if (!err)
		err = add_nameless(c, &place, &inode);
	if (err)
		return err;
	ns_fill_entry(c, &inode, NULL);
	err = ns_pin(c, &inode, true);
	if (err)
		return err;
	c->rep->entry.created = true;
	return ns_take_grant(c, want, c->rep->entry.grant, &c->rep->entry.ngrant);
}

static int ns_create_make(struct ns_call *c, uint32_t mode)
{
	const struct rpc_create *req = &c->req->create;
	uint64_t room = ROOM_PAGES;
	struct new_place place;
	struct stored_inode inode;
	int err = ns_create_find_place(c, req->parent, &req->name, &place);

	if (!err && S_ISDIR(mode) && place.dir.attr.nlink >= NLINK_MAX)
		err = -EMLINK;
	if (!err)
		err = check_child(c, &place, mode, &room);
	if (!err)
		err = ns_room(c, room, true);
	return err ? err : add_child(c, &place, &inode);
}

int ns_mknod(struct ns_call *c)
{
	uint32_t mode = c->req->create.mode;

	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return ns_create_make(c, mode & (S_IFMT | 07777));
	default:
		return -EINVAL;
	}
}

static int lend_along(struct ns_call *c, uint8_t numbers)
{
	return ns_may_lend(c, numbers) ? ns_lend(c, numbers, &c->rep->entry.lent) : 0;
}

int ns_mkdir(struct ns_call *c)
{
	int err = ns_create_make(c, S_IFDIR | (c->req->create.mode & 07777));

	return err ? err : lend_along(c, c->req->create.numbers);
}

int ns_symlink(struct ns_call *c)
{
	const struct rpc_create *req = &c->req->create;
	bool is_long = req->target.len > SYMLINK_BYTES_SHORT;
	uint64_t room = ROOM_PAGES + (is_long ? ROOM_PAGES_LONG_TARGET : 0);
	struct new_place place;
	struct stored_inode inode;
	int err;

	if (req->target.len == 0)
		return -ENOENT;
	if (req->target.len > SYMLINK_BYTES_MAX)
		return -ENAMETOOLONG;
	err = ns_create_find_place(c, req->parent, &req->name, &place);
	if (!err)
		err = check_child(c, &place, S_IFLNK | 0777, &room);
	if (!err)
		err = ns_room(c, room, true);
	if (!err)
		err = add_child(c, &place, &inode);
	if (!err)
		err = store_put(c->m->store, STORE_SYMLINK, STORE_KEY(inode.key), req->target.s,
			req->target.len);
	return err ? err : lend_along(c, req->numbers);
}

/* A file without a name can get one while the session keeps it. */
static int check_linkable(struct ns_call *c, const struct stored_inode *i)
{
	if (inode_is_dir(i))
		return -EPERM;
	if (i->attr.nlink == 0)
		return ns_keeps(c, i);
	return i->attr.nlink >= NLINK_MAX ? -EMLINK : 0;
}

int ns_link(struct ns_call *c)
{
	const struct rpc_link *req = &c->req->link;
	struct new_place place;
	struct stored_inode inode;
	int err = inode_load(c->v, req->ino, &inode);

	if (!err)
		err = check_linkable(c, &inode);
	if (!err)
		err = ns_create_find_place(c, req->parent, &req->name, &place);
	if (!err)
		err = ns_check_one_unknown(c, &inode);
	if (!err)
		err = ns_room(c, ROOM_PAGES, true);
	if (!err && inode.attr.nlink == 0)
		err = ns_named(c, &inode);
	if (err)
		return err;
	inode.attr.nlink++;
	ns_changed(c, &inode.attr);
	err = inode_save(c->v, &inode);
	if (!err)
		err = ns_create_add_name(c, &place, &req->name, &inode);
	return err ? err : lend_along(c, req->numbers);
}
