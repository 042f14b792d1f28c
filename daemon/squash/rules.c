/* rules.c - see rules.h. */
#include "daemon/squash/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "daemon/file/inode_path.h"

/* execve(2) opens its file with this flag: include/linux/fs.h. */
enum { FLAG_EXEC = 0x20 };

struct check {
	const struct request *req;
	const struct rules_fact *facts;
	bool write_back;
	enum rules_inode ask;
};

static bool has_one_parent(const struct check *c)
{
	return c->req->node == c->req->args.node2;
}

/* NULL: it is to be asked for. */
static const struct rules_fact *fact_of(struct check *c, enum rules_inode inode)
{
	if (inode == RULES_NODE2 && has_one_parent(c))
		inode = RULES_NODE;
	if (c->facts[inode].known)
		return &c->facts[inode];
	c->ask = inode;
	return NULL;
}

static int needs(struct check *c, enum rules_inode inode, unsigned access)
{
	const struct rules_fact *fact = fact_of(c, inode);

	if (!fact)
		return RULES_ASK;
	return fact->missing || access_set_has(fact->allowed, access) ? 0 : -EACCES;
}

static int needs_owner(struct check *c, enum rules_inode inode)
{
	const struct rules_fact *fact = fact_of(c, inode);

	if (!fact)
		return RULES_ASK;
	return fact->missing || fact->uid == c->req->uid ? 0 : -EPERM;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int changes_directory(struct check *c, enum rules_inode directory)
{
	return needs(c, directory, ACCESS_WRITE | ACCESS_EXECUTE);
}

/* In a directory with the sticky bit names are their inode's owner's, and the directory's owner's.
 * A missing name is made. */
static int changes_name(struct check *c, enum rules_inode directory, enum rules_inode name)
{
	const struct rules_fact *fact;
	int r = changes_directory(c, directory);

	if (r)
		return r;
	fact = fact_of(c, directory);
	if (!(fact->mode & S_ISVTX) || !needs_owner(c, directory))
		return 0;
	return needs_owner(c, name);
}

/* Another parent changes the directory's "..". */
static int changes_parent(struct check *c, enum rules_inode name)
{
	const struct rules_fact *fact = fact_of(c, name);

	if (!fact)
		return RULES_ASK;
	return S_ISDIR(fact->mode) ? needs(c, name, ACCESS_WRITE) : 0;
}

static int renames(struct check *c)
{
	bool moves = !has_one_parent(c);
	int r = changes_name(c, RULES_NODE, RULES_CHILD);

	if (!r)
		r = changes_name(c, RULES_NODE2, RULES_CHILD2);
	if (!r && moves)
		r = changes_parent(c, RULES_CHILD);
	if (!r && moves && c->req->args.flags & RENAME_EXCHANGE)
		r = changes_parent(c, RULES_CHILD2);
	return r;
}

static int makes_node(struct check *c)
{
	const struct request_args *args = &c->req->args;
	int r = changes_directory(c, RULES_NODE);

	return !r && squash_forbids_node(args->mode, args->rdev) ? -EPERM : r;
}

/* "." and ".." are looked up by file handles (open_by_handle_at(2)), in inodes of any kind. That is
 * no walk. */
static int looks_up(struct check *c)
{
	return path_is_dots(c->req->args.name) ? 0 : needs(c, RULES_NODE, ACCESS_EXECUTE);
}

/* ---- open ------------------------------------------------------------------------------------ */

static unsigned access_of_open(uint32_t flags)
{
	/* 3: for ioctl(2) alone; the kernel asks for both. */
	static const unsigned modes[] = {
		ACCESS_READ, ACCESS_WRITE, ACCESS_READ | ACCESS_WRITE, ACCESS_READ | ACCESS_WRITE};
	unsigned access = flags & FLAG_EXEC ? ACCESS_EXECUTE : modes[flags & O_ACCMODE];

	return access | (flags & O_TRUNC ? ACCESS_WRITE : 0);
}

static int opens(struct check *c)
{
	int r = needs(c, RULES_NODE, access_of_open(c->req->args.flags));

	return !r && c->req->args.flags & O_NOATIME ? needs_owner(c, RULES_NODE) : r;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Only to what they are. Giving a file to a group that the caller is in is allowed. */
static int changes_owners(struct check *c)
{
	const struct request_args *args = &c->req->args;
	const struct rules_fact *fact = fact_of(c, RULES_NODE);
	int r = needs_owner(c, RULES_NODE);

	if (r)
		return r;
	if (args->set.valid & SET_UID && args->set.uid != fact->uid)
		return -EPERM;
	if (args->set.valid & SET_GID && args->set.gid != fact->gid && args->set.gid != c->req->gid)
		return -EPERM;
	return 0;
}

/* A kernel that owns the times tells them for its own sake, perhaps in a thread of its own. */
static bool is_kernels_own(const struct check *c, uint32_t valid)
{
	return c->write_back && !(valid & ~(uint32_t)(SET_MTIME | SET_CTIME));
}

/* utimensat(2) with the present time for both needs no owner. The kernel of a writeback cache says
 * that time itself, in the place of SET_MTIME_NOW. */
static bool is_touch(const struct check *c, uint32_t valid)
{
	return valid & SET_ATIME_NOW &&
	       (valid & SET_MTIME_NOW || (c->write_back && valid & SET_MTIME));
}

static int changes_times(struct check *c, uint32_t valid)
{
	int r;

	if (is_kernels_own(c, valid))
		return 0;
	r = needs_owner(c, RULES_NODE);
	return r == -EPERM && is_touch(c, valid) ? needs(c, RULES_NODE, ACCESS_WRITE) : r;
}

/* truncate(2) changes the mtime as well, which needs no more than it does. */
static int changes_attributes(struct check *c)
{
	uint32_t valid = c->req->args.set.valid;
	int r = 0;

	if (valid & SET_SIZE && !c->req->args.has_fh)
		r = needs(c, RULES_NODE, ACCESS_WRITE);
	if (!r && valid & SET_MODE)
		r = needs_owner(c, RULES_NODE);
	if (!r && valid & (SET_UID | SET_GID))
		r = changes_owners(c);
	if (!r && valid & (SET_ATIMES | SET_MTIMES) && !(valid & SET_SIZE))
		r = changes_times(c, valid);
	return r;
}

/* ---- extended attributes --------------------------------------------------------------------- */

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The kernel itself reads access control lists and capabilities in its callers' names. Names that
 * nobody keeps are refused by the operation. */
static int reads_xattr(struct check *c)
{
	const char *name = c->req->args.name;

	if (begins_with(name, "user."))
		return needs(c, RULES_NODE, ACCESS_READ);
	return begins_with(name, "trusted.") ? -ENODATA : 0;
}

static int changes_user_xattr(struct check *c)
{
	const struct rules_fact *fact = fact_of(c, RULES_NODE);

	if (fact && S_ISDIR(fact->mode) && fact->mode & S_ISVTX && needs_owner(c, RULES_NODE))
		return -EPERM;
	return needs(c, RULES_NODE, ACCESS_WRITE);
}

/* Before it changes a file's contents or owner the kernel removes capabilities in the caller's
 * name. */
static bool drops_capabilities(const struct check *c)
{
	return c->req->op == OP_REMOVEXATTR && strcmp(c->req->args.name, XATTR_NAME_CAPS) == 0;
}

static int changes_xattr(struct check *c)
{
	const char *name = c->req->args.name;

	if (drops_capabilities(c))
		return 0;
	if (begins_with(name, "user."))
		return changes_user_xattr(c);
	if (begins_with(name, "trusted.") || begins_with(name, "security."))
		return -EPERM;
	return needs_owner(c, RULES_NODE);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int check(struct check *c)
{
	switch (c->req->op) {
	case OP_LOOKUP:
		return looks_up(c);
	case OP_OPEN:
		return opens(c);
	case OP_OPENDIR:
	case OP_READDIR:
		return needs(c, RULES_NODE, ACCESS_READ);
	case OP_CREATE:
	case OP_TMPFILE:
	case OP_MKDIR:
	case OP_SYMLINK:
	case OP_LINK:
		return changes_directory(c, RULES_NODE);
	case OP_MKNOD:
		return makes_node(c);
	case OP_UNLINK:
	case OP_RMDIR:
		return changes_name(c, RULES_NODE, RULES_CHILD);
	case OP_RENAME:
		return renames(c);
	case OP_SETATTR:
		return changes_attributes(c);
	case OP_GETXATTR:
		return reads_xattr(c);
	case OP_SETXATTR:
	case OP_REMOVEXATTR:
		return changes_xattr(c);
	/* Questions that a walk to the inode is enough for. */
	case OP_GETATTR:
	case OP_STATX:
	case OP_READLINK:
	case OP_LISTXATTR:
	case OP_STATFS:
	/* By an open file or directory. */
	case OP_READ:
	case OP_WRITE:
	case OP_LSEEK:
	case OP_FALLOCATE:
	case OP_COPY:
	case OP_GETLK:
	case OP_SETLK:
	case OP_FLUSH:
	case OP_FSYNC:
	case OP_FSYNCDIR:
	case OP_RELEASE:
	case OP_RELEASEDIR:
	/* The kernel's own, and the machine's. */
	case OP_FORGET:
	case OP_REMOUNT:
	case OP_NOPS:
		break;
	}
	return 0;
}

int rules_check(const struct request *req, const struct rules_fact facts[RULES_INODES],
	bool write_back, enum rules_inode *ask)
{
	struct check c = {.req = req, .facts = facts, .write_back = write_back};
	int r = check(&c);

	*ask = c.ask;
	return r;
}
