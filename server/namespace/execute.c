/* execute.c - see execute.h. */
#include "server/namespace/execute.h"

#include <errno.h>

#include "server/namespace/ns.h"
#include "server/namespace/squash_request.h"
#include "server/namespace/written.h"

static int (*const operations[RPC_OP_MAX])(struct ns_call *c) = {
	[RPC_LOOKUP] = ns_lookup,
	[RPC_GETATTR] = ns_getattr,
	[RPC_READLINK] = ns_readlink,
	[RPC_READDIR] = ns_readdir,
	[RPC_EXTENTS] = ns_extents,
	[RPC_STATFS] = ns_statfs,
	[RPC_UNPROTECT] = ns_unprotect,
	[RPC_SETATTR] = ns_setattr,
	[RPC_CREATE] = ns_create,
	[RPC_TMPFILE] = ns_tmpfile,
	[RPC_MKNOD] = ns_mknod,
	[RPC_MKDIR] = ns_mkdir,
	[RPC_SYMLINK] = ns_symlink,
	[RPC_LINK] = ns_link,
	[RPC_UNLINK] = ns_unlink,
	[RPC_RMDIR] = ns_rmdir,
	[RPC_RENAME] = ns_rename,
	[RPC_COMMIT] = ns_commit,
	[RPC_MAKE] = ns_make,
	[RPC_NAMES] = ns_names,
	[RPC_GRANT] = ns_grant,
	[RPC_RETURN] = ns_return,
	[RPC_FALLOCATE] = ns_fallocate,
	[RPC_COPY] = ns_copy,
	[RPC_QUOTA] = ns_quota,
	[RPC_GETXATTR] = ns_getxattr,
	[RPC_LISTXATTR] = ns_listxattr,
	[RPC_SETXATTR] = ns_setxattr,
	[RPC_REMOVEXATTR] = ns_removexattr,
	[RPC_STAGE] = ns_stage,
	[RPC_LEASE] = ns_lease,
	[RPC_LOCK] = ns_lock,
	[RPC_CONVERT] = ns_convert,
	[RPC_GETLK] = ns_getlk,
};

static int execute_refuse(struct rpc_reply *rep, int err)
{
	static const char read_only[] = "the session is read-only";

	*rep = (struct rpc_reply){.op = rep->op,
		.slot = rep->slot,
		.seq = rep->seq,
		.status = err,
		.text = rep->text};
	if (err == -EROFS)
		rep->text = (struct rpc_str){read_only, sizeof(read_only) - 1};
	return OUTCOME_REPLY;
}

/* A session that only reads may give back what it has, and take a lease to read. Locks are no
 * change of the file: lock.h says what the locks of such a session do to others. UNPROTECT is for
 * sessions that are going to write, and takes room that writers need. */
static bool changes(const struct rpc_request *req)
{
	bool gives_back = req->op == RPC_RETURN || (req->op == RPC_QUOTA && req->quota.give_back);
	bool reads = (req->op == RPC_LEASE && req->lease.type != LEASE_EXCLUSIVE) ||
		     req->op == RPC_LOCK || req->op == RPC_CONVERT;

	return (req->op >= RPC_SETATTR && !gives_back && !reads) || req->op == RPC_UNPROTECT;
}

/* The operations that give a file bytes, pages or a size; MAKE looks at each file itself. Names,
 * and the bytes in memory that is still there, can be read, so that they can be saved. */
static bool needs_memory(const struct rpc_request *req)
{
	switch (req->op) {
	case RPC_GRANT:
	case RPC_COPY:
	case RPC_FALLOCATE:
		return true;
	case RPC_SETATTR:
		return req->setattr.valid & SET_SIZE;
	case RPC_COMMIT:
		return written_needs_memory(&req->commit);
	default:
		return false;
	}
}

int execute_request(struct meta *m, const struct meta_ctx *ctx, const struct rpc_request *req,
	struct rpc_reply *rep, struct wire_out *tail)
{
	struct ns_call call = {m, m->volumes[ctx->export_index], ctx, req, rep, tail};
	struct rpc_request squashed;
	int err;

	*rep = (struct rpc_reply){.op = rep->op, .slot = rep->slot, .seq = rep->seq};
	if (req->op >= RPC_OP_MAX || !operations[req->op])
		return execute_refuse(rep, -EOPNOTSUPP);
	if (ctx->read_only && changes(req))
		return execute_refuse(rep, -EROFS);
	if (volume_is_lost(call.v) && needs_memory(req))
		return execute_refuse(rep, -EIO);
	if (ctx->squash.kind != SQUASH_NONE) {
		squashed = *req;
		call.req = &squashed;
		err = squash_request(&ctx->squash, &squashed, &rep->text);
		if (err)
			return execute_refuse(rep, err);
	}
	m->lacks_pages = false;
	volume_charge(call.v);
	err = operations[req->op](&call);
	if (store_failed(m->store))
		return store_failed(m->store);
	if (err == NS_PARK)
		return OUTCOME_PARK;
	if (err == NS_WAIT)
		return OUTCOME_WAIT;
	return err ? execute_refuse(rep, err) : OUTCOME_REPLY;
}
