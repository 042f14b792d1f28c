/* GETXATTR, LISTXATTR, SETXATTR, REMOVEXATTR.
 *
 * If the inode's attributes say that a value is not there, no RPC is needed. So the kernel may ask
 * before each write whether there are capabilities, and before each access whether there is an
 * access control list.
 *
 * A value may be longer than a message. It is then read in parts. If it changes meanwhile it is
 * read again from the start, and the server then keeps it as it is for the parts that follow. A
 * value is also sent in parts. The server keeps them (STAGE) until the last part comes with
 * SETXATTR.
 *
 * Both lie in the request's data buffer, but not the value that a sharing mount sets, since that
 * may wait for other clients. If a value is given up, the server drops the parts that were sent. If
 * the server can't be told, the next value overwrites them (value_stages.h).
 */
#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>

#include "common/base/log.h"
#include "daemon/request/caller.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/ops/set_along.h"
#include "daemon/ops/set_here.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/ops/value_stages.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/commit.h"
#include "daemon/file/last_resort.h"
#include "daemon/lease/lease.h"

struct xattr_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	uint32_t at;          /* bytes of the value or list that have been moved */
	uint64_t sum;         /* of the value that they came from */
	unsigned ntries;      /* to read a value that changed meanwhile */
	uint32_t keep;        /* the server keeps the value under this number; 0: none */
	uint32_t stage;       /* of SETXATTR's parts; 0: none */
	struct rights rights; /* to set or remove it */
	bool by_kernel;       /* these are kernel_owner_rights() */
	int why;              /* the error for which the parts are dropped */
	uint64_t cookie;      /* of the last name that was put into the list */
};

enum {
	STAGE_BYTES = 16000, /* in one message */
	LAST_BYTES = STAGE_BYTES - NAME_BYTES_MAX,
	/* Attempts to read a value that changes, when all numbers are taken, or the server starts
	 * again and again. */
	TRIES_MAX = 100,
};

static_assert(STAGE_BYTES <= RPC_MSG_BYTES - 128, "a part and its fields are one message");

/* ---- names ----------------------------------------------------------------------------------- */

static const struct xattr_kind {
	const char *name;
	bool is_prefix;
	bool is_acl;
	uint32_t flag; /* of the attributes; without it there is no such value */
} kinds[] = {
	{"system.posix_acl_access", .is_acl = true, .flag = ATTR_ACL},
	{"system.posix_acl_default", .is_acl = true, .flag = ATTR_DEFAULT_ACL},
	{"security.capability", .flag = ATTR_CAPS},
	{"security.", .is_prefix = true, .flag = ATTR_XATTRS},
	{"trusted.", .is_prefix = true, .flag = ATTR_XATTRS},
	{"user.", .is_prefix = true, .flag = ATTR_XATTRS},
};

static bool is_of_kind(const char *name, const struct xattr_kind *kind)
{
	return kind->is_prefix ? strncmp(name, kind->name, strlen(kind->name)) == 0
			       : strcmp(name, kind->name) == 0;
}

/* -EOPNOTSUPP: nobody keeps such a name; -EINVAL: it is only a prefix. */
static int kind_of(const char *name, const struct xattr_kind **out)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!is_of_kind(name, &kinds[i]))
			continue;
		*out = &kinds[i];
		return kinds[i].is_prefix && !name[strlen(kinds[i].name)] ? -EINVAL : 0;
	}
	return -EOPNOTSUPP;
}

static bool may_have(struct inode *inode, uint32_t flag)
{
	struct attr attr;

	return !inode_attr(inode, &attr) || (attr.flags & flag) || inode->fs->sharing;
}

/* Only the inode's owner may change an access control list. The kernel has checked the caller by
 * the owner that it was told last; see setattr_settle_rights() in setattr.c. */
static void xattr_settle_rights(struct request *req, const struct xattr_kind *kind)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	struct inode *inode = st->op.inode;
	struct attr attr;

	if (!kind->is_acl || fs_kernel_knows_owners(inode->fs))
		return;
	inode_attr(inode, &attr);
	st->by_kernel = kernel_owner_rights(req, inode, &st->rights);
	if (!st->by_kernel)
		st->rights = caller_rights(req, 1ULL << CAP_FOWNER, attr.uid);
	if (kind->flag == ATTR_ACL)
		st->rights.groups = kernel_owner_groups(req, inode, attr.gid);
}

/* The owner has changed, but the caller may have rights all the same. True: the server is to be
 * asked again. */
static bool looks_at_caller(struct request *req, int status)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	struct id_range groups = st->rights.groups;
	struct attr attr;

	if (status != -EPERM || !st->by_kernel || req->replied)
		return false;
	inode_attr(st->op.inode, &attr);
	st->by_kernel = false;
	st->rights = caller_rights(req, 1ULL << CAP_FOWNER, attr.uid);
	st->rights.groups = groups;
	return true;
}

/* ---- GETXATTR -------------------------------------------------------------------------------- */

static int bad_answer(const struct request *req)
{
	static struct log_ratelimit limit;
	char text[PATH_INODE_BYTES];

	if (log_ratelimit_ok(&limit, 1000))
		log_error("%s: the server's extended attributes make no sense",
			path_name_inode(op_of((struct request *)req)->inode, text));
	return -EIO;
}

/* Parts of two values must not be joined. If the new value is shorter than what was read of the old
 * one, the server has no part to answer. */
static bool has_changed(const struct xattr_state *st, const struct rpc_reply *rep)
{
	if (!st->at)
		return false;
	return rep->status ? rep->status == -ERANGE : rep->getxattr.sum != st->sum;
}

/* Takes what the reply brings. True: that was all of it. */
static bool take_part(struct request *req, const struct rpc_getxattr_reply *rep, int *status)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	if (rep->total > XATTR_VALUE_MAX || st->at > rep->total ||
		rep->tail.len > rep->total - st->at || (!rep->tail.len && st->at < rep->total))
		*status = bad_answer(req);
	else if (rep->total > req->args.size)
		*status = -ERANGE;
	if (*status)
		return true;
	memcpy(req->buf->data + st->at, rep->tail.data, rep->tail.len);
	st->at += rep->tail.len;
	st->sum = rep->sum;
	return st->at == rep->total;
}

/* Takes the lowest free number, so that the server soon replaces a kept value that was given up. */
static uint32_t take_number(struct fs_thread *ft)
{
	unsigned bit = (unsigned)__builtin_ctz(~ft->keeping);

	if (bit >= GETXATTR_KEPT_MAX)
		return 0;
	ft->keeping |= UINT32_C(1) << bit;
	return bit + 1;
}

static void getxattr_finish(struct request *req, int status)
{
	const struct xattr_state *st = op_state(req, struct xattr_state);
	uint32_t len = st->at;

	if (st->keep)
		fs_thread_of(req->thread)->keeping &= ~(UINT32_C(1) << (st->keep - 1));
	op_end(req);
	if (status)
		reply_error(req, status);
	else
		reply_buffer(req, len);
}

static void getxattr_ask(struct request *req, int status);

static void read_anew(struct request *req)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	st->at = 0;
	if (!st->keep)
		st->keep = take_number(fs_thread_of(req->thread));
	getxattr_ask(req, ++st->ntries < TRIES_MAX && !req->replied ? 0 : -EBUSY);
}

static void getxattr_answered(struct request *req, const struct rpc_reply *rep)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	int status = rep->status;
	uint32_t len;

	if (!status && !req->args.size) {
		len = rep->getxattr.total;
		op_end(req);
		reply_length(req, len);
	} else if (has_changed(st, rep)) {
		read_anew(req);
	} else if (!status && !take_part(req, &rep->getxattr, &status) && !req->replied) {
		getxattr_ask(req, 0);
	} else {
		getxattr_finish(req, status);
	}
}

static void getxattr_ask(struct request *req, int status)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	if (status) {
		getxattr_finish(req, status);
		return;
	}
	st->op.call.req.op = RPC_GETXATTR;
	st->op.call.req.getxattr = (struct rpc_getxattr){
		.ino = st->op.inode->ino,
		.offset = st->at,
		.keep = st->keep,
		.name = op_name(req->args.name),
	};
	op_rpc(req, getxattr_answered);
}

void op_getxattr(struct request *req)
{
	struct op *op = op_begin(req);
	const struct xattr_kind *kind;
	int status = kind_of(req->args.name, &kind);

	if (!status && !may_have(op->inode, kind->flag))
		status = -ENODATA;
	if (status)
		op_finish(req, status);
	else if (req->args.size)
		op_take_buffer(req, getxattr_ask);
	else
		getxattr_ask(req, 0);
}

/* ---- LISTXATTR ------------------------------------------------------------------------------- */

/* The kernel hides the values of these from all but root, and leaves it to us to hide the names. A
 * caller that may be root sees them: a copy without them would be worse. */
static bool is_hidden(const struct request *req, const struct rpc_str *name)
{
	static const char trusted[] = "trusted.";

	return name->len >= sizeof(trusted) - 1 &&
	       memcmp(name->s, trusted, sizeof(trusted) - 1) == 0 &&
	       caller_root(req) == CALLER_IS_NOT_ROOT;
}

static int put_name(struct request *req, const struct rpc_str *name)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	uint32_t len = (uint32_t)name->len + 1;

	if (len > XATTR_VALUE_MAX - st->at)
		return -E2BIG;
	if (req->args.size) {
		if (len > req->args.size - st->at)
			return -ERANGE;
		memcpy(req->buf->data + st->at, name->s, name->len);
		req->buf->data[st->at + name->len] = '\0';
	}
	st->at += len;
	return 0;
}

static int put_names(struct request *req, const struct rpc_listxattr_reply *rep)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	struct wire_in r = rpc_tail_reader(&rep->tail);
	uint64_t before = st->cookie;
	struct rpc_xattr_entry e;
	int status = 0;

	while (!status && rpc_get_xattr_entry(&r, &e)) {
		if (e.cookie <= st->cookie)
			return bad_answer(req);
		st->cookie = e.cookie;
		if (!is_hidden(req, &e.name))
			status = put_name(req, &e.name);
	}
	if (!status && (r.truncated || (!rep->last && st->cookie == before)))
		status = bad_answer(req);
	return status;
}

static void list_reply(struct request *req, int status)
{
	uint32_t len = op_state(req, struct xattr_state)->at;

	op_end(req);
	if (status)
		reply_error(req, status);
	else if (req->args.size)
		reply_buffer(req, len);
	else
		reply_length(req, len);
}

static void list_ask(struct request *req, int status);

static void list_answered(struct request *req, const struct rpc_reply *rep)
{
	int status = rep->status;

	if (!status)
		status = put_names(req, &rep->listxattr);
	if (status || rep->listxattr.last || req->replied)
		list_reply(req, status);
	else
		list_ask(req, 0);
}

static void list_ask(struct request *req, int status)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	if (status) {
		op_finish(req, status);
		return;
	}
	st->op.call.req.op = RPC_LISTXATTR;
	st->op.call.req.listxattr = (struct rpc_listxattr){
		.ino = st->op.inode->ino,
		.cookie = st->cookie,
	};
	op_rpc(req, list_answered);
}

void op_listxattr(struct request *req)
{
	struct op *op = op_begin(req);

	if (!may_have(op->inode, ATTR_XATTRS))
		list_reply(req, 0);
	else if (req->args.size)
		op_take_buffer(req, list_ask);
	else
		list_ask(req, 0);
}

/* ---- SETXATTR -------------------------------------------------------------------------------- */

static void setxattr_finish(struct request *req, int status)
{
	uint32_t stage = op_state(req, struct xattr_state)->stage;

	if (stage)
		value_stages_give(req->thread->fs->stages, stage);
	op_finish(req, status);
}

static void setxattr_go(struct request *req);

/* The server has dropped the staged parts, so another try sends them again. */
static void setxattr_answered(struct request *req, const struct rpc_reply *rep)
{
	inode_change_end(op_of(req)->inode, rep->status ? NULL : &rep->attr.attr);
	if (looks_at_caller(req, rep->status)) {
		op_state(req, struct xattr_state)->at = 0;
		setxattr_go(req);
	} else {
		setxattr_finish(req, rep->status);
	}
}

static struct rpc_tail rest_of_value(const struct request *req, uint32_t at, uint32_t max)
{
	return (struct rpc_tail){
		.data = req->args.value + at,
		.len = (uint32_t)min_u64(req->args.size - at, max),
	};
}

static void setxattr_send(struct request *req)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	inode_change_begin(st->op.inode);
	st->op.call.req.op = RPC_SETXATTR;
	st->op.call.req.setxattr = (struct rpc_setxattr){
		.ino = st->op.inode->ino,
		.flags = req->args.flags,
		.stage = st->stage,
		.total = req->args.size,
		.rights = st->rights,
		.name = op_name(req->args.name),
		.tail = rest_of_value(req, st->at, LAST_BYTES),
	};
	op_rpc(req, setxattr_answered);
}

static void stage_dropped(struct request *req, const struct rpc_reply *rep)
{
	setxattr_finish(req, op_state(req, struct xattr_state)->why);
}

/* Has the server drop the parts of a value that nobody waits for, or that it has no room for. */
static void drop_stage(struct request *req, int status)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	st->why = status;
	st->op.call.req.stage = (struct rpc_stage){.stage = st->stage};
	op_rpc(req, stage_dropped);
}

static void staged(struct request *req, const struct rpc_reply *rep)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	bool given_up = rep->status == -ENOSPC || (!rep->status && req->replied);

	if (given_up) {
		drop_stage(req, rep->status);
	} else if (rep->status) {
		setxattr_finish(req, rep->status);
	} else {
		st->at += st->op.call.req.stage.tail.len;
		setxattr_go(req);
	}
}

static void setxattr_go(struct request *req)
{
	struct xattr_state *st = op_state(req, struct xattr_state);

	if (req->args.size - st->at <= LAST_BYTES) {
		setxattr_send(req);
		return;
	}
	st->op.call.req.op = RPC_STAGE;
	st->op.call.req.stage = (struct rpc_stage){
		.stage = st->stage,
		.offset = st->at,
		.tail = rest_of_value(req, st->at, STAGE_BYTES),
	};
	op_rpc(req, staged);
}

static void setxattr_begin(struct request *req, int status)
{
	if (status)
		setxattr_finish(req, status);
	else
		setxattr_go(req);
}

/* An access control list changes the mode, so the server has to know the mode first. */
void op_setxattr(struct request *req)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	const struct xattr_kind *kind;
	int status = kind_of(req->args.name, &kind);

	op_begin(req);
	if (!status && kind->flag == ATTR_ACL &&
		(set_along_list(req, st->op.inode) || set_here_list(req))) {
		op_finish(req, 0);
		return;
	}
	if (!status)
		xattr_settle_rights(req, kind);
	/* The payload leaves its buffer: the server may let this wait until other clients give back
	 * their leases. */
	if (!status && req->thread->fs->sharing && !request_stow(req))
		status = -ENOMEM;
	if (!status && req->args.size > LAST_BYTES) {
		st->stage = value_stages_take(req->thread->fs->stages);
		status = st->stage ? 0 : -ENOSPC;
	}
	if (status || commit_wait_set(req, st->op.inode, &status, setxattr_begin))
		setxattr_begin(req, status);
}

/* ---- REMOVEXATTR ----------------------------------------------------------------------------- */

static void removexattr_go(struct request *req, int status);

/* An access control list that is not there says no less than the mode, so taking it away succeeds.
 */
static void xattr_remove_answered(struct request *req, const struct rpc_reply *rep)
{
	const struct xattr_kind *kind = NULL;
	int status = rep->status;

	inode_change_end(op_of(req)->inode, status ? NULL : &rep->attr.attr);
	if (looks_at_caller(req, status)) {
		removexattr_go(req, 0);
		return;
	}
	if (status == -ENODATA && !kind_of(req->args.name, &kind) && kind->is_acl)
		status = 0;
	op_finish(req, status);
}

static void removexattr_go(struct request *req, int status)
{
	struct xattr_state *st = op_state(req, struct xattr_state);
	struct op *op = &st->op;

	if (status) {
		op_finish(req, status);
		return;
	}
	inode_change_begin(op->inode);
	op->call.req.op = RPC_REMOVEXATTR;
	op->call.req.removexattr = (struct rpc_removexattr){
		.ino = op->inode->ino,
		.rights = st->rights,
		.name = op_name(req->args.name),
	};
	op_rpc(req, xattr_remove_answered);
}

/* The answer has the mode, too, so the server has to know the mode first. */
void op_removexattr(struct request *req)
{
	struct op *op = op_begin(req);
	const struct xattr_kind *kind;
	int status = kind_of(req->args.name, &kind);

	if (!status)
		xattr_settle_rights(req, kind);
	if (status)
		op_finish(req, status);
	else if (!may_have(op->inode, kind->flag))
		op_finish(req, kind->is_acl ? 0 : -ENODATA);
	else if (commit_wait_set(req, op->inode, &status, removexattr_go))
		removexattr_go(req, 0);
}
