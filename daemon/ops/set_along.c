#include "daemon/ops/set_along.h"

#include <sys/stat.h>

#include "common/rpc/acl.h"
#include "common/rpc/set_attr.h"
#include "daemon/file/commit.h"
#include "daemon/file/gate.h"
#include "daemon/file/inode.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/op/fs_parts.h"

enum { SET_PERMISSIONS = SET_MODE | SET_OWNERS };
/* Owner, group and others. */
enum { MODE_LIST_BYTES = ACL_HEADER_BYTES + 3 * ACL_ENTRY_BYTES };

/* With a writeback cache the kernel tells the times of writes by a SETATTR of their own, at each
 * close. */
static bool is_of_written_back(const struct inode *inode, const struct rpc_setattr *set)
{
	return inode->fs->features.writeback && set->valid == (SET_MTIME | SET_CTIME);
}

/* The server would do nothing else, and refuse nothing. There is no quota, no squash, no access
 * control list, no capabilities that change with it, and no other change on its way. */
static bool can_set_permissions_locked(const struct inode *inode, uint32_t valid)
{
	return !inode->nchanging && !inode->attr.flags && !inode_has_caps(inode) &&
	       session_squash(inode->fs->session).kind == SQUASH_NONE &&
	       (!(valid & SET_OWNERS) || !session_quotas(inode->fs->session));
}

/* A file that is open for writing is committed when it is closed. The change goes along, as the
 * times of a writeback cache do. */
static bool can_go_along_locked(const struct inode *inode, const struct rpc_setattr *set)
{
	if (!inode->sized || !inode->attr_valid || inode->returned ||
		(set->valid & (SET_SIZE | SET_NO_PRIVILEGES)))
		return false;
	if (is_of_written_back(inode, set))
		return true;
	return inode->nwriters && (!(set->valid & SET_ATIMES) || !inode->access.held) &&
	       (!(set->valid & SET_MTIMES) || gate_is_settled(&inode->gate)) &&
	       (!(set->valid & SET_PERMISSIONS) || can_set_permissions_locked(inode, set->valid));
}

static void apply_locked(struct request *req, struct inode *inode, const struct rpc_setattr *set)
{
	set_attr(&inode->attr, set, session_time(inode->fs->session));
	if (set->valid & SET_ATIMES) {
		inode->access.dirty = true;
		inode->access.until_ms = 0;
	}
	inode->commit.times_dirty = true;
	inode->commit.set |= set->valid & SET_PERMISSIONS;
	commit_dirty_locked(inode, req->thread);
}

bool set_along(struct request *req, struct inode *inode, const struct rpc_setattr *set)
{
	bool along;

	if (!inode_is_regular(inode) || !kernel_owner_is_right(inode))
		return false;
	pthread_mutex_lock(&inode->lock);
	along = can_go_along_locked(inode, set);
	if (along)
		apply_locked(req, inode, set);
	pthread_mutex_unlock(&inode->lock);
	return along;
}

/* ---- access lists ---------------------------------------------------------------------------- */

static bool is_list_of_a_mode(const struct request *req, struct acl *acl)
{
	return req->args.size == MODE_LIST_BYTES &&
	       !acl_decode(acl, req->args.value, MODE_LIST_BYTES) && acl_is_mode(acl);
}

/* As the server does it: namespace/xattr.c. */
static uint32_t mode_of_list(
	const struct request *req, const struct acl *acl, const struct attr *attr)
{
	uint32_t mode = acl_to_mode(acl, attr->mode);

	return req->args.flags & SETXATTR_KILL_SGID ? mode & ~(uint32_t)S_ISGID : mode;
}

bool set_along_mode_of_list(const struct request *req, const struct attr *attr, uint32_t *mode)
{
	struct acl acl;
	bool is = is_list_of_a_mode(req, &acl);

	if (is)
		*mode = mode_of_list(req, &acl, attr);
	return is;
}

static bool is_mode_known_locked(const struct inode *inode)
{
	return inode->attr_valid && !inode->returned && can_set_permissions_locked(inode, SET_MODE);
}

static bool take_mode_locked(struct request *req, struct inode *inode, const struct acl *acl)
{
	struct rpc_setattr set = {.valid = SET_MODE, .mode = mode_of_list(req, acl, &inode->attr)};

	if (!is_mode_known_locked(inode))
		return false;
	if (set.mode == inode->attr.mode)
		return true;
	if (!inode_is_regular(inode) || !can_go_along_locked(inode, &set))
		return false;
	apply_locked(req, inode, &set);
	return true;
}

bool set_along_list(struct request *req, struct inode *inode)
{
	struct acl acl;
	bool done;

	if (!is_list_of_a_mode(req, &acl) || !kernel_owner_is_right(inode) ||
		session_is_read_only(inode->fs->session))
		return false;
	pthread_mutex_lock(&inode->lock);
	done = take_mode_locked(req, inode, &acl);
	pthread_mutex_unlock(&inode->lock);
	return done;
}
