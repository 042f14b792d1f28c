/* SETATTR: changes what the kernel asks for, and takes privileges away where that is due. This
 * takes an RPC; of a file that is being written it may go along with the next COMMIT (set_along.h),
 * and a directory's or symbolic link's may be told later (set_here.h). */
#include <errno.h>
#include <linux/capability.h>

#include "daemon/request/caller.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/lease/lease.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/inode.h"
#include "daemon/ops/change_attr.h"
#include "daemon/ops/set_along.h"
#include "daemon/ops/set_here.h"
#include "daemon/ops/finish.h"

struct setattr_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	bool by_kernel; /* its rights are kernel_owner_rights() */
	bool forgives;  /* a caller that may not do it is told that it is done */
};

static void setattr_end(struct request *req, int status)
{
	struct op *op = op_of(req);
	struct ttl ttl = op_ttl(req);
	struct attr attr = op->seen;

	/* The server was not asked. */
	if (!attr.ino)
		inode_attr(op->inode, &attr);
	if (!status && !req->replied) {
		kernel_owner_settle(op->inode, &attr);
		kernel_pages_end_is_answered(op->inode, attr.size);
	}
	op_end(req);
	if (status)
		reply_error(req, status);
	else
		reply_attr(req, &attr, ttl);
}

/* ---- rights ---------------------------------------------------------------------------------- */

enum { SET_BY_OWNER = SET_MODE | SET_OWNERS | SET_ATIME | SET_MTIME };

/* An unprivileged caller that changes an owner, or cuts a file, leaves no set-user-id behind. On
 * directories these bits are no privileges. */
static bool drops_privileges(
	const struct request *req, const struct inode *inode, const struct rpc_setattr *set)
{
	return !(set->valid & SET_MODE) && !S_ISDIR(inode->type) &&
	       (set->valid & SET_OWNERS || req->args.kill_priv);
}

static uint64_t capabilities_for(uint32_t valid)
{
	return (valid & SET_OWNERS ? 1ULL << CAP_CHOWN : 0) |
	       (valid & SET_BY_OWNER & ~(uint32_t)SET_OWNERS ? 1ULL << CAP_FOWNER : 0);
}

/* If the caller is in the group, the kernel leaves set-group-id in the mode that it sends. Where a
 * new owner takes that bit away, the kernel does not say whether the caller is in the group. */
static struct id_range groups_for(
	const struct request *req, struct inode *inode, const struct rpc_setattr *set, uint32_t gid)
{
	uint32_t group = rpc_setattr_group(set, gid);

	if (set->valid & SET_NO_PRIVILEGES)
		return caller_groups(req, group);
	if (set->valid & SET_MODE && set->mode & S_ISGID)
		return kernel_owner_groups(req, inode, group);
	return ID_RANGE_NONE;
}

static void bind_to_caller(const struct request *req, struct inode *inode, struct rpc_setattr *set)
{
	struct attr attr;

	inode_attr(inode, &attr);
	set->rights = caller_rights(req, capabilities_for(set->valid), attr.uid);
	set->rights.groups = groups_for(req, inode, set, attr.gid);
}

/* The kernel has checked the caller by the owner that it was told last. That has to hold at the
 * server. */
static void bind_to_rights(struct request *req, struct inode *inode, struct rpc_setattr *set)
{
	struct setattr_state *st = op_state(req, struct setattr_state);
	struct attr attr;

	st->by_kernel = kernel_owner_rights(req, inode, &set->rights);
	if (st->by_kernel) {
		inode_attr(inode, &attr);
		set->rights.groups = groups_for(req, inode, set, attr.gid);
	} else {
		bind_to_caller(req, inode, set);
	}
}

/* A mount that has its export for itself knows all, so the kernel's check holds. One that shares
 * has the server check, and so has one that did, where the kernel may have another owner. That is
 * not needed for a file that is cut, which nobody else changes meanwhile. */
static void setattr_settle_rights(struct request *req, struct inode *inode, struct rpc_setattr *set)
{
	bool drops = drops_privileges(req, inode, set);

	if (set->valid & SET_BY_OWNER && !kernel_owner_is_right(inode)) {
		set->valid |= drops ? SET_NO_PRIVILEGES : 0;
		bind_to_rights(req, inode, set);
	} else if (drops) {
		op_takes_privileges(req, inode, set);
	}
}

static void setattr_done(struct request *req, int status)
{
	struct setattr_state *st = op_state(req, struct setattr_state);
	struct rpc_setattr set = st->op.set;

	if (status == -EPERM && st->by_kernel && !req->replied) {
		/* The owner has changed, but the caller may have rights all the same. */
		st->by_kernel = false;
		bind_to_caller(req, st->op.inode, &set);
		op_set_attr(req, &set, setattr_done);
		return;
	}
	setattr_end(req, status == -EPERM && st->forgives ? 0 : status);
}

/* ---- chown(2) of neither user nor group ------------------------------------------------------ */

/* Such a chown(2) takes set-user-id away, as a new owner does. The kernel sends it as a SETATTR
 * that sets nothing, or, with a writeback cache, nothing but ctime. */
static bool sets_nothing(const struct inode *inode, const struct rpc_setattr *set)
{
	return !S_ISDIR(inode->type) && !(set->valid & ~(uint32_t)SET_CTIME);
}

/* The kernel has not checked that the file is the caller's, and /proc may show other ids than those
 * of the caller's mount. Without ctime the request may come from a write, which needs no owner, and
 * takes these bits away by itself. So it is an error only where the request says which user asks.
 */
static int settle_privileges(struct request *req, struct inode *inode, struct rpc_setattr *set)
{
	struct setattr_state *st = op_state(req, struct setattr_state);
	struct rpc_setattr drops = {.valid = 0};
	struct rights rights;
	struct attr attr;

	inode_attr(inode, &attr);
	if (!op_takes_privileges(req, inode, &drops))
		return 0;
	st->forgives = !(set->valid & SET_CTIME) || req->uid == REQUEST_NO_ID;
	rights = caller_rights(req, 1ULL << CAP_FOWNER, attr.uid);
	if (fs_kernel_knows_owners(inode->fs) && !rights_of_owner(&rights, attr.uid))
		return st->forgives ? 0 : -EPERM;
	rights.groups = drops.rights.groups;
	set->valid |= SET_NO_PRIVILEGES;
	set->rights = rights;
	return 0;
}

/* After an append that failed, the kernel cuts the file back to the end that it knew. If the kernel
 * was told that there is no end, nothing is to be cut. */
static bool cuts_what_is_told(const struct request *req, struct inode *inode)
{
	return req->args.set.valid & SET_SIZE && req->args.has_fh &&
	       atomic_load_explicit(&handle_of(req)->appended, memory_order_relaxed) &&
	       kernel_pages_is_raised_end(inode, req->args.set.size);
}

void op_setattr(struct request *req)
{
	struct op *op = op_begin(req);
	struct rpc_setattr set = {
		.valid = req->args.set.valid,
		.mode = req->args.set.mode,
		.uid = req->args.set.uid,
		.gid = req->args.set.gid,
		.size = req->args.set.size,
		.atime = req->args.set.atime,
		.mtime = req->args.set.mtime,
		.ctime = req->args.set.ctime,
	};
	int status = 0;

	if (cuts_what_is_told(req, op->inode)) {
		setattr_end(req, 0);
		return;
	}
	if (sets_nothing(op->inode, &set))
		status = settle_privileges(req, op->inode, &set);
	else
		setattr_settle_rights(req, op->inode, &set);
	if (!status && set.valid && !set_along(req, op->inode, &set) && !set_here(req, &set))
		op_set_attr(req, &set, setattr_done);
	else
		setattr_end(req, status);
}
