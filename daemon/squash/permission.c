/* permission.c - see permission.h.
 *
 *     rules_check -> [GETATTR or LOOKUP] -> [GETXATTR of the list] -> rules_check ... -> then
 */
#include "daemon/squash/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/xattr.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/op_inode.h"
#include "daemon/lease/lease.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/caller.h"
#include "daemon/squash/rules.h"

enum { TELL_MS = 60000 };

struct permission_state {
	union {
		struct op op;
		struct shared_op shared;
	};
	struct rules_fact facts[RULES_INODES];
	enum rules_inode asked;
	struct attr attr; /* of the inode whose list is asked for */
	void (*then)(struct request *req);
};

/* ---- who asks -------------------------------------------------------------------------------- */

/* A mount that squashes from its beginning has the ids of each request. Another one may lack them,
 * and not see its caller: then it might be root. */
static bool counts_as_root(const struct request *req)
{
	static struct log_ratelimit limit;
	enum caller_root root = caller_root(req);

	if (root == CALLER_MAY_BE_ROOT && log_ratelimit_ok(&limit, TELL_MS))
		log_warning("server %s: process %u can't be seen, and counts as root, which the "
			    "export squashes: mount again, then the kernel names users",
			session_server(req->thread->fs->session), req->pid);
	return root != CALLER_IS_NOT_ROOT;
}

/* The state of a request that begins anew after its session's end is gone, but not its new ids. */
static bool is_squashed(const struct request *req, const struct squash *squash)
{
	return req->squashed || squash->kind == SQUASH_ALL || counts_as_root(req);
}

static void replace_ids(struct request *req, const struct squash *squash)
{
	struct request_args *args = &req->args;

	req->squashed = is_squashed(req, squash);
	req->uid = req->squashed ? squash->anonuid : req->uid;
	req->gid = req->squashed ? squash->anongid : squash_gid(squash, req->gid);
	/* Where all are squashed, the server refuses other owners than the anonymous ones. */
	if (req->op == OP_SETATTR && squash->kind == SQUASH_ROOT) {
		args->set.uid = squash_uid(squash, args->set.uid);
		args->set.gid = squash_gid(squash, args->set.gid);
	}
}

/* ---- what the kernel left to a privileged caller --------------------------------------------- */

/* Writing takes set-user-id away, unless the caller is privileged. */
static bool takes_privileges(const struct request *req)
{
	const struct request_args *args = &req->args;

	switch (req->op) {
	case OP_WRITE:
		return !args->cached;
	case OP_OPEN:
		return args->flags & O_TRUNC;
	case OP_SETATTR:
		return args->set.valid & SET_SIZE;
	default:
		return false;
	}
}

/* Only a member of the inode's group sets set-group-id. A directory that the caller may list but
 * not search tells names alone: the kernel would walk to the inodes that come along. */
static void restrict_request(struct request *req, const struct rules_fact *node)
{
	struct request_args *args = &req->args;
	bool member = node->gid == req->gid;

	args->kill_priv |= takes_privileges(req);
	if (!node->known)
		return;
	if (req->op == OP_SETATTR && args->set.valid & SET_MODE && !member)
		args->set.mode &= ~(uint32_t)S_ISGID;
	if (req->op == OP_SETXATTR && !strcmp(args->name, XATTR_NAME_POSIX_ACL_ACCESS) && !member)
		args->flags |= SETXATTR_KILL_SGID;
	if (req->op == OP_READDIR && !access_set_has(node->allowed, ACCESS_EXECUTE))
		args->names_only = true;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void permission_goes_on(struct request *req, int status);

static void list_answered(struct request *req, const struct rpc_reply *rep)
{
	struct permission_state *st = op_state(req, struct permission_state);
	struct rules_fact *fact = &st->facts[st->asked];
	const struct rpc_getxattr_reply *list = &rep->getxattr;
	int status = rep->status;

	/* Another client may have taken the list away. The mode says no more than the list did. A
	 * list fits in one message. */
	if (!status && list->total != list->tail.len)
		status = -EIO;
	if (!status)
		status = access_set_of_list(&st->attr, list->tail.data, list->tail.len, req->uid,
			req->gid, &fact->allowed);
	fact->known = true;
	permission_goes_on(req, status == -ENODATA ? 0 : status);
}

/* True: the fact is known. False: an answer brings it. */
static bool take_attr(struct request *req, const struct attr *attr)
{
	struct permission_state *st = op_state(req, struct permission_state);
	struct rules_fact *fact = &st->facts[st->asked];

	*fact = (struct rules_fact){
		.uid = attr->uid,
		.gid = attr->gid,
		.mode = attr->mode,
		.allowed = access_set_of_mode(attr, req->uid, req->gid),
		.known = !access_set_is_by_list(attr, req->uid),
	};
	if (fact->known)
		return true;
	st->attr = *attr;
	st->op.call.req.op = RPC_GETXATTR;
	st->op.call.req.getxattr = (struct rpc_getxattr){
		.ino = attr->ino,
		.name = op_name(XATTR_NAME_POSIX_ACL_ACCESS),
	};
	op_rpc(req, list_answered);
	return false;
}

/* A directory that was removed, and is open, has no names: its READDIR says so. */
static bool is_removed(const struct request *req, int status)
{
	return status == -ESTALE && req->op == OP_READDIR;
}

static void took(struct request *req)
{
	permission_goes_on(req, 0);
}

static void take_missing(struct request *req)
{
	struct permission_state *st = op_state(req, struct permission_state);

	st->facts[st->asked] = (struct rules_fact){.known = true, .missing = true};
	took(req);
}

static void permission_attr_answered(struct request *req, const struct rpc_reply *rep)
{
	if (is_removed(req, rep->status))
		take_missing(req);
	else if (rep->status)
		permission_goes_on(req, rep->status);
	else if (take_attr(req, &rep->attr.attr))
		took(req);
}

/* Knowledge under a lease is true while the session lives. */
static bool is_known_here(struct request *req, struct inode *inode, struct attr *attr)
{
	bool known;

	if (!inode->fs->sharing)
		return inode_attr(inode, attr);
	pthread_mutex_lock(&inode->lock);
	known = lease_known_locked(inode) && inode->sure;
	if (known)
		inode_attr_locked(inode, attr);
	pthread_mutex_unlock(&inode->lock);
	return known && op_may_tell(req);
}

static bool find_inode(struct request *req, struct inode *inode)
{
	struct op *op = op_of(req);
	struct attr attr;

	if (is_known_here(req, inode, &attr))
		return take_attr(req, &attr);
	op->call.req.op = RPC_GETATTR;
	op->call.req.ino = (struct rpc_ino_request){.ino = inode->ino};
	op_rpc(req, permission_attr_answered);
	return false;
}

/* A change on its way to the server is known here alone. */
static void take_named(struct request *req, struct attr attr)
{
	struct inode *inode = inode_find(req->thread->fs, attr.ino);

	if (inode) {
		is_known_here(req, inode, &attr);
		inode_put(inode);
	}
	if (take_attr(req, &attr))
		took(req);
}

static void name_answered(struct request *req, const struct rpc_reply *rep)
{
	if (rep->status == -ENOENT)
		take_missing(req);
	else if (rep->status)
		permission_goes_on(req, rep->status);
	else if (!rep->entry.attr.ino)
		take_missing(req);
	else
		take_named(req, rep->entry.attr);
}

static bool find_name(struct request *req, uint64_t parent, const char *name)
{
	struct op *op = op_of(req);

	op->call.req.op = RPC_LOOKUP;
	op->call.req.name = (struct rpc_name_request){.parent = parent, .name = op_name(name)};
	op_rpc(req, name_answered);
	return false;
}

static bool find_fact(struct request *req, enum rules_inode asked)
{
	const struct request_args *args = &req->args;
	struct inode *inode;
	bool found;

	op_state(req, struct permission_state)->asked = asked;
	switch (asked) {
	case RULES_CHILD:
		return find_name(req, req->node, args->name);
	case RULES_CHILD2:
		return find_name(req, args->node2, args->name2);
	case RULES_NODE2:
		inode = inode_of_node(req->thread->fs, args->node2);
		found = find_inode(req, inode);
		inode_put(inode);
		return found;
	default:
		return find_inode(req, op_of(req)->inode);
	}
}

/* ---- the check ------------------------------------------------------------------------------- */

/* False: an answer is waited for. */
static bool check_all(struct request *req, int *status)
{
	struct permission_state *st = op_state(req, struct permission_state);
	bool write_back = req->thread->fs->features.writeback;
	enum rules_inode ask;

	do {
		*status = rules_check(req, st->facts, write_back, &ask);
		if (*status != RULES_ASK)
			return true;
	} while (find_fact(req, ask));
	return false;
}

/* The request's state is the operation's from here on. */
static void pass(struct request *req)
{
	struct permission_state *st = op_state(req, struct permission_state);

	restrict_request(req, &st->facts[RULES_NODE]);
	list_del(&st->op.interrupted);
	inode_put(steal_ptr(&st->op.inode));
	memset(st, 0, sizeof(*st));
}

/* The caller may have been told meanwhile that it is over. */
static void permission_goes_on(struct request *req, int status)
{
	void (*then)(struct request * req) = op_state(req, struct permission_state)->then;

	if (!status && req->replied)
		status = -EINTR;
	if (!status && !check_all(req, &status))
		return;
	if (status) {
		op_finish(req, status);
		return;
	}
	pass(req);
	then(req);
}

/* The kernel may have forgotten an inode that it looks a name up in. */
static struct inode *inode_of(const struct request *req)
{
	return req->op == OP_LOOKUP ? inode_get(req->thread->fs, req->node) : op_inode_of(req);
}

/* The value of SETXATTR lies in a data buffer, which nobody keeps while it waits for others. */
static bool gives_buffer(struct request *req)
{
	return req->op != OP_SETXATTR || !req->thread->fs->sharing || request_stow(req);
}

static bool permission_check(struct request *req, void (*then)(struct request *req))
{
	struct permission_state *st = op_state(req, struct permission_state);
	struct inode *inode = gives_buffer(req) ? inode_of(req) : NULL;
	int status;

	if (!inode) {
		reply_error(req, -ENOMEM);
		return false;
	}
	op_begin_with(req, inode);
	st->then = then;
	if (!check_all(req, &status))
		return false;
	if (status)
		op_finish(req, status);
	else
		pass(req);
	return !status;
}

bool permission_enter(struct request *req, void (*then)(struct request *req))
{
	static const struct rules_fact nothing[RULES_INODES];
	const struct fs *fs = req->thread->fs;
	struct squash squash = session_squash(fs->session);
	enum rules_inode ask;

	/* A remount is asked for by the machine's root. */
	if (squash.kind == SQUASH_NONE || req->op == OP_REMOUNT)
		return true;
	replace_ids(req, &squash);
	if (!req->squashed)
		return true;
	if (rules_check(req, nothing, fs->features.writeback, &ask))
		return permission_check(req, then);
	restrict_request(req, &nothing[RULES_NODE]);
	return true;
}
