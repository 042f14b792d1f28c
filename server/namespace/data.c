/* data.c - COMMIT, GRANT and RETURN: pages on their way into files and back. */
#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "server/record/extents.h"
#include "server/namespace/ns.h"
#include "server/namespace/overlap.h"
#include "server/namespace/squash_request.h"
#include "server/space/protect.h"
#include "server/record/reaper.h"

enum {
	EXTENTS_MAX = OVERLAP_EXTENTS_MAX,
	/* RETURN of more inodes leaves all of them to the reaper. */
	RETURN_AT_ONCE = 16,
	/* RETURN_ALL: at most so many runs of pages, and owners with reserved quota, in one step.
	 */
	RETURN_ALL_RUNS = 128,
	RETURN_ALL_QUOTAS = 32,
};

/* The last page that a file of the greatest size has. */
#define FPAGE_MAX ((uint64_t)INT64_MAX >> PAGE_SHIFT)

static int decode_extents(const struct rpc_tail *tail, struct extent *e, unsigned *n)
{
	struct wire_in r = rpc_tail_reader(tail);

	*n = 0;
	while (wire_in_left(&r)) {
		if (*n == EXTENTS_MAX || !rpc_get_extent(&r, &e[*n]) || e[*n].target != 0)
			return -EINVAL;
		++*n;
	}
	return 0;
}

/* ---- UNPROTECT ------------------------------------------------------------------------------- */

static bool in_export(const struct ns_call *c, const struct extent *e)
{
	const struct space *sp = &c->v->space;

	return e->region < sp->nregions &&
	       range_within(e->page, e->npages, space_region_pages(sp, e->region));
}

/* A client may name any page of the export: one that is not protected is given up already. */
int ns_unprotect(struct ns_call *c)
{
	struct extent e[EXTENTS_MAX];
	unsigned n;
	int err = decode_extents(&c->req->unprotect.tail, e, &n);

	for (unsigned k = 0; !err && k < n; k++)
		err = in_export(c, &e[k]) ? 0 : -EINVAL;
	for (unsigned k = 0; !err && k < n; k++)
		err = protect_give_up(c->v->protect, page_run_of(&e[k])) ? NS_PARK : 0;
	return err;
}

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
	uint64_t want = req->want_pages, room = ROOM_PAGES, had;
	struct extent e[EXTENTS_MAX];
	struct rpc_setattr set;
	struct stored_inode inode;
	unsigned n = 0;
	int err = decode_extents(&req->tail, e, &n);

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
		err = ns_room_and_grant(c, room + ROOM_PAGES_PER_EXTENT * n, false, &want);
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
	return err ? err : ns_take_grant(c, want, c->rep->attr.grant, &c->rep->attr.ngrant);
}

/* ---- GRANT ----------------------------------------------------------------------------------- */

int ns_grant(struct ns_call *c)
{
	const struct rpc_grant *req = &c->req->grant;
	uint64_t want = min_u64(req->want_pages, c->v->space.now.free);
	int err;

	if (!req->want_pages)
		return -EINVAL;
	if (!want) {
		int none = ns_no_pages(c);

		return req->wait ? none : -ENOSPC;
	}
	err = ns_room(c, ROOM_PAGES + want / PAGES_PER_STORE_PAGE, true);
	return err ? err : ns_take_grant(c, want, c->rep->grant.grant, &c->rep->grant.ngrant);
}

/* ---- RETURN ---------------------------------------------------------------------------------- */

static int return_grants(struct ns_call *c)
{
	struct extent e[EXTENTS_MAX];
	unsigned n;
	int err = decode_extents(&c->req->ret.tail, e, &n);

	if (!err && overlap_any(e, n, false))
		err = -EINVAL;
	for (unsigned k = 0; !err && k < n; k++)
		err = space_check_granted(&c->v->space, c->ctx->session, page_run_of(&e[k]));
	if (!err)
		err = ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_EXTENT * n, false);
	for (unsigned k = 0; !err && k < n; k++)
		err = space_return(&c->v->space, c->ctx->session, page_run_of(&e[k]));
	return err;
}

/* Steps that find no page of the session change nothing. -EINPROGRESS: more may be left. */
static int return_some_grants(struct ns_call *c)
{
	struct space *sp = &c->v->space;
	uint64_t session = c->ctx->session, position = 0;
	uint64_t had = space_granted_to(sp, session).npages;
	bool done = false;
	int err = ns_room(c, ROOM_PAGES + ROOM_PAGES_PER_EXTENT * RETURN_ALL_RUNS, false);

	while (!err && !done && had && space_granted_to(sp, session).npages == had)
		err = space_end_session(sp, session, &position, &done);
	return !err && !done && had ? -EINPROGRESS : err;
}

static int return_all(struct ns_call *c)
{
	int err = return_some_grants(c);
	bool done = true;

	if (!err)
		err = quota_end_session(c->v, c->ctx->session, RETURN_ALL_QUOTAS, &done);
	return !err && !done ? -EINPROGRESS : err;
}

/* An inode that the session does not keep was returned before: nothing to do. */
static int return_inode(struct ns_call *c, uint64_t ino, bool at_once)
{
	int err = ns_orphan_return(c, ino, at_once);

	return err == -ENOENT ? ns_return_pin(c, ino, at_once) : err;
}

static int return_inodes(struct ns_call *c)
{
	struct wire_in r = rpc_tail_reader(&c->req->ret.tail);
	size_t n = wire_in_left(&r) / sizeof(uint64_t);
	bool at_once = n <= RETURN_AT_ONCE;
	int err;

	if (wire_in_left(&r) % sizeof(uint64_t))
		return -EINVAL;
	err = ns_room(c, ROOM_PAGES + n * (at_once ? ROOM_PAGES_PER_REAPED : 1), false);
	while (!err && wire_in_left(&r))
		err = return_inode(c, wire_get_u64(&r), at_once);
	return err;
}

int ns_return(struct ns_call *c)
{
	switch (c->req->ret.kind) {
	case RETURN_INODES:
		return return_inodes(c);
	case RETURN_GRANTS:
		return return_grants(c);
	case RETURN_LEASES:
		return ns_return_leases(c);
	case RETURN_ALL:
		return return_all(c);
	default:
		return -EINVAL;
	}
}
