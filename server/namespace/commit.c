/* commit.c - COMMIT: what a client has written into a file. */
#include <errno.h>

#include "common/base/util.h"
#include "server/namespace/overlap.h"
#include "server/namespace/written.h"

/* A COMMIT is never refused for a quota, not even a new owner's: with quotas clients set owners by
 * SETATTR. */
int ns_commit(struct ns_call *c)
{
	const struct rpc_commit *req = &c->req->commit;
	uint64_t room = ROOM_PAGES;
	struct extent e[OVERLAP_EXTENTS_MAX];
	struct rpc_setattr set;
	struct stored_inode inode;
	unsigned n = 0;
	int err = overlap_decode(&req->tail, e, &n);

	if (!err)
		err = inode_load(c->v, req->ino, &inode);
	if (!err)
		err = ns_check_commit_lease(c, &inode);
	if (!err)
		err = written_check(c, req, &inode, e, n);
	if (err)
		return err;
	set = written_attributes(c, req, &inode);
	room += req->lease ? ROOM_PAGES_PER_LEASE : 0;
	err = ns_setattr_xattrs_room(c, &inode, set.valid, &room);
	if (!err)
		err = ns_room(c, room + ROOM_PAGES_PER_EXTENT * n, false);
	if (err)
		return err;
	err = written_map(c, &inode, e, n);
	if (err)
		return err;
	if (req->flags & COMMIT_SIZE)
		inode.attr.size = max_u64(inode.attr.size, req->size);
	err = ns_set_attr(c, &inode, &set);
	if (!err)
		err = inode_save(c->v, &inode);
	if (!err && req->lease)
		err = ns_commit_lowers_lease(c);
	c->rep->attr.attr = inode.attr;
	return err;
}
