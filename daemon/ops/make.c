/* New names: MKNOD, MKDIR, SYMLINK, LINK, CREATE; and TMPFILE, whose file has none yet. */
#include <errno.h>
#include <fcntl.h>

#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/open.h"
#include "daemon/ops/ops.h"
#include "daemon/file/inode_return.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/lease/local_answer.h"
#include "daemon/lease/keep.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/lease/lease.h"
#include "daemon/file/op_inode.h"
#include "daemon/ops/finish.h"
#include "daemon/ops/link_here.h"
#include "daemon/ops/make_here.h"
#include "daemon/file/unmade.h"
#include "daemon/lease/wait_aside.h"

struct make_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint64_t epoch, notes;
	struct inode *target; /* LINK */
	struct look_change name;
	bool created; /* CREATE */
};

/* The name is the answer's inode's, also when CREATE found one that was there already. */
static void make_end_name(struct request *req, const struct rpc_reply *rep)
{
	struct make_state *st = op_state(req, struct make_state);

	if (rep->status)
		local_answer_change_end_unknown(req, &st->name);
	else
		local_answer_change_end(req, st->op.inode, &st->name, rep->entry.attr.ino);
}

/* Takes the parent's new attributes, and returns the inode that was made or found. Nobody can have
 * changed a new one before. */
static struct inode *made_inode(struct request *req, const struct rpc_reply *rep)
{
	struct fs *fs = req->thread->fs;
	struct inode *inode;

	make_end_name(req, rep);
	inode_change_end(op_of(req)->inode,
		!rep->status && rep->entry.parent.ino ? &rep->entry.parent : NULL);
	if (rep->status)
		return NULL;
	inode = inode_get(fs, rep->entry.attr.ino);
	if (inode && req->op == OP_TMPFILE)
		inode_return_nameless(inode);
	if (inode && (req->op != OP_CREATE || rep->entry.created))
		inode_learn_new(inode, &rep->entry.attr, op_state(req, struct make_state)->epoch);
	if (inode)
		inode_see(inode, &rep->entry.attr, &op_of(req)->seen);
	return inode;
}

static void make_answered(struct request *req, const struct rpc_reply *rep)
{
	struct inode *inode = made_inode(req, rep);

	if (!inode) {
		op_finish(req, rep->status ? rep->status : -ENOMEM);
		return;
	}
	op_reply_entry(req, inode);
}

static void make_make(struct request *req, enum rpc_op rpc, const struct rpc_create *create,
	void (*answered)(struct request *req, const struct rpc_reply *rep))
{
	struct op *op = op_of(req);

	op_state(req, struct make_state)->epoch = inode_epoch(req->thread->fs);
	op_state(req, struct make_state)->notes = lease_notes(req->thread->fs);
	inode_change_begin(op->inode);
	op->call.req.op = rpc;
	op->call.req.create = *create;
	op->call.req.create.parent = op->inode->ino;
	op->call.req.create.umask = req->args.umask;
	op->call.req.create.uid = req->uid;
	op->call.req.create.gid = req->gid;
	if (req->args.name) {
		op->call.req.create.name = op_name(req->args.name);
		inode_names_add(op->inode, req->args.name);
		local_answer_change_begin(req, op->inode, req->args.name, LOOK_TAKES_NOTHING,
			&op_state(req, struct make_state)->name);
	} else {
		op_state(req, struct make_state)->name = (struct look_change){0};
	}
	op_rpc(req, answered);
}

static uint8_t ask_numbers(const struct request *req)
{
	struct fs *fs = req->thread->fs;

	return make_here_is_on(fs) ? unmade_ask_numbers(fs->unmade) : NUMBERS_NONE;
}

/* Of the answer to a request that has asked for some. */
static void take_numbers(struct request *req, uint8_t asked, const struct rpc_reply *rep)
{
	static const struct rpc_lent none;

	if (asked != NUMBERS_NONE)
		unmade_numbers_came(
			req->thread->fs->unmade, rep->status ? &none : &rep->entry.lent);
}

static void named_answered(struct request *req, const struct rpc_reply *rep)
{
	take_numbers(req, op_of(req)->call.req.create.numbers, rep);
	make_answered(req, rep);
}

void op_mknod(struct request *req)
{
	uint32_t mode = req->args.mode;

	if (!(mode & S_IFMT))
		mode |= S_IFREG;
	op_begin(req);
	make_make(req, RPC_MKNOD, &(struct rpc_create){.mode = mode, .rdev = req->args.rdev},
		make_answered);
}

void op_mkdir(struct request *req)
{
	uint32_t mode = (req->args.mode & ~(uint32_t)S_IFMT) | S_IFDIR;
	struct inode *made;

	op_begin(req);
	made = make_directory_here(req);
	if (made)
		op_reply_entry(req, made);
	else
		make_make(req, RPC_MKDIR,
			&(struct rpc_create){.mode = mode, .numbers = ask_numbers(req)},
			named_answered);
}

void op_symlink(struct request *req)
{
	struct inode *made;

	op_begin(req);
	made = make_symlink_here(req);
	if (made)
		op_reply_entry(req, made);
	else
		make_make(req, RPC_SYMLINK,
			&(struct rpc_create){.mode = S_IFLNK | 0777,
				.numbers = ask_numbers(req),
				.target = op_name(req->args.name2)},
			named_answered);
}

/* ---- LINK ------------------------------------------------------------------------------------ */

static void link_answered(struct request *req, const struct rpc_reply *rep)
{
	struct make_state *st = op_state(req, struct make_state);
	struct inode *target = st->target;

	take_numbers(req, st->op.call.req.link.numbers, rep);
	make_end_name(req, rep);
	inode_change_names_end(target, rep->status ? NULL : &rep->entry.attr);
	inode_return_link_end(target, !rep->status, req->thread);
	inode_change_end(
		st->op.inode, !rep->status && rep->entry.parent.ino ? &rep->entry.parent : NULL);
	if (!rep->status) {
		inode_see(target, &rep->entry.attr, &st->op.seen);
		op_reply_entry(req, target);
		return;
	}
	op_finish(req, rep->status);
	inode_put(target);
}

void op_link(struct request *req)
{
	struct make_state *st = op_state(req, struct make_state);
	struct op *op = op_begin(req);
	struct inode *target = inode_of_node(req->thread->fs, req->args.node2);

	if (link_here(req, target)) {
		op_reply_entry(req, target);
		return;
	}
	if (!inode_return_link_begin(target)) {
		op_finish(req, -ENOENT);
		inode_put(target);
		return;
	}
	st->target = target;
	inode_change_begin(op->inode);
	inode_change_begin(target);
	inode_names_add(op->inode, req->args.name);
	local_answer_change_begin(req, op->inode, req->args.name, LOOK_TAKES_NOTHING, &st->name);
	op->call.req.op = RPC_LINK;
	op->call.req.link = (struct rpc_link){
		.ino = target->ino,
		.parent = op->inode->ino,
		.name = op_name(req->args.name),
		.numbers = ask_numbers(req),
	};
	op_rpc(req, link_answered);
}

/* ---- CREATE, TMPFILE ------------------------------------------------------------------------- */

static void create_ask(struct request *req);

static void create_opened(struct request *req, int status)
{
	struct make_state *st = op_state(req, struct make_state);

	if (status)
		open_refuse(req, status);
	else
		open_inode(req, !st->created && (req->args.flags & O_TRUNC));
}

/* The kernel opens the file that CREATE answers without a check. So a squashed caller's CREATE
 * makes a file or nothing. If another client has made one, the kernel looks the name up again, and
 * opens it. */
static int create_refusal(const struct request *req, int status)
{
	bool sent_back =
		status == -EEXIST && req->squashed && !(req->args.flags & (uint32_t)O_EXCL);

	return sent_back ? -ESTALE : status;
}

static void create_answered(struct request *req, const struct rpc_reply *rep)
{
	struct make_state *st = op_state(req, struct make_state);
	struct inode *inode = made_inode(req, rep);

	take_numbers(req, st->op.call.req.create.numbers, rep);
	if (st->op.call.req.create.want_pages)
		grant_refill_along_done(
			req->thread, rep->entry.grant, rep->status ? 0 : rep->entry.ngrant);
	if (!inode) {
		op_finish(req, rep->status ? create_refusal(req, rep->status) : -ENOMEM);
		return;
	}
	if (!rep->entry.created &&
		!inode_learn_entry(inode, &rep->entry, st->epoch, &st->op.seen)) {
		if (inode->fs->sharing)
			lease_not_opened(inode, req->thread, &rep->entry);
		inode_put(inode);
		create_ask(req);
		return;
	}
	/* From here on the request is about the file. */
	inode_put(st->op.inode);
	st->op.inode = inode;
	st->created = rep->entry.created;
	if (!inode->fs->sharing ||
		lease_take_opened(req, inode, &rep->entry, st->epoch, st->notes, create_opened))
		create_opened(req, 0);
	else
		wait_aside(req);
}

static void create_ask(struct request *req)
{
	uint32_t mode = (req->args.mode & ~(uint32_t)S_IFMT) | S_IFREG;

	make_make(req, req->op == OP_TMPFILE ? RPC_TMPFILE : RPC_CREATE,
		&(struct rpc_create){.mode = mode,
			.want_pages = grant_refill_along(req->thread),
			.exclusive = req->squashed || req->args.flags & O_EXCL,
			.numbers = req->op == OP_CREATE ? ask_numbers(req) : NUMBERS_NONE},
		create_answered);
}

void op_create(struct request *req)
{
	struct op *op = op_begin(req);
	struct inode *made = make_here(req);

	if (!made) {
		create_ask(req);
		return;
	}
	inode_put(op->inode);
	op->inode = made;
	open_inode(req, false);
}

void op_tmpfile(struct request *req)
{
	op_begin(req);
	create_ask(req);
}
