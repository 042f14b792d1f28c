/* set_along.h - attributes of a file that is being written: they change here at once, and the COMMIT
 * of its close, or of the next second, tells the server. So they cost no RPC of their own.
 *
 * This is for changes that the server could not refuse, and would do nothing else for. The file is
 * open for writing, and the mount has its export for itself. There are no quotas, squashed users,
 * access control lists or capabilities.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_OPS_SET_ALONG_H
#define RMEMFS_DAEMON_OPS_SET_ALONG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"

struct attr;
struct inode;
struct request;

/* True: the change is done as far as anybody here can see. False: the server has to be asked. */
bool set_along(struct request *req, struct inode *inode, const struct rpc_setattr *set);

/* Whether the request's list says no more than a mode. If so, *mode is what the server makes of the
 * inode's by it. */
bool set_along_mode_of_list(const struct request *req, const struct attr *attr, uint32_t *mode);

/* The same for a SETXATTR of an access list that says no more than a mode: cp(1) sets one
 * on each file whose mode it keeps. The inode has the mode then, and no list. Where that is its
 * mode already nothing changes, of a directory either; else see set_here_list(). See acl(5),
 * "CORRESPONDENCE BETWEEN ACL ENTRIES AND FILE PERMISSION BITS". */
bool set_along_list(struct request *req, struct inode *inode);

#endif
