/* setattr.c - SETATTR: modes, owners, times and truncation. */
#include <errno.h>

#include "common/rpc/rights.h"
#include "common/rpc/set_attr.h"
#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/namespace/ns.h"
#include "server/namespace/squash_request.h"

/* Extents that a cut may free at once: the head's and a few of the table's. */
enum { CUT_EXTENTS = 40 };

static int ns_setattr_set_size(struct ns_call *c, struct stored_inode *i)
{
	uint64_t size = c->req->setattr.size;
	int err;

	if (size > i->attr.size) {
		err = ns_zero_growth(c, i, size, &size);
	} else {
		/* Also frees pages that were allocated beyond the end and not written. */
		err = extents_cut(c->v, i, div_round_up(size, PAGE_BYTES));
		if (!err)
			err = ns_zero_tail(c, i, size);
	}
	i->attr.size = size;
	ns_modified(c, &i->attr);
	return err;
}

static uint64_t room_for(const struct rpc_setattr *req)
{
	bool cuts = req->valid & SET_SIZE;

	return ROOM_PAGES + (cuts ? ROOM_PAGES_PER_REAPED * CUT_EXTENTS : 0);
}

static int check_size(const struct stored_inode *i, const struct rpc_setattr *req)
{
	if (!(req->valid & SET_SIZE) || S_ISREG(i->attr.mode))
		return req->valid & SET_SIZE && req->size > INT64_MAX ? -EFBIG : 0;
	return inode_is_dir(i) ? -EISDIR : -EINVAL;
}

/* A new owner's quota must have room for the file. */
static int ns_setattr_check_owner(struct ns_call *c, const struct stored_inode *i)
{
	const struct rpc_setattr *req = &c->req->setattr;
	struct quota_share share = i->counted;

	if (req->valid & SET_UID)
		share.uid = req->uid;
	if (req->valid & SET_GID)
		share.gid = req->gid;
	return ns_check_quota(c, &i->counted, &share);
}

int ns_set_attr(struct ns_call *c, struct stored_inode *i, const struct rpc_setattr *set)
{
	set_attr(&i->attr, set, c->ctx->now);
	return ns_setattr_xattrs(c, i, set->valid);
}

/* The request, with the mode computed from the inode as it is now. */
static struct rpc_setattr ns_setattr_settle(
	const struct stored_inode *i, const struct rpc_setattr *req)
{
	struct rpc_setattr set = *req;
	bool in_group = rights_of_group(&req->rights, rpc_setattr_group(req, i->attr.gid));

	if (req->valid & SET_MODE) {
		if (!in_group)
			set.mode &= ~(uint32_t)S_ISGID;
	} else if (req->valid & SET_NO_PRIVILEGES && !inode_is_dir(i)) {
		set.mode = mode_without_privileges(i->attr.mode, in_group);
		set.valid |= set.mode != i->attr.mode ? SET_MODE : 0;
	}
	return set;
}

static int ns_setattr_squash(
	struct ns_call *c, const struct stored_inode *i, struct rpc_setattr *set)
{
	if (squash_request_mode(&c->ctx->squash, i->attr.mode, set) ||
		!(c->req->setattr.valid & SET_MODE))
		return 0;
	c->rep->text = squash_request_no_set_id;
	return -EPERM;
}

static int ns_setattr_check_lease(struct ns_call *c, const struct stored_inode *i)
{
	uint32_t valid = c->req->setattr.valid;

	if (valid & SET_SIZE)
		return ns_check_lease(c, i, LEASE_EXCLUSIVE);
	return valid ? ns_check_one_unknown(c, i) : ns_check_known(c, i);
}

int ns_setattr(struct ns_call *c)
{
	const struct rpc_setattr *req = &c->req->setattr;
	struct stored_inode inode;
	struct rpc_setattr set;
	uint64_t room = room_for(req);
	int err = inode_load(c->v, req->ino, &inode);

	if (err)
		return err;
	set = ns_setattr_settle(&inode, req);
	err = check_size(&inode, req);
	if (!err)
		err = ns_check_rights(&inode, &req->rights);
	if (!err)
		err = ns_setattr_squash(c, &inode, &set);
	if (!err)
		err = ns_setattr_check_lease(c, &inode);
	if (!err)
		err = ns_setattr_check_owner(c, &inode);
	if (!err)
		err = ns_setattr_xattrs_room(c, &inode, set.valid, &room);
	if (!err && req->valid)
		err = ns_room(c, room, false);
	if (!err && req->valid & SET_SIZE)
		err = ns_may_change_bytes(c);
	if (!err && req->valid & SET_SIZE)
		err = ns_setattr_set_size(c, &inode);
	if (err)
		return err;
	if (req->valid) {
		err = ns_set_attr(c, &inode, &set);
		if (!err)
			err = inode_save(c->v, &inode);
	}
	c->rep->attr.attr = inode.attr;
	return err;
}
