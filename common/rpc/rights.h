/* rights.h - what a change of data or owner leaves of a mode, and for which ids a caller has rights:
 * the daemon knows who asks, the server what the inode is by then.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_COMMON_RPC_RIGHTS_H
#define RMEMFS_COMMON_RPC_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Inclusive; none where first > last. */
struct id_range {
	uint32_t first, last;
};

#define ID_RANGE_ALL  ((struct id_range){0, UINT32_MAX})
#define ID_RANGE_NONE ((struct id_range){1, 0})

static inline bool id_range_has(const struct id_range *range, uint32_t id)
{
	return range->first <= id && id <= range->last;
}

/* What a caller may do to an inode as its owner may, now that it is what it is. */
struct rights {
	bool bound; /* by what follows; else he may all */
	struct id_range owners;
	struct id_range groups; /* by which he may leave a set-group-id */
};

static inline bool rights_of_owner(const struct rights *rights, uint32_t uid)
{
	return !rights->bound || id_range_has(&rights->owners, uid);
}

static inline bool rights_of_group(const struct rights *rights, uint32_t gid)
{
	return !rights->bound || id_range_has(&rights->groups, gid);
}

/* What is left when somebody who is not privileged has written, or anybody has changed the owner.
 * The mode changes for its set-user-id bit, and who changes a mode without being in the file's
 * group leaves no set-group-id bit, for which group's execution or locking it ever was. */
static inline uint32_t mode_without_privileges(uint32_t mode, bool in_group)
{
	uint32_t left = mode & ~(uint32_t)S_ISUID;

	if (left & S_ISGID && (left & S_IXGRP || (left != mode && !in_group)))
		left &= ~(uint32_t)S_ISGID;
	return left;
}

#endif
