/* change_attr.h - attributes that an operation changes, or takes away.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_OPS_CHANGE_ATTR_H
#define RMEMFS_DAEMON_OPS_CHANGE_ATTR_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* Changes the inode's attributes, and fills in op->set.ino. No I/O of the inode runs during a
 * change of size. All that was written is committed before a change of size or times. */
void op_set_attr(struct request *req, const struct rpc_setattr *set,
	void (*then)(struct request *req, int status));
/* Makes the file, which is shorter, `size` bytes long. All that is mapped in between is zero then,
 * even if another client has written there. The caller is inside the inode's gate, exclusively, and
 * stays there. */
void op_grow(struct request *req, uint64_t size, void (*then)(struct request *req, int status));
/* Whether the inode's mode loses set-user-id or set-group-id, or may, when an unprivileged caller
 * has written or changed the owner. If so, the set, unless NULL, takes them away. */
bool op_takes_privileges(const struct request *req, struct inode *inode, struct rpc_setattr *set);
/* Likewise, where the request does not say whether its caller is privileged: only root is. */
bool op_caller_takes_privileges(const struct request *req, struct inode *inode);

/* Takes away from a file what a change of its data takes: capabilities, and with set_ids
 * set-user-id. Then then(req, 0) goes on. */
void op_drop_privileges(
	struct request *req, bool set_ids, void (*then)(struct request *req, int status));

#endif
