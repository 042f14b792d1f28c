/* removals.c - REMOVALS: names that a client has taken away by itself, in their order. */
#include <errno.h>

#include "common/rpc/change_time.h"
#include "server/namespace/ns.h"

/* As for RETURN: more inodes than this are left to the reaper. */
enum { REAPED_AT_ONCE = 16 };

/* The store pages that a removal of many may touch: the name, the inode, and its pages' records. */
enum { ROOM_PAGES_PER_REMOVAL = 2 + ROOM_PAGES_PER_REAPED };

static size_t count_removals(const struct ns_call *c)
{
	struct wire_in r = rpc_tail_reader(&c->req->removals.tail);
	struct rpc_removal removal;
	size_t n = 0;

	while (rpc_get_removal(&r, &removal))
		n++;
	return n;
}

/* Those that there is room for: all, or one. */
static int count_possible(struct ns_call *c, size_t *n)
{
	int err = ns_room(c, ROOM_PAGES + *n * ROOM_PAGES_PER_REMOVAL, false);

	if (err != -ENOSPC)
		return err;
	*n = 1;
	return ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_REMOVAL, false);
}

struct removing {
	struct rpc_removal told;
	struct stored_inode dir, child;
	struct dirent_slot slot;
};

static int check_empty(struct ns_call *c, const struct stored_inode *child)
{
	bool empty;
	int err = dirent_empty(c->v, child->key, &empty);

	return err || empty ? err : -ENOTEMPTY;
}

/* Changes nothing. */
static int removals_find(struct ns_call *c, struct removing *k)
{
	int err = ns_find(c, k->told.parent, &k->told.name, &k->dir, &k->slot);

	if (err == -ENOSPC || (!err && !k->slot.ino))
		return -ENOENT;
	if (!err && k->slot.ino != k->told.ino)
		return -ESTALE;
	if (!err)
		err = ns_load_entry(c, &k->slot, &k->child);
	return !err && inode_is_dir(&k->child) ? check_empty(c, &k->child) : err;
}

/* No RETURN will come for it. */
static int end_inode(struct ns_call *c, const struct removing *k, bool at_once)
{
	uint64_t ino = k->child.attr.ino;
	int err = ns_orphan_return(c, ino, at_once);

	return err == -ENOENT ? ns_return_pin(c, ino, at_once) : err;
}

/* The directory's times are those that the client has told its programs. */
static int remove_found(struct ns_call *c, struct removing *k, bool at_once)
{
	struct attr *dir = &k->dir.attr;
	bool is_dir = inode_is_dir(&k->child);
	uint64_t number;
	int err = dirent_del(c->v, &k->slot);

	if (!err)
		err = ns_drop_link(c, &k->child, &number);
	if (err)
		return err;
	dir->nlink -= is_dir;
	dir->mtime = change_time_told(k->told.time, dir->mtime, c->ctx->now);
	dir->ctime = change_time_told(k->told.time, dir->ctime, c->ctx->now);
	err = inode_save(c->v, &k->dir);
	return err || k->child.attr.nlink || k->told.keep ? err : end_inode(c, k, at_once);
}

int ns_removals(struct ns_call *c)
{
	struct wire_in r = rpc_tail_reader(&c->req->removals.tail);
	struct rpc_removals_reply *rep = &c->rep->removals;
	struct removing k;
	size_t n = count_removals(c);
	int err = c->ctx->shared ? -EINVAL : count_possible(c, &n);

	while (!err && rep->done < n && rpc_get_removal(&r, &k.told)) {
		int refusal = removals_find(c, &k);

		if (refusal) {
			rep->refused = (uint32_t)-refusal;
			return 0;
		}
		err = remove_found(c, &k, n <= REAPED_AT_ONCE);
		rep->done++;
	}
	return err;
}
