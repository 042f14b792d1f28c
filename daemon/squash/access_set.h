/* access_set.h - what an inode's mode and access control list allow one user.
 *
 * The user is in one group, and has no capabilities. An access is a sum of ACCESS_*. A set has bit
 * n if the access n is allowed. It has to be a set: of several entries of a list for the user's
 * group one must allow all that is asked for.
 *
 * THREADS    Pure functions.
 * ERRORS     -EIO: the list makes no sense; it allows nothing then.
 * SOURCE     acl(5), "ACCESS CHECK ALGORITHM"; fs/namei.c acl_permission_check() and
 *            fs/posix_acl.c posix_acl_permission().
 */
#ifndef RMEMFS_DAEMON_SQUASH_ACCESS_SET_H
#define RMEMFS_DAEMON_SQUASH_ACCESS_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/types.h"

/* As in a mode's classes, and in a list's entries. */
enum { ACCESS_EXECUTE = 1, ACCESS_WRITE = 2, ACCESS_READ = 4 };

typedef uint8_t access_set;

static inline bool access_set_has(access_set set, unsigned access)
{
	return set & 1U << access;
}

/* Whether the inode's list decides, and not its mode alone. */
bool access_set_is_by_list(const struct attr *attr, uint32_t uid);
access_set access_set_of_mode(const struct attr *attr, uint32_t uid, uint32_t gid);
/* list: the value of system.posix_acl_access. */
int access_set_of_list(const struct attr *attr, const void *list, size_t len, uint32_t uid,
	uint32_t gid, access_set *set);

#endif
