/* space.h - which pages of an export are free, granted, in a file or waiting to be scrubbed.
 *
 *     free (zero) --grant--> granted to a session --use--> in a file --release--> dirty
 *                                   \----------return----------------------------/
 *     dirty --next_dirty, scrubbed--> free --take--> in a file
 *
 * The store has runs of every state but "in a file". Memory has sets that find long runs, of the
 * free pages and of the dirty ones that no scrubber has yet. It also has one bit for each page that
 * is in a file, so that a snapshot need not walk the store for them.
 *
 * OWNERSHIP  space_open() fills the caller's struct; space_close() frees what it holds.
 * THREADS    The metadata thread, within a batch: begin, changes, then commit or abort.
 * ERRORS     0 or -errno. An error means that the store failed, but where said otherwise.
 */
#ifndef RMEMFS_SERVER_SPACE_SPACE_H
#define RMEMFS_SERVER_SPACE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "common/base/util.h"
#include "server/store/store.h"

struct runmap;

/* Neighbouring pages of one region and one state. Also a scrubber's job is one. */
struct page_run {
	uint16_t region;
	uint32_t page, npages;
};

static inline struct page_run page_run_of(const struct extent *e)
{
	return (struct page_run){e->region, e->page, e->npages};
}

enum page_state { PAGE_FREE = 1, PAGE_GRANTED, PAGE_DIRTY };

struct space_counts {
	uint64_t free, granted, dirty;
};

/* The pages that a session was granted. */
struct space_grantee {
	uint64_t session;
	uint64_t npages; /* that it has now */
	uint64_t left; /* that it has had, and put into files or returned, in this run of the server
			*/
};

/* A change of a map, which is taken back if the batch is aborted. */
struct space_change;

struct space {
	struct store *store;
	uint16_t export_id;
	uint32_t nregions;
	uint64_t npages, region_pages;
	struct runmap **free, **dirty; /* [nregions] */
	uint64_t *in_file;             /* bits, by region * region_pages + page; see bits.h */
	struct space_counts now, saved;
	/* Sessions that were granted pages, and have not ended. */
	struct space_grantee *grantees;
	size_t ngrantees, grantees_room;
	bool reuse; /* dirty pages may be scrubbed */

	struct space_change *changes;
	size_t nchanges, changes_room;
};

/* The caller has set store .. region_pages, the rest is zero; in a transaction. fresh: nothing is
 * stored yet, and all is free. Else -EBADMSG: the stored runs contradict each other. */
int space_open(struct space *sp, bool fresh);
void space_close(struct space *sp);
/* Adds a region that is new to the store: it is free, and zero... */
int space_add_region(struct space *sp, uint32_t region);
/* ... or it may hold anything, and is dirty. */
int space_add_used_region(struct space *sp, uint32_t region);

void space_begin(struct space *sp);
void space_commit(struct space *sp);
void space_abort(struct space *sp);

/* The pages of a region: all have region_pages, but for the last. */
static inline uint32_t space_region_pages(const struct space *sp, uint32_t region)
{
	return (uint32_t)min_u64(sp->region_pages, sp->npages - region * sp->region_pages);
}

/* Lends up to npages in at most max runs, as few as possible. *n may be 0. */
int space_grant(struct space *sp, uint64_t session, uint64_t npages, struct extent *out,
	unsigned max, unsigned *n);
/* -EINVAL: not all of these pages are granted to the session. Changes nothing. */
int space_check_granted(struct space *sp, uint64_t session, struct page_run run);

/* Takes one run of up to npages for a file, the longest that is free. -ENOSPC: nothing is free. */
int space_take(struct space *sp, uint64_t npages, struct page_run *run);
int space_use(struct space *sp, uint64_t session, struct page_run run);
int space_release(struct space *sp, struct page_run run);
int space_return(struct space *sp, uint64_t session, struct page_run run);
int space_scrubbed(struct space *sp, struct page_run run);

/* Takes a run of at most npages that is to be scrubbed. False: none, or reuse is not allowed. */
bool space_next_dirty(struct space *sp, uint32_t npages, struct page_run *run);
/* A run that was taken could not be scrubbed now. */
int space_still_dirty(struct space *sp, struct page_run run);
bool space_has_dirty(const struct space *sp);

/* Zeros: the session was granted nothing. */
struct space_grantee space_granted_to(const struct space *sp, uint64_t session);

/* How many pages are in files. */
uint64_t space_in_file(const struct space *sp);

/* Takes back a bounded number of a session's grants. *position: 0 at first, then as the call before
 * left it. *done: that was all. */
int space_end_session(struct space *sp, uint64_t session, uint64_t *position, bool *done);

/* ---- regions at the end are to go: see meta/shrink.c ---- */

/* Pages of the regions from `first` on, by state. */
struct space_tail {
	uint64_t in_file, granted, free;
};
int space_tail(struct space *sp, uint32_t first, struct space_tail *out);
/* Makes up to max of their free runs dirty, so that nothing is placed there. *done: no free run is
 * left. */
int space_close_tail(struct space *sp, uint32_t first, unsigned max, bool *done);
/* Claims a run of up to npages, which bytes are copied to before a file gets it. It is dirty until
 * then, and the scrubber must not run. -ENOSPC: nothing is free. */
int space_claim(struct space *sp, uint64_t npages, struct page_run *run);
int space_use_claimed(struct space *sp, struct page_run run);
/* The store forgets these regions. -EBADMSG: not all of their pages are dirty. Once that is
 * committed the space can only be closed. */
int space_drop_tail(struct space *sp, uint32_t first);

#endif
