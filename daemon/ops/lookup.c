/* LOOKUP: one RPC brings the attributes and the first extents, so opening and reading a small file
 * needs no other. No RPC is needed to know that a new directory lacks a name. */
#include <errno.h>

#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/lease/local_answer.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/inode_path.h"
#include "daemon/ops/finish.h"
#include "daemon/lease/lease.h"

struct lookup_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	struct look_up look;
};

static void lookup_answered(struct request *req, const struct rpc_reply *rep);

static void lookup_ask(struct request *req)
{
	struct lookup_state *st = op_state(req, struct lookup_state);

	uint8_t look =
		local_answer_up_begin(req, st->op.inode, path_is_dots(req->args.name), &st->look);

	st->op.call.req.op = RPC_LOOKUP;
	st->op.call.req.name = (struct rpc_name_request){
		.parent = st->op.inode->ino,
		.name = op_name(req->args.name),
		.look = look,
	};
	op_rpc(req, lookup_answered);
}

static void lookup_end(struct request *req, struct inode *inode)
{
	const struct op *op = op_of(req);

	local_answer_up_shown(req, op->inode, inode, &op->seen);
	op_reply_entry(req, inode);
}

static void lookup_found(struct request *req, const struct rpc_entry_reply *entry)
{
	struct lookup_state *st = op_state(req, struct lookup_state);
	struct inode *inode = inode_get(req->thread->fs, entry->attr.ino);

	if (!inode) {
		op_finish(req, -ENOMEM);
		return;
	}
	if (local_answer_up_end(req, st->op.inode, inode, &st->look, entry)) {
		inode_attr(inode, &st->op.seen);
		lookup_end(req, inode);
		return;
	}
	if (inode_learn_entry(inode, entry, st->look.epoch, &st->op.seen)) {
		lookup_end(req, inode);
		return;
	}
	inode_put(inode);
	lookup_ask(req);
}

static void lookup_missing(struct request *req)
{
	struct ttl ttl = op_ttl(req);

	local_answer_up_shown(req, op_of(req)->inode, NULL, NULL);
	op_end(req);
	reply_entry(req, 0, NULL, ttl);
}

static void lookup_answered(struct request *req, const struct rpc_reply *rep)
{
	struct lookup_state *st = op_state(req, struct lookup_state);
	bool missing = rep->status ? rep->status == -ENOENT : !rep->entry.attr.ino;

	if (missing)
		local_answer_up_end(
			req, st->op.inode, NULL, &st->look, rep->status ? NULL : &rep->entry);
	if (missing)
		lookup_missing(req);
	else if (!rep->status)
		lookup_found(req, &rep->entry);
	else
		op_finish(req, rep->status);
}

/* True only while the kernel may keep entries: when the session's lease has ended, the server may
 * let other clients in. */
static bool is_missing(struct request *req)
{
	const char *name = req->args.name;

	return op_ttl(req).entry_ms && !path_is_dots(name) &&
	       (inode_names_lack(op_of(req)->inode, name) ||
		       local_answer_lacks_name(req, op_of(req)->inode, name));
}

/* The kernel looks up "." and ".." of an inode that it has forgotten and that a program has a file
 * handle of. */
void op_lookup(struct request *req)
{
	struct inode *inode = inode_get(req->thread->fs, req->node), *child;
	bool missing = false;

	if (!inode) {
		reply_error(req, -ENOMEM);
		return;
	}
	op_begin_with(req, inode);
	child = path_is_dots(req->args.name)
			? NULL
			: local_answer_up_here(req, inode, &op_of(req)->seen, &missing);
	if (child)
		lookup_end(req, child);
	else if (missing || is_missing(req))
		lookup_missing(req);
	else
		lookup_ask(req);
}
