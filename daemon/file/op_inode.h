/* op_inode.h - the inode of an operation: how an operation begins and ends.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_FILE_OP_INODE_H
#define RMEMFS_DAEMON_FILE_OP_INODE_H

#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* First and last of every operation. op_end leaves the gate and drops the inode; the reply follows
 * at once. */
struct op *op_begin(struct request *req);
/* The same with an inode that the caller has a reference to, and gives away. */
struct op *op_begin_with(struct request *req, struct inode *inode);
/* The inode that the request is about, with a reference. */
struct inode *op_inode_of(const struct request *req);
void op_end(struct request *req);
/* Both ends in one, without a body: 0 or -errno. */
void op_finish(struct request *req, int status);

/* Whether what is known under a lease may be told: it is good for as long as the server has heard
 * of us, and no longer. */
bool op_may_tell(const struct request *req);
/* Before what nobody else was asked for is answered, as that a file ends there: asks the server
 * whether the session is there if that may not be told. True: it may. False: then(req, status)
 * follows. */
bool op_make_sure(struct request *req, void (*then)(struct request *req, int status));

#endif
