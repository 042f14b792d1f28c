/* names.c - NAMES: changes of names, and of attributes, that a client has made by itself, in their
 * order. */
#include "server/namespace/names.h"

#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "server/meta/lent_numbers.h"
#include "server/namespace/squash_request.h"

/* As for RETURN: more inodes than this are left to the reaper. */
enum { REAPED_AT_ONCE = 16 };

/* The store pages that one of many changes may touch: the name and the inode; of a removal the
 * inode's pages' records. Of a new name: the directory's record, and a symbolic link's target; each
 * may split pages. Of an inode that gets another owner: its record, and the counts of both owners.
 */
enum {
	ROOM_PAGES_PER_REMOVAL = 2 + ROOM_PAGES_PER_REAPED,
	ROOM_PAGES_PER_MKDIR = 10,
	ROOM_PAGES_PER_MOVE = ROOM_PAGES_PER_REMOVAL + ROOM_PAGES_PER_MKDIR,
	ROOM_PAGES_PER_SET = 10,
	ROOM_PAGES_PER_SYMLINK = 14,
	ROOM_PAGES_PER_LINK = 10,
};

struct change {
	struct rpc_name_change told;
	struct stored_inode dir, child; /* NAME_SET: child; NAME_LINK: what gets another name */
	struct dirent_slot slot;
	struct heritage heritage; /* NAME_MKDIR, NAME_SYMLINK */
	/* NAME_MOVE. new_dir: `dir` or other_dir. */
	struct stored_inode *new_dir, other_dir, replaced;
	struct dirent_slot new_slot;
	struct rpc_setattr set; /* NAME_SET */
};

static uint64_t room_of(const struct rpc_name_change *told)
{
	static const uint64_t room[] = {
		[NAME_REMOVE] = ROOM_PAGES_PER_REMOVAL,
		[NAME_MKDIR] = ROOM_PAGES_PER_MKDIR,
		[NAME_MOVE] = ROOM_PAGES_PER_MOVE,
		[NAME_SET] = ROOM_PAGES_PER_SET,
		[NAME_SYMLINK] = ROOM_PAGES_PER_SYMLINK,
		[NAME_LINK] = ROOM_PAGES_PER_LINK,
	};

	return room[told->kind];
}

/* *room: store pages for all of them. */
static size_t count_changes(const struct rpc_tail *tail, uint64_t *room)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct rpc_name_change told;
	size_t n = 0;

	*room = ROOM_PAGES;
	while (rpc_get_name_change(&r, &told)) {
		*room += room_of(&told);
		n++;
	}
	return n;
}

/* Those that there is room for: all, or one of several. The room for what is behind them is
 * counted with theirs: once they have all taken effect, that can't be refused any more. */
static int count_possible(struct names_run *run, const struct rpc_tail *tail, size_t *n)
{
	uint64_t room;
	int err;

	*n = count_changes(tail, &room);
	err = ns_room(run->c, room + run->behind, false);
	if (err != -ENOSPC || (*n == 1 && run->behind))
		return err;
	*n = 1;
	return ns_room(run->c, ROOM_PAGES + ROOM_PAGES_PER_MOVE, false);
}

/* The directory's times are those that the client has told its programs. */
static int save_dir(struct ns_call *c, const struct change *k, struct stored_inode *dir)
{
	struct attr *attr = &dir->attr;

	attr->mtime = change_time_told(k->told.time, attr->mtime, c->ctx->now);
	attr->ctime = change_time_told(k->told.time, attr->ctime, c->ctx->now);
	return inode_save(c->v, dir);
}

/* ---- NAME_REMOVE ----------------------------------------------------------------------------- */

static int check_empty(struct ns_call *c, const struct stored_inode *child)
{
	bool empty;
	int err = dirent_empty(c->v, child->key, &empty);

	return err || empty ? err : -ENOTEMPTY;
}

/* Changes nothing. */
static int names_find_removed(struct ns_call *c, struct change *k)
{
	int err = ns_find(c, k->told.parent, &k->told.name, &k->dir, &k->slot);

	if (err == -ENOSPC || (!err && !k->slot.ino))
		return -ENOENT;
	if (!err && k->slot.ino != k->told.ino)
		return -ESTALE;
	if (!err)
		err = ns_load_entry(c, &k->slot, &k->child);
	return !err && inode_is_dir(&k->child) ? check_empty(c, &k->child) : err;
}

/* No RETURN will come for it. */
static int end_inode(struct ns_call *c, uint64_t ino, bool at_once)
{
	int err = ns_orphan_return(c, ino, at_once);

	return err == -ENOENT ? ns_return_pin(c, ino, at_once) : err;
}

/* Its name is gone. */
static int drop(struct ns_call *c, const struct change *k, struct stored_inode *i, bool at_once)
{
	uint64_t number;
	int err = ns_drop_link(c, i, &number);

	return err || i->attr.nlink || k->told.keep ? err : end_inode(c, i->attr.ino, at_once);
}

static int names_remove(struct ns_call *c, struct change *k, bool at_once)
{
	int err = dirent_del(c->v, &k->slot);

	if (err)
		return err;
	k->dir.attr.nlink -= inode_is_dir(&k->child);
	err = save_dir(c, k, &k->dir);
	return err ? err : drop(c, k, &k->child, at_once);
}

/* ---- NAME_MKDIR, NAME_SYMLINK ---------------------------------------------------------------- */

static uint32_t mode_told(const struct rpc_name_change *told)
{
	return told->kind == NAME_MKDIR ? S_IFDIR | told->mode : S_IFLNK | 0777;
}

static bool lacks_links(const struct change *k)
{
	return k->told.kind == NAME_MKDIR && k->dir.attr.nlink >= NLINK_MAX;
}

/* Changes nothing. The client makes none by itself where there is a default ACL. */
static int names_find_made(struct names_run *run, struct change *k)
{
	struct ns_call *c = run->c;
	uint64_t room = 0;
	int err = ns_find(c, k->told.parent, &k->told.name, &k->dir, &k->slot);

	if (!err && k->slot.ino)
		err = -EEXIST;
	if (!err && !lent_numbers_has(run->lender, k->told.ino))
		err = -EINVAL;
	if (!err && lacks_links(k))
		err = -EMLINK;
	if (!err)
		err = ns_inherit(
			c, &k->dir, mode_told(&k->told), k->told.umask, &k->heritage, &room);
	return !err && room && !ns_more_room(c, room) ? -ENOSPC : err;
}

static void init_named(struct ns_call *c, struct change *k)
{
	const struct rpc_name_change *told = &k->told;
	const struct attr *dir = &k->dir.attr;
	uint32_t mode = k->heritage.mode | (told->kind == NAME_MKDIR ? dir->mode & S_ISGID : 0);

	inode_init_lent(c->v, &k->child, told->ino, mode, told->uid,
		group_of_new_inode(dir->mode, dir->gid, told->gid), told->time);
	k->child.parent = dir->ino;
	if (told->kind == NAME_SYMLINK)
		k->child.attr.size = told->target.len;
}

static int put_target(struct ns_call *c, const struct change *k)
{
	const struct rpc_str *target = &k->told.target;

	return store_put(
		c->m->store, STORE_SYMLINK, STORE_KEY(k->child.key), target->s, target->len);
}

static int add_named(struct ns_call *c, struct change *k)
{
	int err = ns_heritage_put(c, &k->heritage, &k->child);

	if (!err)
		err = inode_add(c->v, &k->child);
	return !err && k->told.kind == NAME_SYMLINK ? put_target(c, k) : err;
}

static int names_make(struct names_run *run, struct change *k)
{
	const struct rpc_name_change *told = &k->told;
	struct ns_call *c = run->c;
	int err;

	init_named(c, k);
	err = add_named(c, k);
	lent_numbers_take(run->lender, told->ino);
	run->took_number = true;
	if (!err)
		err = dirent_put(
			c->v, &k->slot, &told->name, told->ino, dirent_type(k->child.attr.mode));
	k->dir.attr.nlink += told->kind == NAME_MKDIR;
	return err ? err : save_dir(c, k, &k->dir);
}

/* ---- NAME_LINK ------------------------------------------------------------------------------- */

static int check_linked(const struct names_run *run, const struct change *k)
{
	const struct stored_inode *i = &k->child;

	if (inode_is_dir(i))
		return -EPERM;
	if (!i->attr.nlink)
		return -ENOENT;
	if (i->attr.nlink >= NLINK_MAX)
		return -EMLINK;
	return lent_numbers_has(run->lender, k->told.lent) ? 0 : -EINVAL;
}

/* Changes nothing. */
static int names_find_linked(const struct names_run *run, struct change *k)
{
	struct ns_call *c = run->c;
	int err = ns_find(c, k->told.parent, &k->told.name, &k->dir, &k->slot);

	if (!err && k->slot.ino)
		err = -EEXIST;
	if (!err)
		err = inode_load(c->v, k->told.ino, &k->child);
	return err ? err : check_linked(run, k);
}

static int names_link(struct names_run *run, struct change *k)
{
	const struct rpc_name_change *told = &k->told;
	struct attr *attr = &k->child.attr;
	struct ns_call *c = run->c;
	int err;

	attr->nlink++;
	attr->ctime = change_time_told(told->time, attr->ctime, c->ctx->now);
	err = inode_save(c->v, &k->child);
	lent_numbers_take(run->lender, told->lent);
	run->took_number = true;
	if (!err)
		err = dirent_put(c->v, &k->slot, &told->name, told->ino, dirent_type(attr->mode));
	return err ? err : save_dir(c, k, &k->dir);
}

/* ---- NAME_MOVE ------------------------------------------------------------------------------- */

/* Finds a name, and its inode, which has to be that one. */
static int find_told(
	struct ns_call *c, const struct dirent_slot *slot, uint64_t ino, struct stored_inode *i)
{
	return slot->ino == ino ? ns_load_entry(c, slot, i) : -ESTALE;
}

/* A directory keeps its parent, and replaces none: so it can't come below itself. */
static bool may_move(const struct change *k)
{
	const struct rpc_name_change *told = &k->told;

	return !inode_is_dir(&k->child) || (told->new_parent == told->parent && !told->replaced);
}

static int find_new_place(struct ns_call *c, struct change *k)
{
	const struct rpc_name_change *told = &k->told;
	int err = ns_find(c, told->new_parent, &told->new_name, &k->other_dir, &k->new_slot);

	k->new_dir = told->new_parent == told->parent ? &k->dir : &k->other_dir;
	if (err || !told->replaced)
		return !err && k->new_slot.ino ? -EEXIST : err;
	if (told->replaced == told->ino)
		return -EINVAL;
	err = find_told(c, &k->new_slot, told->replaced, &k->replaced);
	return !err && inode_is_dir(&k->replaced) ? -EISDIR : err;
}

/* Changes nothing. */
static int names_find_moved(struct ns_call *c, struct change *k)
{
	int err = ns_find(c, k->told.parent, &k->told.name, &k->dir, &k->slot);

	if (err == -ENOSPC || (!err && !k->slot.ino))
		return -ENOENT;
	if (!err)
		err = find_told(c, &k->slot, k->told.ino, &k->child);
	if (!err && !may_move(k))
		err = -EISDIR;
	return err ? err : find_new_place(c, k);
}

static int put_moved(struct ns_call *c, struct change *k)
{
	struct attr *attr = &k->child.attr;
	int err = dirent_put(
		c->v, &k->new_slot, &k->told.new_name, attr->ino, dirent_type(attr->mode));

	attr->ctime = change_time_told(k->told.time, attr->ctime, c->ctx->now);
	return err ? err : inode_save(c->v, &k->child);
}

static int names_move(struct ns_call *c, struct change *k, bool at_once)
{
	int err = dirent_del(c->v, &k->slot);

	if (!err)
		err = put_moved(c, k);
	if (!err)
		err = save_dir(c, k, &k->dir);
	if (!err && k->new_dir != &k->dir)
		err = save_dir(c, k, k->new_dir);
	return err || !k->told.replaced ? err : drop(c, k, &k->replaced, at_once);
}

/* ---- NAME_SET -------------------------------------------------------------------------------- */

static struct rpc_setattr set_told(const struct ns_call *c, const struct change *k)
{
	const struct rpc_name_change *told = &k->told;

	return (struct rpc_setattr){
		.valid = told->valid | SET_CTIME,
		.mode = told->mode,
		.uid = told->uid,
		.gid = told->gid,
		.atime = told->atime,
		.mtime = told->mtime,
		.ctime = change_time_told(told->time, k->child.attr.ctime, c->ctx->now),
	};
}

/* Leaves out what SETATTR would refuse a session whose users are squashed by now. */
static void squash_set(const struct ns_call *c, const struct attr *before, struct rpc_setattr *set)
{
	struct rights rights = squash_request_rights(&c->ctx->squash);

	if (!rights_of_owner(&rights, before->uid))
		set->valid &= ~(uint32_t)NAME_SET_ALL;
	if (!rights_of_group(&rights, rpc_setattr_group(set, before->gid)))
		set->mode &= ~(uint32_t)S_ISGID;
}

/* A symbolic link's mode means nothing, and stays. */
static bool may_set(const struct change *k)
{
	uint32_t mode = k->child.attr.mode;

	return S_ISDIR(mode) || (S_ISLNK(mode) && !(k->told.valid & SET_MODE));
}

/* Changes nothing. The client sets no mode by itself where there is an access list. */
static int names_find_set(struct ns_call *c, struct change *k)
{
	uint64_t room = 0;
	int err = inode_load(c->v, k->told.ino, &k->child);

	if (!err && !may_set(k))
		err = -EINVAL;
	if (err)
		return err;
	k->set = set_told(c, k);
	squash_set(c, &k->child.attr, &k->set);
	err = ns_setattr_xattrs_room(c, &k->child, k->set.valid, &room);
	return !err && room && !ns_more_room(c, room) ? -ENOSPC : err;
}

static int names_set(struct ns_call *c, struct change *k)
{
	int err = ns_set_attr(c, &k->child, &k->set);

	return err ? err : inode_save(c->v, &k->child);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int names_find_one(struct names_run *run, struct change *k)
{
	squash_request_name_change(&run->c->ctx->squash, &k->told);
	switch (k->told.kind) {
	case NAME_MKDIR:
	case NAME_SYMLINK:
		return names_find_made(run, k);
	case NAME_MOVE:
		return names_find_moved(run->c, k);
	case NAME_LINK:
		return names_find_linked(run, k);
	case NAME_SET:
		return names_find_set(run->c, k);
	default:
		return names_find_removed(run->c, k);
	}
}

static int names_change_one(struct names_run *run, struct change *k, bool at_once)
{
	switch (k->told.kind) {
	case NAME_MKDIR:
	case NAME_SYMLINK:
		return names_make(run, k);
	case NAME_MOVE:
		return names_move(run->c, k, at_once);
	case NAME_LINK:
		return names_link(run, k);
	case NAME_SET:
		return names_set(run->c, k);
	default:
		return names_remove(run->c, k, at_once);
	}
}

int names_run(struct names_run *run, const struct rpc_tail *tail, struct rpc_names_reply *rep)
{
	struct wire_in r = rpc_tail_reader(tail);
	struct change k;
	size_t n = 0;
	int err = tail->len ? count_possible(run, tail, &n) : 0;
	bool at_once = n <= REAPED_AT_ONCE;

	while (!err && rep->done < n && rpc_get_name_change(&r, &k.told)) {
		int refusal = names_find_one(run, &k);

		if (refusal) {
			rep->refused = (uint32_t)-refusal;
			return 0;
		}
		err = names_change_one(run, &k, at_once);
		rep->done++;
	}
	run->all = !err && !wire_in_left(&r);
	return err;
}

int ns_names(struct ns_call *c)
{
	struct rpc_names_reply *rep = &c->rep->names;
	uint8_t numbers = c->req->names.numbers;
	struct session_record lender;
	struct names_run run = {.c = c, .lender = &lender};
	int err = c->ctx->shared ? -EINVAL : lent_numbers_load(c->m, c->ctx->session, &lender);
	bool lent;

	if (!err)
		err = names_run(&run, &c->req->names.tail, rep);
	if (err)
		return err;
	lent = ns_may_lend(c, numbers) &&
	       lent_numbers_lend(&lender, numbers == NUMBERS_ANEW, c->v, &rep->lent);
	return lent || run.took_number ? session_codec_put(c->m, &lender) : 0;
}
