/* op_inode.h - the inode of an operation: how an operation begins and ends.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_FILE_OP_INODE_H
#define RMEMFS_DAEMON_FILE_OP_INODE_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* The first and last calls of every operation. op_end() leaves the gate and drops the inode; the
 * reply follows at once. */
struct op *op_begin(struct request *req);
/* The same with an inode whose reference the caller hands over. */
struct op *op_begin_with(struct request *req, struct inode *inode);
/* The inode that the request is about, with a reference. */
struct inode *op_inode_of(const struct request *req);
void op_end(struct request *req);
/* Ends the operation and answers it without a body: 0 or -errno. */
void op_finish(struct request *req, int status);

/* Whether facts known under a lease may be told: only while the server has heard of us lately. */
bool op_may_tell(const struct request *req);
/* Called before an answer that took no RPC or transfer, as that a file ends there. If op_may_tell()
 * is false it asks the server whether the session is there. True: the answer may be told. False:
 * then(req, status) follows. */
bool op_make_sure(struct request *req, void (*then)(struct request *req, int status));

#endif
