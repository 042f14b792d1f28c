/* lease_private.h - what the files of lease.h have of each other.
 *
 * THREADS    As lease.h.
 */
#ifndef RMEMFS_DAEMON_LEASE_PRIVATE_H
#define RMEMFS_DAEMON_LEASE_PRIVATE_H

#include <stdint.h>

#include "daemon/lease.h"
#include "daemon/op.h"

struct rpc_recall;
struct rpc_return;
struct rpc_returned;

/* What the request needs, in the order in which it is to be taken, with references: of regular
 * files only. What else is leased came by looking (look.h). */
unsigned lease_needs_of(const struct request *req, struct op_lease needs[OP_LEASES]);

/* RETURN's body for one inode, whose tail is these RPC_RETURNED_BYTES. */
void lease_put_returned(struct rpc_return *ret, uint8_t *tail, const struct rpc_returned *returned);

/* The server wants something of the inode back. */
void lease_recalled(struct inode *inode, struct io_thread *thread, const struct rpc_recall *recall);

#endif
