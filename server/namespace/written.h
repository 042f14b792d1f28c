/* written.h - the steps that COMMIT and MAKE share: what a client has written into a file is checked,
 * and becomes the file's.
 *
 * THREADS  The metadata thread, in a batch.
 * ERRORS   As in ns.h.
 */
#ifndef RMEMFS_SERVER_NAMESPACE_WRITTEN_H
#define RMEMFS_SERVER_NAMESPACE_WRITTEN_H

#include "server/namespace/ns.h"

/* Checks the request, and its n extents: -EINVAL, -EFBIG, -EEXIST, those of space_check_granted()
 * and ns_wait_for_reaper(). */
int written_check(struct ns_call *c, const struct rpc_commit *req, const struct stored_inode *i,
	const struct extent *e, unsigned n);
/* The attributes that the request sets, as far as a squashed session may. */
struct rpc_setattr written_attributes(
	const struct ns_call *c, const struct rpc_commit *req, const struct stored_inode *i);
/* Makes granted pages the file's, and counts them. The extents were checked. */
int written_map(struct ns_call *c, struct stored_inode *i, const struct extent *e, unsigned n);
/* Whether the request gives the file bytes, pages or a size: refused where memory is lost. */
bool written_needs_memory(const struct rpc_commit *req);

#endif
