/* rights.h - the mode that is left after a change of data or owner, what a new inode gets from its
 * directory, and the ids for which a caller has rights. The daemon knows the caller; the server
 * knows the inode as it is by then.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_COMMON_RPC_RIGHTS_H
#define RMEMFS_COMMON_RPC_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Inclusive; empty where first > last. */
struct id_range {
	uint32_t first, last;
};

#define ID_RANGE_ALL  ((struct id_range){0, UINT32_MAX})
#define ID_RANGE_NONE ((struct id_range){1, 0})

static inline bool id_range_has(const struct id_range *range, uint32_t id)
{
	return range->first <= id && id <= range->last;
}

/* The owners and groups for which a caller has an owner's rights to an inode. The server checks
 * them against the inode as it is when it executes the request. */
struct rights {
	bool bound; /* by the ranges below; else the caller may do all */
	struct id_range owners;
	struct id_range groups; /* of these the caller may leave a set-group-id bit */
};

static inline bool rights_of_owner(const struct rights *rights, uint32_t uid)
{
	return !rights->bound || id_range_has(&rights->owners, uid);
}

static inline bool rights_of_group(const struct rights *rights, uint32_t gid)
{
	return !rights->bound || id_range_has(&rights->groups, gid);
}

/* The mode that is left after a write by an unprivileged caller, or after any change of owner. The
 * set-user-id bit goes, and the set-group-id bit of a file that its group may execute. Where a
 * set-user-id bit goes and the caller is outside the file's group, any set-group-id bit goes. */
static inline uint32_t mode_without_privileges(uint32_t mode, bool in_group)
{
	uint32_t left = mode & ~(uint32_t)S_ISUID;

	if (left & S_ISGID && (left & S_IXGRP || (left != mode && !in_group)))
		left &= ~(uint32_t)S_ISGID;
	return left;
}

/* The permissions of a new inode, if its directory has no default ACL, and its group. */
static inline uint32_t mode_of_new_inode(uint32_t mode, uint32_t umask)
{
	return mode & ~(umask & (uint32_t)ACCESSPERMS);
}

static inline uint32_t group_of_new_inode(uint32_t dir_mode, uint32_t dir_gid, uint32_t gid)
{
	return dir_mode & S_ISGID ? dir_gid : gid;
}

#endif
