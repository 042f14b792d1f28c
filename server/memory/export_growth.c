/* export_growth.c - see export_growth.h. */
#include "server/memory/export_growth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/conf/conf.h"
#include "server/base/resize.h"

static int refuse_count(const struct export *served, uint64_t size)
{
	uint64_t region = served->region_pages * PAGE_BYTES;
	char want[32], unit[32], most[32];

	size_format(size, want, sizeof(want));
	size_format(region, unit, sizeof(unit));
	size_format(region * EXPORT_REGIONS_MAX, most, sizeof(most));
	log_error("export '%s' is configured with %s and has regions of %s: clients reach %u of "
		  "them, so it can have %s",
		served->name, want, unit, EXPORT_REGIONS_MAX, most);
	return -EINVAL;
}

static int check_size(const struct export *served, uint64_t size)
{
	uint64_t region = served->region_pages * PAGE_BYTES;
	uint64_t has = served->npages * PAGE_BYTES;
	char have[32], want[32], choices[192];

	if (size <= has || !resize_is_possible(has, size, region)) {
		size_format(has, have, sizeof(have));
		size_format(size, want, sizeof(want));
		resize_choices(has, size, region, choices, sizeof(choices));
		log_error("export '%s' has %s and is configured with %s: %s", served->name, have,
			want, choices);
		return -EINVAL;
	}
	return size / region > EXPORT_REGIONS_MAX ? refuse_count(served, size) : 0;
}

int export_growth_plan(const struct memdir *dir, uint64_t size, unsigned nports,
	struct export *served, struct export **out)
{
	struct memdir none = *dir;
	struct export *growth;
	int err = check_size(served, size);

	*out = NULL;
	if (err)
		return err;
	growth = calloc(1, sizeof(*growth));
	if (!growth)
		return -ENOMEM;
	memcpy(growth->name, served->name, sizeof(growth->name));
	growth->npages = size / PAGE_BYTES - served->npages;
	growth->region_pages = served->region_pages;
	growth->nregions = (uint32_t)(growth->npages / growth->region_pages);
	growth->first = served->nregions;
	/* No file that is there is taken over. */
	none.content = MEMDIR_NEW;
	err = export_plan_files(&none, nports, &served->lost, growth);
	if (err)
		export_delete(growth);
	else
		*out = growth;
	return err;
}

int export_growth_reserve(struct export *served, const struct export *growth)
{
	uint32_t n = served->nregions + growth->nregions;
	struct region_file **regions;
	void **bases;
	bool *used;

	regions = reallocarray(served->regions, n, sizeof(*regions));
	if (regions)
		served->regions = regions;
	bases = reallocarray(served->bases, n, sizeof(*bases));
	if (bases)
		served->bases = bases;
	used = reallocarray(served->used, n, sizeof(*used));
	if (used)
		served->used = used;
	if (!regions || !bases || !used)
		return -ENOMEM;
	memcpy(served->bases + served->nregions, growth->bases,
		growth->nregions * sizeof(*served->bases));
	return 0;
}

void export_growth_take(struct export *served, struct export *growth)
{
	/* "No region had holes" is the number of all. */
	if (served->holed == served->nregions)
		served->holed += growth->nregions;
	for (uint32_t i = 0; i < growth->nregions; i++) {
		served->regions[served->nregions + i] = growth->regions[i];
		/* From now on it is one that is there. */
		served->used[served->nregions + i] = true;
	}
	served->nregions += growth->nregions;
	served->npages += growth->npages;
	growth->nregions = 0;
}
