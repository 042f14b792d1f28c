/* shrink.c - an export gives up regions at its end, before any client is let in.
 *
 *     give back what nobody has any more: long files that were cut, ended sessions
 *     refuse what can't be done: nothing else has changed until here
 *     make the free pages of the regions to go dirty, so that nothing is placed there
 *     move the pages that files have there, some at a time, by two transactions:
 *         claim their new places (free, zero -> dirty); copy the bytes
 *         give the files the new places; the old ones are dirty
 *     take the regions, all dirty now, out of the store by one transaction
 *
 * So a start that is killed leaves a whole store, and the next one, of any size, goes on.
 *
 * Clients know the addresses of what they have open, so pages move only when no session is stored.
 * With nothing to move a session goes on: it holds nothing in the regions that went.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "common/conf/conf.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/record/extents.h"
#include "server/record/inode.h"
#include "server/meta/meta_internal.h"
#include "server/base/progress.h"

/* At most, in one step. */
enum { MOVES = 32, MOVE_PAGES = 4096, CLOSE_RUNS = 64, ROOM_PAGES_PER_MOVE = 8 };

struct move {
	uint64_t ino;
	struct extent from;
	struct page_run to;
};

struct shrink {
	struct meta *m;
	struct volume *v;
	uint32_t nregions; /* that stay */
	char *why;
	size_t whylen;

	/* A session that is stored and has not ended. */
	bool has_session;
	char client[sizeof(((struct meta_session *)0)->client)];

	/* How far files were walked, and the step that is being done. */
	uint64_t ino, fpage;
	struct move moves[MOVES];
	unsigned nmoves;
	uint64_t npages;

	uint64_t moved, to_move; /* pages */
	struct progress progress;
};

/* ---- in batches ------------------------------------------------------------------------------ */

/* *more is false where step() leaves it alone. */
static int in_batch(struct shrink *s, int (*step)(struct shrink *s, bool *more), bool *more)
{
	int err = meta_begin(s->m);

	*more = false;
	if (err)
		return err;
	err = step(s, more);
	if (!err)
		return meta_commit(s->m);
	meta_abort(s->m);
	return err;
}

static int until_done(struct shrink *s, int (*step)(struct shrink *s, bool *more))
{
	bool more = true;
	int err = 0;

	while (!err && more)
		err = in_batch(s, step, &more);
	return err;
}

/* ---- given back ------------------------------------------------------------------------------ */

static int meta_shrink_reclaim(struct shrink *s, bool *more)
{
	uint64_t freed;
	int err = meta_reclaim(s->m, more, &freed);

	*more = s->m->now.nending || s->v->now.reap_files;
	return err;
}

/* Ends when no page is dirty any more, so that the scrubber has nothing to do. */
static int scrub_all(struct shrink *s)
{
	struct pollfd wait = {.fd = meta_scrub_fd(s->m), .events = POLLIN};
	int err = 0;

	s->v->space.reuse = true;
	while (!err && s->v->space.now.dirty) {
		bool more;

		err = in_batch(s, meta_shrink_reclaim, &more);
		if (!err && s->v->space.now.dirty && poll(&wait, 1, -1) < 0 && errno != EINTR)
			err = -errno;
	}
	s->v->space.reuse = false;
	return err;
}

/* ---- refused --------------------------------------------------------------------------------- */

static void see_session(const struct meta_session *session, void *arg)
{
	struct shrink *s = arg;

	s->has_session = true;
	memcpy(s->client, session->client, sizeof(s->client));
}

static int refuse_too_small(struct shrink *s, uint64_t used)
{
	uint64_t unit = s->v->space.region_pages;
	char have[32], least[32];

	size_format(used << PAGE_SHIFT, have, sizeof(have));
	size_format(div_round_up(used, unit) * unit << PAGE_SHIFT, least, sizeof(least));
	snprintf(s->why, s->whylen, "export '%s': %s are in use; the smallest size is %s",
		s->v->name, have, least);
	return -EINVAL;
}

static int refuse_mounted(struct shrink *s)
{
	char size[32];

	size_format(s->v->space.npages << PAGE_SHIFT, size, sizeof(size));
	snprintf(s->why, s->whylen,
		"export '%s' can't be made smaller while %s has it mounted and has pages in the "
		"regions that are to go: start with %s, unmount it there (where that is gone for "
		"good, mount and unmount it anywhere else), then make it smaller",
		s->v->name, s->client, size);
	return -EBUSY;
}

/* Counts the pages in the regions to go. Refuses if there is no room for them elsewhere, or if a
 * session may use them. */
static int meta_shrink_look_at_tail(struct shrink *s, struct space_tail *tail)
{
	struct space *sp = &s->v->space;
	uint64_t used = space_in_file(sp);
	int err = meta_session_each(s->m, see_session, s);

	if (err)
		return err;
	if (used > s->nregions * sp->region_pages)
		return refuse_too_small(s, used);
	err = store_begin_read(s->m->store);
	if (err)
		return err;
	err = space_tail(sp, s->nregions, tail);
	store_abort(s->m->store);
	if (err)
		return err;
	return s->has_session && (tail->in_file || tail->granted) ? refuse_mounted(s) : 0;
}

/* Also sees to it that there are enough free pages to move them to. */
static int examine(struct shrink *s)
{
	struct space *sp = &s->v->space;
	struct space_tail tail;
	int err = meta_shrink_look_at_tail(s, &tail);

	if (err)
		return err;
	s->to_move = tail.in_file;
	return tail.in_file > sp->now.free - tail.free ? scrub_all(s) : 0;
}

/* ---- moved ----------------------------------------------------------------------------------- */

static int room(struct shrink *s)
{
	int err = meta_room(s->m, ROOM_PAGES + ROOM_PAGES_PER_MOVE * MOVES, false);

	if (err == -ENOSPC)
		snprintf(s->why, s->whylen,
			"export '%s' can't be made smaller: the store is full; start with the size "
			"of before and remove files, or configure more metadata_reserve",
			s->v->name);
	return err;
}

static int close_tail(struct shrink *s, bool *more)
{
	bool done = false;
	int err = room(s);

	if (!err)
		err = space_close_tail(&s->v->space, s->nregions, CLOSE_RUNS, &done);
	*more = !done;
	return err;
}

/* The inode at s->ino or after it; s->fpage is within it. */
static int next_inode(struct shrink *s, struct stored_inode *i)
{
	struct store_key key;
	int err = store_seek(
		s->m->store, STORE_INODE, STORE_KEY(inode_key(s->v, s->ino)), &key, NULL);

	if (!err && key.hi >> INO_BITS != s->v->id)
		err = -ENOENT;
	if (err)
		return err;
	if (ino_of_key(key.hi) != s->ino) {
		s->ino = ino_of_key(key.hi);
		s->fpage = 0;
	}
	return inode_load_any(s->v, s->ino, i);
}

/* The inode's next pages to move, from s->fpage on; -ENOENT: none. */
static int next_of_inode(struct shrink *s, const struct stored_inode *i, struct extent *e)
{
	int err;

	while (!(err = extents_at(s->v, i, s->fpage, e)) && e->region < s->nregions)
		s->fpage = e->fpage + e->npages;
	if (!err && e->fpage < s->fpage) {
		uint32_t skip = (uint32_t)(s->fpage - e->fpage);

		e->fpage += skip;
		e->page += skip;
		e->npages -= skip;
	}
	return err;
}

static int next_to_move(struct shrink *s, struct extent *e)
{
	for (;;) {
		struct stored_inode inode;
		int err = next_inode(s, &inode);

		if (err)
			return err;
		err = next_of_inode(s, &inode, e);
		if (err != -ENOENT)
			return err;
		s->ino++;
		s->fpage = 0;
	}
}

static int claim(struct shrink *s, bool *more)
{
	int err = room(s);

	s->nmoves = 0;
	s->npages = 0;
	while (!err && s->nmoves < MOVES && s->npages < MOVE_PAGES) {
		struct move *move = &s->moves[s->nmoves];

		err = next_to_move(s, &move->from);
		if (err)
			break;
		err = space_claim(&s->v->space, min_u64(move->from.npages, MOVE_PAGES - s->npages),
			&move->to);
		if (err)
			return err;
		move->ino = s->ino;
		s->fpage = move->from.fpage + move->to.npages;
		s->npages += move->to.npages;
		s->nmoves++;
	}
	*more = s->nmoves > 0;
	return err == -ENOENT ? 0 : err;
}

static char *address_of(const struct shrink *s, uint16_t region, uint32_t page)
{
	return (char *)s->v->bases[region] + (size_t)page * PAGE_BYTES;
}

static void copy_bytes(const struct shrink *s)
{
	for (const struct move *move = s->moves; move < s->moves + s->nmoves; move++)
		memcpy(address_of(s, move->to.region, move->to.page),
			address_of(s, move->from.region, move->from.page),
			(size_t)move->to.npages * PAGE_BYTES);
}

static int remap_one(struct shrink *s, const struct move *move)
{
	struct extent e = {.fpage = move->from.fpage,
		.npages = move->to.npages,
		.page = move->to.page,
		.region = move->to.region};
	struct volume *v = s->v;
	unsigned budget = 1;
	struct stored_inode inode;
	uint64_t reached;
	int err = inode_load_any(v, move->ino, &inode);

	if (!err)
		err = extents_punch(v, &inode, e.fpage, e.fpage + e.npages, &budget, &reached);
	if (!err)
		err = space_use_claimed(&v->space, move->to);
	if (!err)
		err = extents_add(v, &inode, &e);
	return err ? err : inode_save(v, &inode);
}

static int remap(struct shrink *s, bool *more)
{
	int err = room(s);

	(void)more;
	for (unsigned i = 0; !err && i < s->nmoves; i++)
		err = remap_one(s, &s->moves[i]);
	return err;
}

static int move_some(struct shrink *s, bool *more)
{
	char what[EXPORT_NAME_MAX + 64];
	bool unused;
	int err = in_batch(s, claim, more);

	if (err || !*more)
		return err;
	CRASH_POINT("shrink.claimed");
	copy_bytes(s);
	CRASH_POINT("shrink.copied");
	if (volume_is_lost(s->v)) {
		snprintf(s->why, s->whylen,
			"export '%s': a region's file was cut while the export was being made "
			"smaller: leave the export out of the configuration",
			s->v->name);
		return -EBADMSG;
	}
	err = in_batch(s, remap, &unused);
	CRASH_POINT("shrink.moved");
	s->moved += s->npages;
	snprintf(what, sizeof(what), "export '%s': making it smaller", s->v->name);
	progress_tell(&s->progress, what, s->moved, s->to_move);
	return err;
}

static int move_all(struct shrink *s)
{
	bool more = s->to_move > 0;
	int err = 0;

	s->ino = ROOT_INO;
	while (!err && more)
		err = move_some(s, &more);
	return err;
}

/* ---- gone ------------------------------------------------------------------------------------ */

static int meta_shrink_drop(struct shrink *s, bool *more)
{
	struct volume smaller = *s->v;
	int err = space_drop_tail(&s->v->space, s->nregions);

	(void)more;
	smaller.space.nregions = s->nregions;
	smaller.space.npages = s->nregions * s->v->space.region_pages;
	return err ? err : meta_save_volume(s->m, &smaller);
}

static void meta_shrink_tell(const struct shrink *s)
{
	char size[32], moved[32];

	size_format(s->nregions * s->v->space.region_pages << PAGE_SHIFT, size, sizeof(size));
	size_format(s->moved << PAGE_SHIFT, moved, sizeof(moved));
	log_notice("export '%s' has shrunk to %s; %s were moved", s->v->name, size, moved);
}

int meta_shrink_look(struct meta *m, struct volume *v, uint32_t nregions, char *why, size_t whylen)
{
	struct shrink s = {.m = m, .v = v, .nregions = nregions, .why = why, .whylen = whylen};
	struct space_tail tail;

	return meta_shrink_look_at_tail(&s, &tail);
}

int meta_shrink(struct meta *m, struct volume *v, uint32_t nregions, char *why, size_t whylen)
{
	struct shrink s = {.m = m, .v = v, .nregions = nregions, .why = why, .whylen = whylen};
	bool unused;
	int err = until_done(&s, meta_shrink_reclaim);

	if (!err)
		err = examine(&s);
	if (!err)
		err = until_done(&s, close_tail);
	if (!err)
		err = move_all(&s);
	if (!err)
		err = in_batch(&s, meta_shrink_drop, &unused);
	if (err)
		return err;
	CRASH_POINT("shrink.dropped");
	meta_shrink_tell(&s);
	return 0;
}
