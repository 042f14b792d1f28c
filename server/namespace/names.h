/* names.h - changes of names, and of attributes, that a client has made by itself: those of NAMES,
 * and those that come before the files of a MAKE.
 *
 * THREADS  The metadata thread, in a batch.
 * ERRORS   As in ns.h.
 */
#ifndef RMEMFS_SERVER_NAMESPACE_NAMES_H
#define RMEMFS_SERVER_NAMESPACE_NAMES_H

#include "server/meta/session_codec.h"
#include "server/namespace/ns.h"

/* A request of a session that has its export for itself. */
struct names_run {
	struct ns_call *c;
	struct session_record *lender; /* its numbers */
	/* Store pages for what follows all changes in the same request, or 0. They count as allowed
	 * when `all` is set. */
	uint64_t behind;
	bool took_number;
	bool all; /* all changes have taken effect */
};

/* Makes the changes of the tail, in their order, up to one that is refused. Where the store has no
 * room for all of them, and for what is behind them, it makes the first one. -ENOSPC: there is no
 * room for that, either, or the first one is all that comes before what is behind. */
int names_run(struct names_run *run, const struct rpc_tail *tail, struct rpc_names_reply *rep);

#endif
