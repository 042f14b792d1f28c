#include "server/namespace/squash_request.h"

#include <errno.h>
#include <linux/xattr.h>
#include <string.h>

#include "server/record/xattr.h"

/* A request, and the place for the reason why it is refused. */
struct squash_call {
	const struct squash *squash;
	struct rpc_request *req;
	struct rpc_str *why;
};

#define TEXT(literal) ((struct rpc_str){literal, sizeof(literal) - 1})

static const char no_set_id[] =
	"the server squashes this client's users: no set-user-id and set-group-id bits";
const struct rpc_str squash_request_no_set_id = {no_set_id, sizeof(no_set_id) - 1};

static int refuse(const struct squash_call *c, struct rpc_str why)
{
	*c->why = why;
	return -EPERM;
}

/* ---- rights ---------------------------------------------------------------------------------- */

struct rights squash_request_rights(const struct squash *squash)
{
	switch (squash->kind) {
	case SQUASH_NONE:
		return (struct rights){.bound = false};
	case SQUASH_ROOT:
		return (struct rights){true, {1, UINT32_MAX}, {1, UINT32_MAX}};
	default:
		return (struct rights){true, {squash->anonuid, squash->anonuid},
			{squash->anongid, squash->anongid}};
	}
}

static void narrow(struct id_range *range, const struct id_range *most)
{
	if (range->first < most->first)
		range->first = most->first;
	if (range->last > most->last)
		range->last = most->last;
}

static void bind_rights(const struct squash_call *c, struct rights *rights)
{
	struct rights most = squash_request_rights(c->squash);

	if (!rights->bound)
		*rights = most;
	narrow(&rights->owners, &most.owners);
	narrow(&rights->groups, &most.groups);
}

/* ---- inodes that are made -------------------------------------------------------------------- */

static void squash_owner(const struct squash_call *c, uint32_t *uid, uint32_t *gid)
{
	*uid = squash_uid(c->squash, *uid);
	*gid = squash_gid(c->squash, *gid);
}

static int squash_make(const struct squash_call *c)
{
	squash_owner(c, &c->req->create.uid, &c->req->create.gid);
	return 0;
}

static int squash_make_file(const struct squash_call *c)
{
	if (c->req->create.mode & (S_ISUID | S_ISGID))
		return refuse(c, squash_request_no_set_id);
	return squash_make(c);
}

static int squash_mknod(const struct squash_call *c)
{
	if (squash_forbids_node(c->req->create.mode, c->req->create.rdev))
		return refuse(c, TEXT("the server squashes this client's users: no devices"));
	return squash_make_file(c);
}

static int squash_rename(const struct squash_call *c)
{
	squash_owner(c, &c->req->rename.uid, &c->req->rename.gid);
	return 0;
}

/* ---- changes of inodes ----------------------------------------------------------------------- */

/* A kernel with a writeback cache tells the ctime, too, and then the mtime may be that of a write,
 * or now: nobody needs to own the file for it. COMMIT tells the same for anybody who writes. */
static bool is_for_owner(uint32_t valid)
{
	uint32_t written = valid & SET_CTIME ? SET_MTIME : 0;

	return valid & (SET_MODE | SET_OWNERS | SET_ATIME | SET_MTIME) & ~written;
}

static bool gives_away(const struct squash *squash, const struct rpc_setattr *set)
{
	return (set->valid & SET_UID && set->uid != squash->anonuid) ||
	       (set->valid & SET_GID && set->gid != squash->anongid);
}

static int squash_setattr(const struct squash_call *c)
{
	struct rpc_setattr *set = &c->req->setattr;

	if (c->squash->kind == SQUASH_ALL && gives_away(c->squash, set))
		return refuse(
			c, TEXT("the server squashes all users of this client: no other owners"));
	squash_owner(c, &set->uid, &set->gid);
	if (is_for_owner(set->valid))
		bind_rights(c, &set->rights);
	return 0;
}

bool squash_request_mode(const struct squash *squash, uint32_t before, struct rpc_setattr *set)
{
	uint32_t kept = set->valid & SET_OWNERS ? 0 : before;
	uint32_t mode = set->valid & SET_MODE ? set->mode : before;
	uint32_t added = mode & (S_ISUID | S_ISGID) & ~kept;

	if (squash->kind == SQUASH_NONE || S_ISDIR(before) || !added)
		return true;
	set->valid |= SET_MODE;
	set->mode = mode & ~added;
	return false;
}

static void squash_written(const struct squash *squash, struct rpc_commit *commit)
{
	if (squash->kind == SQUASH_ALL)
		commit->flags &= ~(uint32_t)SET_OWNERS;
	commit->uid = squash_uid(squash, commit->uid);
	commit->gid = squash_gid(squash, commit->gid);
}

static int squash_commit(const struct squash_call *c)
{
	squash_written(c->squash, &c->req->commit);
	return 0;
}

void squash_request_making(const struct squash *squash, struct rpc_making *making)
{
	struct rpc_make *make = &making->make;

	if (squash->kind == SQUASH_NONE)
		return;
	make->uid = squash_uid(squash, make->uid);
	make->gid = squash_gid(squash, make->gid);
	make->mode &= ~(uint32_t)(S_ISUID | S_ISGID);
	squash_written(squash, &making->commit);
}

void squash_request_name_change(const struct squash *squash, struct rpc_name_change *change)
{
	if (squash->kind == SQUASH_NONE)
		return;
	if (squash->kind == SQUASH_ALL)
		change->valid &= ~(uint32_t)SET_OWNERS;
	change->uid = squash_uid(squash, change->uid);
	change->gid = squash_gid(squash, change->gid);
}

/* ---- extended attributes --------------------------------------------------------------------- */

static bool begins_with(const struct rpc_str *name, const struct rpc_str *prefix)
{
	return name->len >= prefix->len && memcmp(name->s, prefix->s, prefix->len) == 0;
}

/* Only a process with capabilities may change these, and no squashed user has any. */
static bool is_privileged(const struct rpc_str *name)
{
	return begins_with(name, &TEXT(XATTR_TRUSTED_PREFIX)) ||
	       begins_with(name, &TEXT(XATTR_SECURITY_PREFIX));
}

static int squash_xattr(
	const struct squash_call *c, const struct rpc_str *name, struct rights *rights)
{
	if (is_privileged(name))
		return refuse(c, TEXT("the server squashes this client's users: no trusted.* and "
				      "security.* attributes"));
	if (xattr_flag(name) & (ATTR_ACL | ATTR_DEFAULT_ACL))
		bind_rights(c, rights);
	return 0;
}

static int squash_setxattr(const struct squash_call *c)
{
	struct rpc_setxattr *set = &c->req->setxattr;

	return squash_xattr(c, &set->name, &set->rights);
}

/* The kernel removes capabilities for all that change a file, also for those that don't own it. */
static int squash_removexattr(const struct squash_call *c)
{
	struct rpc_removexattr *remove = &c->req->removexattr;

	if (xattr_flag(&remove->name) == ATTR_CAPS)
		return 0;
	return squash_xattr(c, &remove->name, &remove->rights);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int (*const rules[RPC_OP_MAX])(const struct squash_call *c) = {
	[RPC_SETATTR] = squash_setattr,
	[RPC_CREATE] = squash_make_file,
	[RPC_TMPFILE] = squash_make_file,
	[RPC_MKNOD] = squash_mknod,
	[RPC_MKDIR] = squash_make,
	[RPC_SYMLINK] = squash_make,
	[RPC_RENAME] = squash_rename,
	[RPC_COMMIT] = squash_commit,
	[RPC_SETXATTR] = squash_setxattr,
	[RPC_REMOVEXATTR] = squash_removexattr,
};

int squash_request(const struct squash *squash, struct rpc_request *req, struct rpc_str *why)
{
	const struct squash_call call = {squash, req, why};

	if (squash->kind == SQUASH_NONE || req->op >= RPC_OP_MAX || !rules[req->op])
		return 0;
	return rules[req->op](&call);
}
