/* set_here.h - a SETATTR of a directory or symbolic link that is answered without the server
 * (file/name_queue.h). */
#ifndef RMEMFS_DAEMON_OPS_SET_HERE_H
#define RMEMFS_DAEMON_OPS_SET_HERE_H

#include <stdbool.h>

#include "common/rpc/rpc.h"

struct request;

/* Sets mode, owners and times of op->inode, a directory, which may itself not be at the server yet;
 * or owners and times of a symbolic link that is not.
 * The server makes the same of it, by set_attr.h, and times that are now are told as they are here.
 * False: the server has to be asked. It is asked where
 * - the mount makes no files by itself either, or not now (make_here.h): so there are no quotas
 *   that could refuse an owner, and no squashed users;
 * - anything else is to be set, or it is neither;
 * - the kernel may have checked the caller by another owner than the present one
 *   (kcache/kernel_owner.h);
 * - it is being changed, or has no name any more;
 * - the server knows the link: no directory is known then whose fsync could tell that it refuses;
 * - a file that was made in it is not at the server yet: that would set its mtime again, and take
 *   its group;
 * - the mode is to be set, and there is an access list, which follows it;
 * - the access time is to be set, and an older one is on its way;
 * - too many changes wait.
 *
 * The caller's rights were checked by the kernel, as for remove_here(). It also takes set-group-id
 * out of the mode if the caller is outside the group. It holds the directory's lock, so no name in
 * it is made meanwhile. */
bool set_here(struct request *req, const struct rpc_setattr *set);

/* The same for a SETXATTR of an access list that says no more than a mode, by which cp(1) sets the
 * mode of a directory (set_along.h). */
bool set_here_list(struct request *req);

#endif
