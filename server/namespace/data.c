/* data.c - GRANT, RETURN and UNPROTECT: pages that clients get and give back. */
#include <errno.h>

#include "common/base/util.h"
#include "server/namespace/ns.h"
#include "server/namespace/overlap.h"
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
	int err = overlap_decode(&c->req->unprotect.tail, e, &n);

	for (unsigned k = 0; !err && k < n; k++)
		err = in_export(c, &e[k]) ? 0 : -EINVAL;
	for (unsigned k = 0; !err && k < n; k++)
		err = protect_give_up(c->v->protect, page_run_of(&e[k])) ? NS_PARK : 0;
	return err;
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
	int err = overlap_decode(&c->req->ret.tail, e, &n);

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
