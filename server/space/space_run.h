/* space_run.h - the runs of pages that the store has: of every state but "in a file".
 *
 * A record has a run's length and state, and the session for granted pages. Its key is the export,
 * the region and the first page. Neighbours of one kind are joined.
 *
 * THREADS    The metadata thread, within a transaction of the store.
 * ERRORS     0 or -errno. -EBADMSG: a stored run is damaged, or is not where it must be.
 */
#ifndef RMEMFS_SERVER_SPACE_SPACE_RUN_H
#define RMEMFS_SERVER_SPACE_SPACE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "server/space/space.h"

struct space_run {
	uint32_t region, page, npages;
	enum page_state state;
	uint64_t session;
};

static inline struct store_key space_run_key(const struct space *sp, uint32_t region, uint32_t page)
{
	return STORE_KEY((uint64_t)sp->export_id << 48 | (uint64_t)region << 32 | page);
}

static inline uint64_t space_run_end(const struct space_run *r)
{
	return (uint64_t)r->page + r->npages;
}

/* Whether both have one region, state and session. */
bool space_run_is_same_kind(const struct space_run *a, const struct space_run *b);

int space_run_decode(
	struct space *sp, struct store_key key, const struct store_val *val, struct space_run *r);
/* The run that holds the page, or the last one before it in the page's region. -ENOENT: none. */
int space_run_at(struct space *sp, uint32_t region, uint32_t page, struct space_run *r);
/* The next run from the page key (region << 32 | page) *at on; advances it. -ENOENT: no more. */
int space_run_next(struct space *sp, uint64_t *at, struct space_run *r);

/* Adds a run, joined with its neighbours of the same kind. */
int space_run_add(struct space *sp, const struct space_run *add);
/* Takes pages out of the runs that hold them. `cut` says which pages, and of which kind they must
 * be. */
int space_run_cut(struct space *sp, const struct space_run *cut);
int space_run_put(struct space *sp, const struct space_run *r);
int space_run_del(struct space *sp, const struct space_run *r);

/* For checks: a stored run as its record says, even if there are no such pages. */
int space_run_parse(struct space *sp, struct store_key key, const struct store_val *val,
	struct page_run *run, enum page_state *state, uint64_t *session);

#endif
