/* commit.c - COMMIT: what a client has written into a file; MAKE: a file that it has also made. */
#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "server/meta/lent_numbers.h"
#include "server/meta/share.h"
#include "server/namespace/ns.h"
#include "server/namespace/overlap.h"
#include "server/namespace/squash_request.h"
#include "server/record/extents.h"

enum {
	EXTENTS_MAX = OVERLAP_EXTENTS_MAX,
	/* The directory's records and the session's. */
	ROOM_PAGES_MAKE = 16,
	/* Lent numbers may need as much, at the time when they are lent. */
	ROOM_PAGES_LENT = ROOM_PAGES + 2 * NUMBERS_LENT,
};

/* The last page that a file of the greatest size has. */
#define FPAGE_MAX ((uint64_t)INT64_MAX >> PAGE_SHIFT)

/* ---- COMMIT ---------------------------------------------------------------------------------- */

static int check_extent(struct ns_call *c, const struct stored_inode *i, const struct extent *e)
{
	struct extent there;
	int err = space_check_granted(&c->v->space, c->ctx->session, page_run_of(e));

	if (err)
		return err;
	if (e->fpage > FPAGE_MAX || e->npages - 1 > FPAGE_MAX - e->fpage)
		return -EFBIG;
	if (e->fpage + e->npages > i->cut)
		return ns_wait_for_reaper(c);
	err = extents_at(c->v, i, e->fpage, &there);
	if (!err && there.fpage < e->fpage + e->npages)
		return -EEXIST;
	return err == -ENOENT ? 0 : err;
}

static int check_commit(
	struct ns_call *c, const struct stored_inode *i, const struct extent *e, unsigned n)
{
	const struct rpc_commit *req = &c->req->commit;

	/* Reading leaves its time on any kind of inode. */
	if (!S_ISREG(i->attr.mode) && (req->flags != COMMIT_ATIME || n))
		return -EINVAL;
	if (overlap_any(e, n, true))
		return -EINVAL;
	if (req->flags & COMMIT_SIZE && req->size > INT64_MAX)
		return -EFBIG;
	for (unsigned k = 0; k < n; k++) {
		int err = check_extent(c, i, &e[k]);

		if (err)
			return err;
	}
	return 0;
}

static int map_extents(
	struct ns_call *c, struct stored_inode *i, const struct extent *e, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		int err = space_use(&c->v->space, c->ctx->session, page_run_of(&e[k]));

		if (!err)
			err = extents_add(c->v, i, &e[k]);
		if (err)
			return err;
	}
	return 0;
}

/* Sets only times that the client tells. A client that shares the export tells times of writes. One
 * alone also tells those that utimensat(2) has set, which may be of the past. */
static struct rpc_setattr attributes_of(const struct ns_call *c, const struct stored_inode *i)
{
	const struct rpc_commit *req = &c->req->commit;
	struct rpc_setattr set = {
		.valid = (req->flags & ~(uint32_t)COMMIT_SIZE) | SET_CTIME,
		.mode = req->mode,
		.uid = req->uid,
		.gid = req->gid,
		.atime = req->atime,
		.mtime = req->mtime,
		.ctime = req->flags & COMMIT_MTIME ? req->ctime : i->attr.ctime,
	};

	if (c->ctx->shared) {
		set.mtime = change_time_told(set.mtime, i->attr.mtime, c->ctx->now);
		set.ctime = change_time_told(set.ctime, i->attr.ctime, c->ctx->now);
	}
	return set;
}

/* Leaves out the mode and owners that SETATTR would refuse a session whose users are squashed. They
 * were told to its callers long ago, and without the COMMIT their data would be lost. */
static void squash_attributes(
	const struct ns_call *c, const struct stored_inode *i, struct rpc_setattr *set)
{
	const struct squash *squash = &c->ctx->squash;
	struct rights rights = squash_request_rights(squash);

	if (!rights_of_owner(&rights, i->attr.uid))
		set->valid &= ~(uint32_t)(SET_MODE | SET_OWNERS);
	squash_request_mode(squash, i->attr.mode, set);
}

/* A COMMIT is never refused for a quota, not even a new owner's: with quotas clients set owners by
 * SETATTR. */
int ns_commit(struct ns_call *c)
{
	const struct rpc_commit *req = &c->req->commit;
	uint64_t room = ROOM_PAGES, had;
	struct extent e[EXTENTS_MAX];
	struct rpc_setattr set;
	struct stored_inode inode;
	unsigned n = 0;
	int err = overlap_decode(&req->tail, e, &n);

	if (!err)
		err = inode_load(c->v, req->ino, &inode);
	if (!err)
		err = ns_check_commit_lease(c, &inode);
	if (!err)
		err = check_commit(c, &inode, e, n);
	if (err)
		return err;
	set = attributes_of(c, &inode);
	squash_attributes(c, &inode, &set);
	room += req->lease ? ROOM_PAGES_PER_LEASE : 0;
	err = ns_setattr_xattrs_room(c, &inode, set.valid, &room);
	if (!err)
		err = ns_room(c, room + ROOM_PAGES_PER_EXTENT * n, false);
	if (err)
		return err;
	had = inode.attr.npages;
	err = map_extents(c, &inode, e, n);
	if (!err)
		err = quota_use(c->v, c->ctx->session, inode.attr.uid, inode.attr.gid,
			inode.attr.npages - had);
	if (err)
		return err;
	if (req->flags & COMMIT_SIZE)
		inode.attr.size = max_u64(inode.attr.size, req->size);
	err = ns_set_attr(c, &inode, &set);
	if (!err)
		err = inode_save(c->v, &inode);
	if (!err && req->lease)
		err = ns_commit_lowers_lease(c);
	c->rep->attr.attr = inode.attr;
	return err;
}

/* ---- numbers --------------------------------------------------------------------------------- */

bool ns_may_lend(struct ns_call *c, uint8_t numbers)
{
	const struct volume *v = c->v;

	return numbers != NUMBERS_NONE && !c->ctx->shared && !c->ctx->read_only &&
	       c->ctx->squash.kind == SQUASH_NONE && !quota_on(v) && !volume_is_lost(v) &&
	       v->now.inodes + LENT_WINDOWS * NUMBERS_LENT < v->max_inodes &&
	       !share_room(v, ROOM_PAGES_LENT, true) && meta_has_spare_room(c->m, ROOM_PAGES_LENT);
}

int ns_lend(struct ns_call *c, uint8_t numbers, struct rpc_lent *lent)
{
	struct session_record lender;
	int err = lent_numbers_load(c->m, c->ctx->session, &lender);

	if (!err && lent_numbers_lend(&lender, numbers == NUMBERS_ANEW, c->v, lent))
		err = session_codec_put(c->m, &lender);
	return err;
}

/* ---- MAKE ------------------------------------------------------------------------------------ */

/* A file that is to be made. */
struct making {
	struct stored_inode dir, inode;
	struct dirent_slot slot;
	struct heritage heritage;
	struct session_record lender;
	struct rpc_setattr set;
	struct extent e[EXTENTS_MAX];
	unsigned n;
};

static int check_number(struct ns_call *c, struct making *k)
{
	uint64_t ino = c->req->commit.ino;
	struct stored_inode there;
	int err = lent_numbers_load(c->m, c->ctx->session, &k->lender);

	if (err)
		return err;
	if (!lent_numbers_has(&k->lender, ino))
		return -EINVAL;
	err = inode_load_any(c->v, ino, &there);
	if (!err)
		err = store_damaged(c->m->store, STORE_SESSION, STORE_KEY(k->lender.session.id));
	return err == -ESTALE ? 0 : err;
}

static int find_place(struct ns_call *c, struct making *k)
{
	const struct rpc_make *make = &c->req->commit.make;
	int err =
		c->ctx->shared ? -EINVAL : ns_find(c, make->parent, &make->name, &k->dir, &k->slot);

	if (!err && k->slot.ino)
		return -EEXIST;
	return err ? err : check_number(c, k);
}

static void init_made(struct ns_call *c, struct making *k)
{
	const struct rpc_make *make = &c->req->commit.make;
	uint32_t gid = group_of_new_inode(k->dir.attr.mode, k->dir.attr.gid, make->gid);

	inode_init_lent(
		c->v, &k->inode, c->req->commit.ino, k->heritage.mode, make->uid, gid, make->time);
	k->inode.parent = k->dir.attr.ino;
	k->set = attributes_of(c, &k->inode);
	squash_attributes(c, &k->inode, &k->set);
}

/* *room: store pages that it may touch, as far as it depends on the request. */
static int check_make(struct ns_call *c, struct making *k, uint64_t *room)
{
	const struct rpc_make *make = &c->req->commit.make;
	uint32_t mode = S_IFREG | (make->mode & 07777);
	int err = overlap_decode(&c->req->commit.tail, k->e, &k->n);

	if (!err)
		err = find_place(c, k);
	if (!err)
		err = ns_inherit(c, &k->dir, mode, make->umask, &k->heritage, room);
	if (err)
		return err;
	init_made(c, k);
	*room += ROOM_PAGES_PER_EXTENT * k->n;
	return check_commit(c, &k->inode, k->e, k->n);
}

static int add_made(struct ns_call *c, struct making *k)
{
	const struct rpc_commit *req = &c->req->commit;
	struct stored_inode *i = &k->inode;
	int err = ns_heritage_put(c, &k->heritage, i);

	if (!err)
		err = map_extents(c, i, k->e, k->n);
	if (!err)
		err = quota_use(c->v, c->ctx->session, i->attr.uid, i->attr.gid, i->attr.npages);
	if (err)
		return err;
	if (req->flags & COMMIT_SIZE)
		i->attr.size = req->size;
	err = ns_set_attr(c, i, &k->set);
	return err ? err : inode_add(c->v, i);
}

/* The directory's times are those that the client has told its programs. */
static int add_made_name(struct ns_call *c, struct making *k)
{
	const struct rpc_make *make = &c->req->commit.make;
	struct attr *dir = &k->dir.attr;
	int err = dirent_put(
		c->v, &k->slot, &make->name, k->inode.attr.ino, dirent_type(k->inode.attr.mode));

	if (err)
		return err;
	dir->mtime = change_time_told(make->time, dir->mtime, c->ctx->now);
	dir->ctime = change_time_told(make->time, dir->ctime, c->ctx->now);
	return inode_save(c->v, &k->dir);
}

static int take_number(struct ns_call *c, struct making *k, bool lends)
{
	uint8_t numbers = c->req->commit.make.numbers;

	lent_numbers_take(&k->lender, k->inode.attr.ino);
	if (lends)
		lent_numbers_lend(&k->lender, numbers == NUMBERS_ANEW, c->v, &c->rep->attr.lent);
	return session_codec_put(c->m, &k->lender);
}

/* It was answered to its caller before, so it is refused for nothing that depends on others. As a
 * COMMIT it finds room in the reserve. */
int ns_make(struct ns_call *c)
{
	uint64_t room = ROOM_PAGES + ROOM_PAGES_MAKE;
	struct making k;
	bool lends;
	int err = check_make(c, &k, &room);

	if (!err)
		err = ns_setattr_xattrs_room(c, &k.inode, k.set.valid, &room);
	if (!err)
		err = ns_room(c, room, false);
	if (err)
		return err;
	lends = ns_may_lend(c, c->req->commit.make.numbers);
	err = add_made(c, &k);
	if (!err)
		err = add_made_name(c, &k);
	if (!err)
		err = take_number(c, &k, lends);
	c->rep->attr.attr = k.inode.attr;
	return err;
}
