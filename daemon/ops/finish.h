/* finish.h - how operations end: with an error, or with an entry.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_OPS_FINISH_H
#define RMEMFS_DAEMON_OPS_FINISH_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* The same for one that has not begun. */
void op_refuse(struct request *req, int status);

/* Whether `status` of a GETATTR or READDIR says that another client has removed the directory. It
 * is no error to who has it open, and that is not known: the kernel sends no OPENDIR. */
bool op_is_removed_directory(struct request *req, int status);

/* Ends the operation with an entry for the inode, whose reference it takes over, and whose
 * attributes are in op->seen. */
void op_reply_entry(struct request *req, struct inode *inode);

/* The time that the kernel may keep what it is told now. */
struct ttl op_ttl(struct request *req);

#endif
