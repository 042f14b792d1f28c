/* make.c - MAKE: files that a client has made by itself. */
#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "server/meta/lent_numbers.h"
#include "server/namespace/names.h"
#include "server/namespace/ns.h"
#include "server/namespace/overlap.h"
#include "server/namespace/squash_request.h"
#include "server/namespace/written.h"

enum {
	/* The session's record, and once for all files the paths that they share. */
	ROOM_PAGES_MAKE = ROOM_PAGES + 16,
	/* The name, the inode, the directory's record; each may split pages. */
	ROOM_PAGES_PER_MAKE = 10,
};

/* ---- MAKE ------------------------------------------------------------------------------------ */

/* A request. Its files often have one directory, whose record is written once then. */
struct maker {
	struct ns_call *c;
	struct session_record lender;
	struct stored_inode dir;
	bool has_dir, dir_changed, took_number;
	bool all_named; /* the names before the files have all been changed */
	bool has_room;  /* ns_room() has allowed the part that all files share */
	/* Store pages that were allowed together with the names before the files, for one file. */
	uint64_t allowed;
};

/* A file that is to be made. */
struct making {
	struct rpc_making told;
	struct stored_inode inode;
	struct dirent_slot slot;
	struct heritage heritage;
	struct rpc_setattr set;
	struct extent e[OVERLAP_EXTENTS_MAX];
	unsigned n;
};

static int save_dir(struct maker *m)
{
	bool changed = m->dir_changed;

	m->dir_changed = false;
	return changed ? inode_save(m->c->v, &m->dir) : 0;
}

static int load_dir(struct maker *m, uint64_t parent)
{
	int err;

	if (m->has_dir && m->dir.attr.ino == parent)
		return 0;
	err = save_dir(m);
	m->has_dir = false;
	if (!err)
		err = inode_load_dir(m->c->v, parent, &m->dir);
	m->has_dir = !err;
	return err;
}

static int find_place(struct maker *m, struct making *k)
{
	struct ns_call *c = m->c;
	const struct rpc_str *name = &k->told.make.name;
	int err = ns_check_name(name);

	if (!err)
		err = load_dir(m, k->told.make.parent);
	if (!err)
		err = dirent_find(c->v, &c->m->hash, m->dir.key, name, &k->slot);
	if (!err && k->slot.ino)
		return -EEXIST;
	return !err && !lent_numbers_has(&m->lender, k->told.commit.ino) ? -EINVAL : err;
}

static void init_made(struct maker *m, struct making *k)
{
	const struct rpc_make *make = &k->told.make;
	uint32_t gid = group_of_new_inode(m->dir.attr.mode, m->dir.attr.gid, make->gid);

	inode_init_lent(m->c->v, &k->inode, k->told.commit.ino, k->heritage.mode, make->uid, gid,
		make->time);
	k->inode.parent = m->dir.attr.ino;
	k->set = written_attributes(m->c, &k->told.commit, &k->inode);
}

static int check_memory(struct maker *m, const struct making *k)
{
	return volume_is_lost(m->c->v) && written_needs_memory(&k->told.commit) ? -EIO : 0;
}

/* *room: store pages that it may touch, as far as it depends on the file. */
static int check_make(struct maker *m, struct making *k, uint64_t *room)
{
	const struct rpc_make *make = &k->told.make;
	uint32_t mode = S_IFREG | (make->mode & 07777);
	int err = check_memory(m, k);

	if (!err)
		err = overlap_decode(&k->told.commit.tail, k->e, &k->n);
	if (!err)
		err = find_place(m, k);
	if (!err)
		err = ns_inherit(m->c, &m->dir, mode, make->umask, &k->heritage, room);
	if (err)
		return err;
	init_made(m, k);
	*room += ROOM_PAGES_PER_EXTENT * k->n;
	err = written_check(m->c, &k->told.commit, &k->inode, k->e, k->n);
	return err ? err : ns_setattr_xattrs_room(m->c, &k->inode, k->set.valid, room);
}

/* As a COMMIT it finds room in the reserve. The first file that is looked at does not come again.
 */
static int make_room(struct maker *m, uint64_t room)
{
	bool is_first = !m->c->rep->makes.n;
	int err;

	if (m->has_room && room <= m->allowed) {
		m->allowed = 0;
		return 0;
	}
	if (m->has_room && ns_more_room(m->c, room))
		return 0;
	if (m->has_room)
		return is_first ? -ENOSPC : -EAGAIN;
	err = ns_room(m->c, ROOM_PAGES_MAKE + room, false);
	m->has_room = !err;
	return err;
}

static int add_made(struct maker *m, struct making *k)
{
	const struct rpc_commit *commit = &k->told.commit;
	struct ns_call *c = m->c;
	int err = ns_heritage_put(c, &k->heritage, &k->inode);

	if (!err)
		err = written_map(c, &k->inode, k->e, k->n);
	if (err)
		return err;
	if (commit->flags & COMMIT_SIZE)
		k->inode.attr.size = commit->size;
	err = ns_set_attr(c, &k->inode, &k->set);
	if (!err)
		err = inode_add(c->v, &k->inode);
	lent_numbers_take(&m->lender, k->inode.attr.ino);
	m->took_number = true;
	return err;
}

/* The directory's times are those that the client has told its programs. */
static int add_made_name(struct maker *m, struct making *k)
{
	const struct rpc_make *make = &k->told.make;
	struct ns_call *c = m->c;
	struct attr *dir = &m->dir.attr;

	dir->mtime = change_time_told(make->time, dir->mtime, c->ctx->now);
	dir->ctime = change_time_told(make->time, dir->ctime, c->ctx->now);
	m->dir_changed = true;
	return dirent_put(
		c->v, &k->slot, &make->name, k->inode.attr.ino, dirent_type(k->inode.attr.mode));
}

/* It was answered to its caller before, so it is refused for nothing that depends on others. */
static int make_one(struct maker *m, struct making *k)
{
	uint64_t room = ROOM_PAGES_PER_MAKE;
	int err;

	squash_request_making(&m->c->ctx->squash, &k->told);
	err = check_make(m, k, &room);
	if (!err)
		err = make_room(m, room);
	if (!err)
		err = add_made(m, k);
	return err ? err : add_made_name(m, k);
}

static int make_all(struct maker *m, const struct rpc_tail *files)
{
	struct rpc_makes_reply *rep = &m->c->rep->makes;
	struct wire_in r = rpc_tail_reader(files);
	struct making k;
	bool full = false;

	while (rep->n < MAKES_MAX && rpc_get_making(&r, &k.told)) {
		int err = full ? -EAGAIN : make_one(m, &k);

		if (store_failed(m->c->m->store))
			return err;
		full = err == -EAGAIN;
		rep->status[rep->n++] = err;
	}
	return save_dir(m);
}

static int save_lender(struct maker *m)
{
	struct ns_call *c = m->c;
	uint8_t numbers = c->req->makes.numbers;
	bool lent =
		ns_may_lend(c, numbers) &&
		lent_numbers_lend(&m->lender, numbers == NUMBERS_ANEW, c->v, &c->rep->makes.lent);

	return lent || m->took_number ? session_codec_put(c->m, &m->lender) : 0;
}

/* Room for the first file, as far as it can be known before the names are changed. */
static uint64_t room_of_first(const struct rpc_tail *files)
{
	struct wire_in r = rpc_tail_reader(files);
	struct rpc_making told;
	uint64_t n = rpc_get_making(&r, &told) ? told.commit.tail.len / RPC_EXTENT_BYTES : 0;

	return ROOM_PAGES_PER_MAKE + ROOM_PAGES_PER_EXTENT * n;
}

/* Changes the names before the files. */
static int run_names(struct maker *m, const struct rpc_tail *before, const struct rpc_tail *files)
{
	uint64_t first = room_of_first(files);
	struct names_run names = {
		.c = m->c, .lender = &m->lender, .behind = ROOM_PAGES_MAKE + first};
	int err = names_run(&names, before, &m->c->rep->makes.names);

	m->took_number = names.took_number;
	m->all_named = names.all;
	m->has_room = before->len;
	m->allowed = before->len ? first : 0;
	return err;
}

int ns_make(struct ns_call *c)
{
	struct maker m = {.c = c};
	struct rpc_tail before, files;
	int err = c->ctx->shared ? -EINVAL : lent_numbers_load(c->m, c->ctx->session, &m.lender);

	rpc_makes_parts(&c->req->makes, &before, &files);
	if (!err)
		err = run_names(&m, &before, &files);
	if (!err && m.all_named)
		err = make_all(&m, &files);
	return err ? err : save_lender(&m);
}
