/* runmap.h - a set of a region's pages that finds runs of them. Above a bitmap stands a tree that
 * knows of every stretch its longest run and those at its two ends.
 *
 * runmap_new() takes all memory (an eighth of a byte a page and a little more), so that no change
 * can fail. The same set is always the same state, so that a change is undone by its opposite.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SPACE_RUNMAP_H
#define RMEMFS_SERVER_SPACE_RUNMAP_H

#include <stdint.h>

struct runmap;

/* The set is empty. NULL: no memory. */
struct runmap *runmap_new(uint32_t npages);
void runmap_delete(struct runmap *map);

/* None (add) or all (remove) of the pages must be in the set before. */
void runmap_add(struct runmap *map, uint32_t page, uint32_t npages);
void runmap_remove(struct runmap *map, uint32_t page, uint32_t npages);

uint32_t runmap_longest(const struct runmap *map);
/* The first page of the first run of at least npages; there must be one (runmap_longest). */
uint32_t runmap_find(const struct runmap *map, uint32_t npages);

#endif
