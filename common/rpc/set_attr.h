/* set_attr.h - what a SETATTR makes of an inode's mode, owners and times. The server changes its inode
 * by it, and a client what it knows of one, where it answers before the server.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_COMMON_RPC_SET_ATTR_H
#define RMEMFS_COMMON_RPC_SET_ATTR_H

#include <stdint.h>
#include <sys/stat.h>

#include "common/rpc/change_time.h"
#include "common/rpc/rpc_requests.h"

static inline void set_attr_permissions(struct attr *a, const struct rpc_setattr *set)
{
	if (set->valid & SET_MODE)
		a->mode = (a->mode & S_IFMT) | (set->mode & 07777);
	if (set->valid & SET_UID)
		a->uid = set->uid;
	if (set->valid & SET_GID)
		a->gid = set->gid;
}

static inline void set_attr_times(struct attr *a, const struct rpc_setattr *set, int64_t now)
{
	if (set->valid & SET_ATIME)
		a->atime = set->atime;
	if (set->valid & SET_ATIME_NOW)
		a->atime = now;
	if (set->valid & SET_MTIME)
		a->mtime = set->mtime;
	if (set->valid & SET_MTIME_NOW)
		a->mtime = change_time(a->mtime, now);
	a->ctime = set->valid & SET_CTIME ? set->ctime : change_time(a->ctime, now);
}

/* The size, and what SET_NO_PRIVILEGES and SET_NO_CAPS take away, are the caller's. now: by the
 * caller's clock. */
static inline void set_attr(struct attr *a, const struct rpc_setattr *set, int64_t now)
{
	set_attr_permissions(a, set);
	set_attr_times(a, set, now);
}

#endif
