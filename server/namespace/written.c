#include "server/namespace/written.h"

#include <errno.h>

#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "server/namespace/overlap.h"
#include "server/namespace/squash_request.h"
#include "server/record/extents.h"

/* The last page that a file of the greatest size has. */
#define FPAGE_MAX ((uint64_t)INT64_MAX >> PAGE_SHIFT)

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

int written_check(struct ns_call *c, const struct rpc_commit *req, const struct stored_inode *i,
	const struct extent *e, unsigned n)
{
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
static struct rpc_setattr attributes_told(
	const struct ns_call *c, const struct rpc_commit *req, const struct stored_inode *i)
{
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

struct rpc_setattr written_attributes(
	const struct ns_call *c, const struct rpc_commit *req, const struct stored_inode *i)
{
	struct rpc_setattr set = attributes_told(c, req, i);

	if (c->ctx->squash.kind != SQUASH_NONE)
		squash_attributes(c, i, &set);
	return set;
}

int written_map(struct ns_call *c, struct stored_inode *i, const struct extent *e, unsigned n)
{
	uint64_t had = i->attr.npages;
	int err = map_extents(c, i, e, n);

	return err ? err
		   : quota_use(
			     c->v, c->ctx->session, i->attr.uid, i->attr.gid, i->attr.npages - had);
}

bool written_needs_memory(const struct rpc_commit *req)
{
	return req->tail.len || req->flags & (COMMIT_SIZE | COMMIT_MTIME);
}
