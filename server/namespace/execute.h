/* execute.h - one request on files or names: the table of operations.
 *
 * THREADS    The metadata thread, in a batch (meta.h).
 */
#ifndef RMEMFS_SERVER_NAMESPACE_EXECUTE_H
#define RMEMFS_SERVER_NAMESPACE_EXECUTE_H

#include "server/meta/meta.h"

enum execute_result {
	EXECUTE_DONE, /* rep is complete: a success, or an error of the request's own (status, text)
		       */
	EXECUTE_PARK, /* no pages now, but some are being reaped or scrubbed: run it again when
		       * meta_reclaim has freed some. Nothing was changed. */
	EXECUTE_WAIT, /* another session has a lease that is in the way, see meta_wait(): run it
		       * again when that is gone. Nothing was changed, but a session that waits with
		       * LEASE has no lease of the inode. */
};

/* Executes one request of RPC_LOOKUP and above. rep: op, slot and seq are the caller's; status and
 * body are filled. tail: where a reply's tail may be written, in place; rep's tail points there.
 * READLINK's target points into the batch's transaction: encode the reply before the batch ends.
 * Returns an execute_result, or -errno when the store failed: abort the batch. */
int execute_request(struct meta *m, const struct meta_ctx *ctx, const struct rpc_request *req,
	struct rpc_reply *rep, struct wire_out *tail);

#endif
