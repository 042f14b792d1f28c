/* read.c - operations that change nothing, but for the leases that they may bring. */
#include <dirent.h>
#include <errno.h>

#include "common/base/util.h"
#include "server/meta/share.h"
#include "server/record/extents.h"
#include "server/namespace/ns.h"

/* Store bytes of a small file, to estimate how many more there can be. */
enum { BYTES_PER_INODE = 320 };

/* A client asks for "." and ".." when it has kept a file handle; "." may be of any kind of inode.
 * The inode may be gone meanwhile. */
static int find_child(struct ns_call *c, const struct stored_inode *dir, const struct rpc_str *name,
	uint64_t *ino)
{
	struct dirent_slot slot;
	int err;

	if (name->len == 0 || name->len > NAME_BYTES_MAX)
		return name->len ? -ENAMETOOLONG : -ENOENT;
	if (name->len == 1 && *name->s == '.') {
		*ino = dir->attr.ino;
		return dir->attr.nlink ? 0 : -ENOENT;
	}
	if (!inode_is_dir(dir))
		return -ENOTDIR;
	if (name->len == 2 && memcmp(name->s, "..", 2) == 0) {
		*ino = dir->parent;
		return 0;
	}
	err = dirent_find(c->v, &c->m->hash, dir->key, name, &slot);
	if (err)
		return err == -ENOSPC ? -ENOENT : err;
	*ino = slot.ino;
	return slot.ino ? 0 : -ENOENT;
}

/* Brings the leases that are wanted along; child NULL: there is none. */
static int ns_read_look_at(
	struct ns_call *c, const struct stored_inode *dir, const struct stored_inode *child)
{
	struct rpc_entry_reply *entry = &c->rep->entry;
	struct ns_look_room room = {0};
	uint8_t look = c->req->name.look;
	int err = 0;

	if (look & LOOK_LEASE_DIR && inode_is_dir(dir)) {
		entry->parent = dir->attr;
		err = ns_look(c, dir, &room, &entry->parent_lease);
	}
	if (!err && look & LOOK_LEASE && child)
		err = ns_look(c, child, &room, &entry->lease);
	return err;
}

int ns_lookup(struct ns_call *c)
{
	const struct rpc_name_request *req = &c->req->name;
	struct stored_inode dir, child;
	uint64_t ino = 0;
	int err = inode_load(c->v, req->parent, &dir);

	if (!err)
		err = find_child(c, &dir, &req->name, &ino);
	if (err == -ENOENT && dir.attr.nlink && req->look & LOOK_LEASE_DIR)
		return ns_read_look_at(c, &dir, NULL);
	if (!err)
		err = inode_load(c->v, ino, &child);
	if (!err)
		err = ns_check_known(c, &child);
	if (err)
		return err;
	ns_fill_entry(c, &child, NULL);
	return req->look ? ns_read_look_at(c, &dir, &child) : 0;
}

int ns_getattr(struct ns_call *c)
{
	struct ns_look_room room = {0};
	struct stored_inode inode;
	int err = inode_load(c->v, c->req->ino.ino, &inode);

	if (!err)
		err = ns_check_known(c, &inode);
	if (err)
		return err;
	c->rep->attr.attr = inode.attr;
	return c->req->ino.look ? ns_look(c, &inode, &room, &c->rep->attr.lease) : 0;
}

int ns_readlink(struct ns_call *c)
{
	struct store_key key;
	struct store_val val;
	struct stored_inode inode;
	int err = inode_load(c->v, c->req->ino.ino, &inode);

	if (!err && !S_ISLNK(inode.attr.mode))
		err = -EINVAL;
	if (err)
		return err;
	key = STORE_KEY(inode.key);
	err = store_get(c->m->store, STORE_SYMLINK, key, &val);
	if (err)
		return err == -ENOENT ? store_damaged(c->m->store, STORE_SYMLINK, key) : err;
	c->rep->readlink.target = (struct rpc_str){val.data, (uint16_t)val.len};
	return 0;
}

static int ns_read_put_entry(
	struct ns_call *c, const struct dirent_entry *e, struct wire_out *w, bool *fits)
{
	struct rpc_dirent d = {
		.cookie = e->cookie,
		.ino = e->ino,
		.type = e->type,
		.name = e->name,
		.attr = {.ino = e->ino, .mode = DTTOIF((uint32_t)e->type)},
	};
	struct stored_inode inode;
	bool known;

	if (c->req->readdir.plus) {
		int err = inode_load(c->v, e->ino, &inode);

		if (!err)
			err = ns_is_known(c, &inode, &known);
		if (err)
			return err;
		if (known)
			d.attr = inode.attr;
	}
	*fits = rpc_put_dirent(w, &d, c->req->readdir.plus);
	return 0;
}

int ns_readdir(struct ns_call *c)
{
	const struct rpc_readdir *req = &c->req->readdir;
	uint64_t cookie = req->cookie;
	struct wire_out w;
	struct dirent_entry e;
	struct stored_inode dir;
	bool fits = true;
	int err = inode_load(c->v, req->ino, &dir);

	if (!err && !inode_is_dir(&dir))
		err = -ENOTDIR;
	if (err)
		return err;
	wire_out_init(&w, c->tail->pos, min_u64(wire_out_room(c->tail), req->bytes));
	w.version = c->tail->version;
	while (fits) {
		err = dirent_next(c->v, dir.key, cookie, &e);
		if (!err)
			err = ns_read_put_entry(c, &e, &w, &fits);
		if (err)
			break;
		cookie = e.cookie;
	}
	if (err && err != -ENOENT)
		return err;
	if (!fits && wire_out_len(&w) == 0)
		return -EINVAL;
	c->rep->readdir.parent = dir.parent;
	c->rep->readdir.plus = req->plus;
	c->rep->readdir.tail = (struct rpc_tail){w.start, (uint32_t)wire_out_len(&w)};
	c->tail->pos = w.pos;
	return 0;
}

int ns_extents(struct ns_call *c)
{
	struct wire_out *w = c->tail;
	const uint8_t *start = w->pos;
	uint64_t fpage = c->req->extents.fpage;
	struct stored_inode inode;
	struct extent e;
	int err = inode_load(c->v, c->req->extents.ino, &inode);

	while (!err && wire_out_room(w) >= RPC_EXTENT_BYTES) {
		err = extents_at(c->v, &inode, fpage, &e);
		if (err)
			break;
		rpc_put_extent(w, &e);
		fpage = e.fpage + e.npages;
	}
	if (err && err != -ENOENT)
		return err;
	c->rep->extents.last = err == -ENOENT;
	c->rep->extents.tail = (struct rpc_tail){start, (uint32_t)(w->pos - start)};
	return 0;
}

int ns_statfs(struct ns_call *c)
{
	const struct space *sp = &c->v->space;
	struct rpc_statfs_reply *rep = &c->rep->statfs;

	rep->pages = sp->npages;
	rep->free_pages = sp->now.free;
	if (ns_dirty_comes(c))
		rep->free_pages += sp->now.dirty + c->v->now.reap_pages;
	rep->inodes = c->v->now.inodes;
	rep->free_inodes = min_u64(c->v->max_inodes - min_u64(c->v->max_inodes, rep->inodes),
		share_left(c->m, c->v) * PAGE_BYTES / BYTES_PER_INODE);
	return 0;
}
