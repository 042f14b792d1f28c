/* change_attr.h - attributes that an operation changes, or takes away.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_OPS_CHANGE_ATTR_H
#define RMEMFS_DAEMON_OPS_CHANGE_ATTR_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* Changes the inode's attributes (op->set.ino is filled in). A change of size lets no I/O of the
 * inode run meanwhile; before one of size or times all that was written is committed. */
void op_set_attr(struct request *req, const struct rpc_setattr *set,
	void (*then)(struct request *req, int status));
/* The file's size, which is less, becomes `size`: what is mapped in between is zero then, whoever
 * has written there. The caller is inside the inode's gate, exclusively, and stays there. */
void op_grow(struct request *req, uint64_t size, void (*then)(struct request *req, int status));
/* True: the inode's mode loses something, or may, when the caller, who is not privileged, has
 * written or changed the owner, and the set, unless NULL, has it taken away. */
bool op_takes_privileges(const struct request *req, struct inode *inode, struct rpc_setattr *set);
/* Likewise, where the request does not say whether its caller is privileged: all but root are not.
 */
bool op_caller_takes_privileges(const struct request *req, struct inode *inode);

/* Takes away from a file what changing its data does: capabilities, and with set_ids set-user-id.
 * Then then(req, 0) goes on. */
void op_drop_privileges(
	struct request *req, bool set_ids, void (*then)(struct request *req, int status));

#endif
