/* READDIR and READDIRPLUS: one RPC brings what the kernel's buffer may hold. Each entry of a
 * READDIRPLUS counts as a lookup, so a listing with attributes needs nothing else. */

#include "daemon/kcache/kernel_pages.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/last_resort.h"
#include "daemon/ops/finish.h"
#include "daemon/file/op_inode.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/local_answer.h"

/* Those of the server's entries are greater. */
enum { COOKIE_DOT = 1, COOKIE_DOTDOT = 2 };

struct readdir_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint64_t epoch;
	struct names_list list;
	struct dir_packer packer;
};

static bool pack_plain(struct request *req, const struct rpc_dirent *d)
{
	struct readdir_state *st = op_state(req, struct readdir_state);

	return dir_pack(
		&st->packer, d->name.s, d->name.len, d->cookie, 0, &d->attr, (struct ttl){0});
}

/* The attributes known here are newer than those of the entry. */
static bool pack_inode(struct request *req, const struct rpc_dirent *d, struct inode *inode)
{
	struct readdir_state *st = op_state(req, struct readdir_state);

	st->op.seen.size = kernel_pages_size_of_entry(inode, st->op.seen.size);
	if (!dir_pack(&st->packer, d->name.s, d->name.len, d->cookie, inode_node(inode),
		    &st->op.seen, op_ttl(req)))
		return false;
	if (!req->replied) {
		inode_remember(inode);
		kernel_owner_tell(inode, &st->op.seen);
		local_answer_listed(
			req, st->op.inode, &st->list, d->name.s, d->name.len, inode->ino);
	}
	return true;
}

static bool pack_entry(struct request *req, const struct rpc_dirent *d)
{
	struct readdir_state *st = op_state(req, struct readdir_state);
	struct inode *inode;
	bool packed;

	/* A file that another client is writing has no attributes here (nlink 0) before somebody
	 * asks for them. */
	if (!req->args.plus || req->args.names_only || !d->attr.nlink)
		return pack_plain(req, d);
	inode = inode_get(req->thread->fs, d->ino);
	if (inode && inode_learn(inode, &d->attr, st->epoch, &st->op.seen))
		packed = pack_inode(req, d, inode);
	else
		packed = pack_plain(req, d);
	if (inode)
		inode_put(inode);
	return packed;
}

static bool pack_next(struct request *req, const struct rpc_dirent *d)
{
	struct readdir_state *st = op_state(req, struct readdir_state);

	if (!pack_entry(req, d))
		return false;
	inode_names_listed(st->op.inode, &st->list, d->name.s, d->name.len, d->cookie);
	return true;
}

static bool pack_dot(struct request *req, const char *name, uint64_t cookie, uint64_t ino)
{
	struct rpc_dirent d = {
		.cookie = cookie,
		.name = op_name(name),
		.attr = {.ino = ino, .mode = S_IFDIR},
	};

	return req->args.offset >= cookie || pack_plain(req, &d);
}

static void readdir_answered(struct request *req, const struct rpc_reply *rep)
{
	struct readdir_state *st = op_state(req, struct readdir_state);
	struct wire_in r = rpc_tail_reader(&rep->readdir.tail);
	struct rpc_dirent d;
	uint32_t used;

	/* The directory was empty when it was removed. */
	if (op_is_removed_directory(req, rep->status)) {
		op_end(req);
		reply_buffer(req, 0);
		return;
	}
	if (rep->status) {
		op_finish(req, rep->status);
		return;
	}
	access_time_mark(req);
	dir_packer_init(&st->packer, req);
	if (pack_dot(req, ".", COOKIE_DOT, st->op.inode->ino) &&
		pack_dot(req, "..", COOKIE_DOTDOT, rep->readdir.parent))
		while (rpc_get_dirent(&r, &d, rep->readdir.plus) && pack_next(req, &d))
			;
	if (!rep->readdir.tail.len)
		inode_names_list_end(st->op.inode, &st->list);
	used = st->packer.used;
	op_end(req);
	reply_buffer(req, used);
}

static void readdir_ask(struct request *req, int status)
{
	struct readdir_state *st = op_state(req, struct readdir_state);
	uint64_t cookie = req->args.offset <= COOKIE_DOTDOT ? 0 : req->args.offset;

	if (status) {
		op_finish(req, status);
		return;
	}
	st->epoch = inode_epoch(req->thread->fs);
	inode_names_list_begin(st->op.inode, &st->list, cookie);
	st->op.call.req.op = RPC_READDIR;
	st->op.call.req.readdir = (struct rpc_readdir){
		.ino = st->op.inode->ino,
		.cookie = cookie,
		.bytes = (uint32_t)min_u64(req->args.size, RPC_MSG_BYTES),
		.plus = req->args.plus,
	};
	op_rpc(req, readdir_answered);
}

void op_readdir(struct request *req)
{
	op_begin(req);
	op_take_buffer(req, readdir_ask);
}
