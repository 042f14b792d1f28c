/* execute.h - one request on files or names: the table of operations.
 *
 * THREADS    The metadata thread, in a batch (meta.h).
 */
#ifndef RMEMFS_SERVER_NAMESPACE_EXECUTE_H
#define RMEMFS_SERVER_NAMESPACE_EXECUTE_H

#include "server/meta/meta.h"

/* How one execution of a request ends. Only one with OUTCOME_REPLY has changed anything. But a
 * LEASE that waits has given up the lease that its session had of the inode. */
enum outcome {
	/* The reply is complete: a success, or an error of the request's own (status, text). */
	OUTCOME_REPLY,
	/* There are no pages now, but some are being reaped or scrubbed: the request runs again
	 * when meta_reclaim() has freed some. */
	OUTCOME_PARK,
	/* Another session has a lease that is in the way, see meta_wait(): the request runs again
	 * when that lease is gone. */
	OUTCOME_WAIT,
	/* Only dispatch.c gives these two. */
	OUTCOME_LACK,   /* others have what it lacks: they are asked when the batch is stored */
	OUTCOME_BREACH, /* it breaks the protocol: the channel is closed */
};

/* Executes one request of RPC_LOOKUP and above. rep: op, slot and seq are the caller's; status and
 * body are filled. tail: where a reply's tail may be written, in place; rep's tail points there.
 * READLINK's target points into the batch's transaction: encode the reply before the batch ends.
 * Returns OUTCOME_REPLY, OUTCOME_PARK or OUTCOME_WAIT, or -errno when the store failed: abort the
 * batch. */
int execute_request(struct meta *m, const struct meta_ctx *ctx, const struct rpc_request *req,
	struct rpc_reply *rep, struct wire_out *tail);

#endif
