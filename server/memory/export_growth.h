/* export_growth.h - more regions for an export that is served.
 *
 * A growth is an export of the same name that has the new regions alone. So all that is done to new
 * exports is done to it:
 *
 *     export_growth_plan -> export_prepare -> registered -> export_growth_reserve
 *     -> the store has them -> export_growth_take -> export_delete
 *     export_discard_new, export_delete in the place of any later step
 *
 * Region files behind those of the export may be there: a killed server has left them. They go
 * before the new ones are made, by exports_remove_files().
 *
 * OWNERSHIP  The growth is the caller's. The export takes its regions.
 * THREADS    The main thread, but for export_prepare().
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_EXPORT_GROWTH_H
#define RMEMFS_SERVER_MEMORY_EXPORT_GROWTH_H

#include "server/memory/exports.h"

/* -EINVAL: it can't have that size, see resize.h, or has too many regions then. */
int export_growth_plan(const struct memdir *dir, uint64_t size, unsigned nports,
	struct export *served, struct export **out);
/* The regions are mapped: makes room for them, and sets their bases behind those that are served.
 */
int export_growth_reserve(struct export *served, const struct export *growth);
/* Can't fail. The growth has no regions any more. */
void export_growth_take(struct export *served, struct export *growth);

#endif
