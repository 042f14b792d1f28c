/* space_growth.h - more regions for a space that is open.
 *
 *     space_growth_prepare -> [transaction] space_growth_store -> commit -> space_growth_apply
 *     space_growth_cancel in the place of any later step
 *
 * The last region must be as large as the others. The new ones are free, and zero.
 *
 * OWNERSHIP  The caller has the struct. space_growth_apply() and space_growth_cancel() leave it
 *            empty.
 * THREADS    The metadata thread, outside batches: only the store's transaction is open.
 * ERRORS     0 or -errno. All that can fail comes before the commit.
 */
#ifndef RMEMFS_SERVER_SPACE_SPACE_GROWTH_H
#define RMEMFS_SERVER_SPACE_SPACE_GROWTH_H

#include "server/space/space.h"

struct space_growth {
	uint32_t nregions; /* afterwards; 0: empty */
	struct runmap **free, **dirty;
	uint64_t *in_file;
};

/* Allocates all that memory needs for so many regions. The space does not change until
 * space_growth_apply() but by batches that come before the transaction. */
int space_growth_prepare(const struct space *sp, uint32_t nregions, struct space_growth *growth);
/* Within a transaction of the store: writes the new regions' runs. */
int space_growth_store(struct space *sp, const struct space_growth *growth);
void space_growth_apply(struct space *sp, struct space_growth *growth);
void space_growth_cancel(const struct space *sp, struct space_growth *growth);

/* The pages of a space with so many regions. */
static inline uint64_t space_growth_pages(const struct space *sp, uint32_t nregions)
{
	return nregions * sp->region_pages;
}

#endif
