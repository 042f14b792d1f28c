/* change_attr.c - changing attributes, for SETATTR itself and for what implies it: O_TRUNC, the
 * loss of set-user-id by writing, and growth before a write or an allocation behind the end.
 *
 *     [gate, if the size or mtime changes] -> [COMMIT, if size or times do] -> SETATTR -> the cache
 *
 * WRITE, FALLOCATE and COPY change the mtime, too. Those under way end before a new mtime is sent,
 * and the next ones begin after its answer. So client and server have the same mtime, and no older
 * one comes back.
 *
 * SETATTR is sent again as long as the file has not grown to its size.
 *
 * With quotas a change of owner is treated like one of size: what was written before counts for the
 * old owner.
 */
#include <errno.h>

#include "common/base/log.h"
#include "common/rpc/rights.h"
#include "daemon/request/caller.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/pages/quota_allowance.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/inode.h"
#include "daemon/file/extent_map.h"
#include "daemon/file/gate.h"
#include "daemon/file/commit.h"
#include "daemon/kcache/expire.h"
#include "daemon/file/gate_pass.h"
#include "daemon/ops/change_attr.h"

/* Looks at the caller only if the file has such bits. The server takes them from the mode that it
 * has by then. Another change of the mode may be on its way, or the mode known here may be older
 * than one. */
bool op_takes_privileges(const struct request *req, struct inode *inode, struct rpc_setattr *set)
{
	struct attr attr;
	bool known = inode_attr(inode, &attr);
	struct id_range groups;
	uint32_t left;

	if (known && mode_without_privileges(attr.mode, false) == attr.mode)
		return false;
	groups = caller_groups(req, set ? rpc_setattr_group(set, attr.gid) : attr.gid);
	left = mode_without_privileges(attr.mode, id_range_has(&groups, attr.gid));
	if (known && left == attr.mode)
		return false;
	if (set) {
		set->valid |= SET_NO_PRIVILEGES;
		set->rights = (struct rights){true, ID_RANGE_ALL, groups};
	}
	return true;
}

bool op_caller_takes_privileges(const struct request *req, struct inode *inode)
{
	return op_takes_privileges(req, inode, NULL) && caller_root(req) != CALLER_IS_ROOT;
}

/* atime: the new one, if it was changed. */
static void set_finish(struct request *req, int status, const int64_t *atime)
{
	struct op *op = op_of(req);

	if (op->set.valid & SET_ATIMES) {
		access_time_release(op->inode, atime);
		op->seen.atime = atime ? *atime : op->seen.atime;
	}
	if (file_op(op)->pass.inside && !op->stays_inside)
		gate_pass_leave(req);
	op->set_done(req, status);
}

/* All that was written is committed and nothing runs, so the server's numbers are exact. */
static void set_size_locked(struct inode *inode, const struct attr *attr)
{
	/* A file that grows keeps what was allocated beyond its end. */
	if (attr->size <= inode->attr.size)
		extent_map_cut(&inode->map, div_round_up(attr->size, PAGE_BYTES));
	inode->attr.size = attr->size;
	inode->attr.npages = attr->npages;
	inode->attr.ctime = attr->ctime;
}

/* The owner is set even if other changes are on their way: new pages count for the owner's quota.
 */
static void set_owner_locked(const struct op *op, const struct attr *attr)
{
	if (op->set.valid & SET_UID)
		op->inode->attr.uid = attr->uid;
	if (op->set.valid & SET_GID)
		op->inode->attr.gid = attr->gid;
}

static void set_send(struct request *req, int status);

/* A file may grow in several steps. */
static bool is_to_grow_on(
	const struct op *op, const struct attr *attr, uint64_t before, int *status)
{
	char text[PATH_INODE_BYTES];

	if (!attr || !(op->set.valid & SET_SIZE) || attr->size >= op->set.size)
		return false;
	if (attr->size > before)
		return true;
	log_error("%s: the server's size makes no sense", path_name_inode(op->inode, text));
	*status = -EIO;
	return false;
}

static void set_answered(struct request *req, const struct rpc_reply *rep)
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	const struct attr *attr = rep->status ? NULL : &rep->attr.attr;
	int status = rep->status;
	uint64_t before;

	pthread_mutex_lock(&inode->lock);
	before = inode->attr.size;
	pthread_mutex_unlock(&inode->lock);
	inode_change_end(inode, attr);
	if (attr && inode_is_regular(inode)) {
		pthread_mutex_lock(&inode->lock);
		if (op->set.valid & SET_SIZE)
			set_size_locked(inode, attr);
		if (op->set.valid & (SET_SIZE | SET_MTIMES))
			inode->attr.mtime = attr->mtime;
		set_owner_locked(op, attr);
		pthread_mutex_unlock(&inode->lock);
	}
	if (attr)
		inode_see(inode, attr, &op->seen);
	if (is_to_grow_on(op, attr, before, &status))
		set_send(req, req->interrupted ? -EINTR : 0);
	else
		set_finish(req, status, attr ? &attr->atime : NULL);
}

static bool moves_quota(const struct op *op)
{
	return inode_is_regular(op->inode) && op_sets_counted_owner(op->inode->fs, op->set.valid);
}

static bool change_attr_changes_data(const struct op *op)
{
	return inode_is_regular(op->inode) &&
	       op_set_attr_keeps_others_out(op->inode->fs, op->set.valid);
}

static void return_share(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	quota_allowance_return_locked(inode->fs, &inode->share, &inode->attr);
	pthread_mutex_unlock(&inode->lock);
}

static void set_send(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (status) {
		set_finish(req, status, NULL);
		return;
	}
	if (moves_quota(op))
		return_share(op->inode);
	inode_change_begin(op->inode);
	op->call.req.op = RPC_SETATTR;
	op->call.req.setattr = op->set;
	op_rpc(req, set_answered);
}

static void set_commit(struct request *req, int status)
{
	struct op *op = op_of(req);

	bool after_data = op->set.valid & (SET_SIZE | SET_MTIMES | SET_ATIMES) || moves_quota(op);

	if (!status &&
		!(after_data ? commit_wait : commit_wait_set)(req, op->inode, &status, set_send))
		return;
	set_send(req, status);
}

void op_set_attr(struct request *req, const struct rpc_setattr *set,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	op->set = *set;
	op->set.ino = op->inode->ino;
	op->set_done = then;
	if (set->valid & SET_ATIMES)
		access_time_hold(op->inode);
	if (!change_attr_changes_data(op) ||
		gate_pass_enter(req, GATE_EXCLUSIVE, 0, UINT64_MAX, set_commit))
		set_commit(req, 0);
}

void op_grow(struct request *req, uint64_t size, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;

	pthread_mutex_lock(&inode->lock);
	inode->growing = true;
	inode->size_before = inode->attr.size;
	pthread_mutex_unlock(&inode->lock);
	op->set = (struct rpc_setattr){.ino = inode->ino, .valid = SET_SIZE, .size = size};
	op->stays_inside = true;
	op->set_done = then;
	set_commit(req, 0);
}

/* ---- privileges ------------------------------------------------------------------------------ */

/* The kernel does not know that the mode has changed, and would go on to honour bits that are gone.
 */
static void change_attr_dropped(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (!status && (op->set.valid & SET_NO_PRIVILEGES))
		op_expire_attr(req, op->dropped);
	else
		op->dropped(req, status);
}

void op_drop_privileges(
	struct request *req, bool set_ids, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct rpc_setattr set = {.valid = 0};

	if (set_ids)
		op_takes_privileges(req, op->inode, &set);
	if (inode_has_caps(op->inode))
		set.valid |= SET_NO_CAPS;
	op->dropped = then;
	if (set.valid)
		op_set_attr(req, &set, change_attr_dropped);
	else
		then(req, 0);
}
