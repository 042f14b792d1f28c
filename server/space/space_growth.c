/* space_growth.c - see space_growth.h. */
#include "server/space/space_growth.h"

#include <errno.h>
#include <stdlib.h>

#include "server/base/bits.h"
#include "server/space/runmap.h"
#include "server/space/space_run.h"

static int make_maps(const struct space *sp, struct space_growth *growth)
{
	for (uint32_t i = sp->nregions; i < growth->nregions; i++) {
		growth->free[i] = runmap_new((uint32_t)sp->region_pages);
		growth->dirty[i] = runmap_new((uint32_t)sp->region_pages);
		if (!growth->free[i] || !growth->dirty[i])
			return -ENOMEM;
		runmap_add(growth->free[i], 0, (uint32_t)sp->region_pages);
	}
	return 0;
}

int space_growth_prepare(const struct space *sp, uint32_t nregions, struct space_growth *growth)
{
	int err = -ENOMEM;

	*growth = (struct space_growth){.nregions = nregions};
	growth->free = calloc(nregions, sizeof(struct runmap *));
	growth->dirty = calloc(nregions, sizeof(struct runmap *));
	growth->in_file = bits_new(space_growth_pages(sp, nregions));
	if (growth->free && growth->dirty && growth->in_file)
		err = make_maps(sp, growth);
	if (err)
		space_growth_cancel(sp, growth);
	return err;
}

int space_growth_store(struct space *sp, const struct space_growth *growth)
{
	int err = 0;

	for (uint32_t i = sp->nregions; !err && i < growth->nregions; i++)
		err = space_run_put(sp, &(struct space_run){.region = i,
						.npages = (uint32_t)sp->region_pages,
						.state = PAGE_FREE});
	return err;
}

void space_growth_apply(struct space *sp, struct space_growth *growth)
{
	uint64_t npages = space_growth_pages(sp, growth->nregions);

	memcpy(growth->free, sp->free, sp->nregions * sizeof(struct runmap *));
	memcpy(growth->dirty, sp->dirty, sp->nregions * sizeof(struct runmap *));
	memcpy(growth->in_file, sp->in_file, bits_bytes(sp->npages));
	free(sp->free);
	free(sp->dirty);
	free(sp->in_file);
	sp->free = growth->free;
	sp->dirty = growth->dirty;
	sp->in_file = growth->in_file;
	sp->now.free += npages - sp->npages;
	sp->npages = npages;
	sp->nregions = growth->nregions;
	*growth = (struct space_growth){0};
}

void space_growth_cancel(const struct space *sp, struct space_growth *growth)
{
	for (uint32_t i = sp->nregions; i < growth->nregions; i++) {
		if (growth->free)
			runmap_delete(growth->free[i]);
		if (growth->dirty)
			runmap_delete(growth->dirty[i]);
	}
	free(growth->free);
	free(growth->dirty);
	free(growth->in_file);
	*growth = (struct space_growth){0};
}
