/* finish.h - how operations end: with an error, or with an entry.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_OPS_FINISH_H
#define RMEMFS_DAEMON_OPS_FINISH_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* Answers an operation that has not begun with an error. */
void op_refuse(struct request *req, int status);

/* Whether `status` of a GETATTR or READDIR says that another client has removed the directory. A
 * program that has it open must not get that error. The kernel sends no OPENDIR, so nobody knows
 * whether there is one. */
bool op_is_removed_directory(struct request *req, int status);

/* Ends the operation with an entry for the inode, and takes over the caller's reference to it. The
 * inode's attributes are in op->seen. */
void op_reply_entry(struct request *req, struct inode *inode);

/* For how long the kernel may keep the answer that it gets now. */
struct ttl op_ttl(struct request *req);

#endif
