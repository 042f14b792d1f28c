/* Names that go: UNLINK, RMDIR, RENAME. The server keeps an inode that has lost its last name until
 * we return it (inode_return.h). */
#include <stdio.h>

#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/ops/move_here.h"
#include "daemon/ops/remove_here.h"
#include "daemon/file/inode_return.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/local_answer.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/inode_path.h"
#include "daemon/file/op_inode.h"
#include "daemon/lease/lease.h"

struct remove_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	struct inode *new_parent; /* RENAME to another directory */
	uint64_t move;            /* RENAME: inode_move_begin() */
	struct look_change names[OP_CHILDREN_MAX];
};

/* Returns NULL and gives the inode back if it is not known here. If a CREATE's answer comes just
 * now, the second look finds its inode, or the CREATE finds the note. */
static struct inode *find_orphan(struct io_thread *thread, uint64_t ino, uint64_t number)
{
	struct inode *inode = inode_find(thread->fs, ino);

	if (inode)
		return inode;
	lease_note(thread->fs, ino);
	inode = inode_find(thread->fs, ino);
	if (!inode)
		inode_return_add(thread, ino, number);
	return inode;
}

/* Takes an answer's attributes of the n-th inode, which lost a name, got another one, or has a new
 * ctime. */
static void take_child(struct request *req, unsigned n, const struct attr *attr, uint64_t number)
{
	struct remove_state *st = op_state(req, struct remove_state);
	struct look_change *change = &st->names[n];
	struct inode *inode;

	op_of(req)->children[n] = attr->ino;
	if (!attr->ino)
		return;
	inode = attr->nlink ? inode_find(req->thread->fs, attr->ino)
			    : find_orphan(req->thread, attr->ino, number);
	if (!inode)
		return;
	if (inode == change->child)
		local_answer_change_child(req, change, attr);
	else
		inode_changed_since(inode, attr, change->epoch, st->move);
	if (!attr->nlink)
		inode_return_orphan(inode, number, req->thread);
	inode_put(inode);
}

/* ino: the inode that has the n-th name now; 0: none. */
static void remove_end_name(struct request *req, unsigned n, struct inode *dir, uint64_t ino)
{
	struct look_change *change = &op_state(req, struct remove_state)->names[n];

	local_answer_change_child(req, change, NULL);
	local_answer_change_end(req, dir, change, ino);
}

static void end_name_unknown(struct request *req, unsigned n)
{
	struct look_change *change = &op_state(req, struct remove_state)->names[n];

	local_answer_change_child(req, change, NULL);
	local_answer_change_end_unknown(req, change);
}

static void remove_remove_answered(struct request *req, const struct rpc_reply *rep)
{
	struct op *op = op_of(req);
	int status = local_answer_change_status(
		req, &op_state(req, struct remove_state)->names[0], rep->status);

	if (!rep->status) {
		inode_names_remove(op->inode, req->args.name);
		take_child(req, 0, &rep->remove.child, rep->remove.number);
		remove_end_name(req, 0, op->inode, 0);
	} else {
		end_name_unknown(req, 0);
	}
	/* Last: a list that is asked for now may tell all names (inode_names.h). */
	inode_change_end(op->inode, rep->status ? NULL : &rep->remove.parent);
	op_finish(req, status);
}

static void remove_name(struct request *req, enum rpc_op rpc)
{
	struct op *op = op_of(req);
	struct look_change *change = &op_state(req, struct remove_state)->names[0];

	inode_change_begin(op->inode);
	local_answer_change_begin(req, op->inode, req->args.name, LOOK_ENDS, change);
	op->call.req.op = rpc;
	op->call.req.name = (struct rpc_name_request){
		.parent = op->inode->ino,
		.name = op_name(req->args.name),
		.expected = change->expected,
	};
	op_rpc(req, remove_remove_answered);
}

void op_unlink(struct request *req)
{
	op_begin(req);
	if (remove_here(req))
		op_finish(req, 0);
	else
		remove_name(req, RPC_UNLINK);
}

void op_rmdir(struct request *req)
{
	op_begin(req);
	if (remove_here(req))
		op_finish(req, 0);
	else
		remove_name(req, RPC_RMDIR);
}

/* ---- RENAME ---------------------------------------------------------------------------------- */

static void note_place(struct request *req, uint64_t ino, uint64_t parent, const char *name)
{
	struct inode *inode = ino ? inode_find(req->thread->fs, ino) : NULL;

	if (!inode)
		return;
	path_note(inode, parent, name);
	inode_put(inode);
}

/* An inode that was replaced, and not exchanged, has no name there any more. */
static void note_places(struct request *req, const struct rpc_rename_reply *rep)
{
	note_place(req, rep->moved.ino, req->args.node2, req->args.name2);
	if (req->args.flags & RENAME_EXCHANGE)
		note_place(req, rep->other.ino, req->node, req->args.name);
}

static void rename_answered(struct request *req, const struct rpc_reply *rep)
{
	struct remove_state *st = op_state(req, struct remove_state);
	int status = rep->status;

	for (unsigned n = 0; n < OP_CHILDREN_MAX; n++)
		status = local_answer_change_status(req, &st->names[n], status);
	inode_change_end(st->op.inode, rep->status ? NULL : &rep->rename.parent);
	if (st->new_parent)
		inode_change_end(st->new_parent, rep->status ? NULL : &rep->rename.new_parent);
	if (!rep->status) {
		note_places(req, &rep->rename);
		take_child(req, 0, &rep->rename.moved, 0);
		take_child(req, 1, &rep->rename.other, rep->rename.number);
		remove_end_name(req, 1, st->new_parent ? st->new_parent : st->op.inode,
			rep->rename.moved.ino);
	} else {
		end_name_unknown(req, 1);
	}
	/* The old name may be another inode's now. It may also still be there: a RENAME between two
	 * names of one inode changes nothing. */
	end_name_unknown(req, 0);
	inode_move_end(req->thread->fs);
	if (st->new_parent)
		inode_put(st->new_parent);
	op_finish(req, status);
}

static void rename_ask(struct request *req)
{
	struct remove_state *st = op_state(req, struct remove_state);
	struct op *op = op_of(req);

	st->move = inode_move_begin(req->thread->fs);
	inode_change_begin(op->inode);
	if (st->new_parent)
		inode_change_begin(st->new_parent);
	local_answer_change_begin(req, op->inode, req->args.name, LOOK_MOVES, &st->names[0]);
	local_answer_change_begin(req, st->new_parent ? st->new_parent : op->inode, req->args.name2,
		req->args.flags & RENAME_EXCHANGE ? LOOK_MOVES : LOOK_ENDS, &st->names[1]);
	/* The old name goes on to count as there: the answer does not tell whether it went. */
	inode_names_add(st->new_parent ? st->new_parent : op->inode, req->args.name2);
	op->call.req.op = RPC_RENAME;
	op->call.req.rename = (struct rpc_rename){
		.parent = op->inode->ino,
		.new_parent = req->args.node2,
		.flags = req->args.flags,
		.name = op_name(req->args.name),
		.new_name = op_name(req->args.name2),
		.uid = req->uid,
		.gid = req->gid,
		.expected = st->names[0].expected,
		.new_expected = st->names[1].expected,
	};
	op_rpc(req, rename_answered);
}

void op_rename(struct request *req)
{
	struct remove_state *st = op_state(req, struct remove_state);
	struct op *op = op_begin(req);

	if (req->args.node2 != req->node)
		st->new_parent = inode_of_node(req->thread->fs, req->args.node2);
	if (!move_here(req, st->new_parent ? st->new_parent : op->inode)) {
		rename_ask(req);
		return;
	}
	if (st->new_parent)
		inode_put(st->new_parent);
	op_finish(req, 0);
}
