/* resize.h - the sizes that an export can change to.
 *
 * An export gains or loses whole regions at its end. No region ever changes its length, since
 * sessions have it mapped. If the last region is smaller than the others, the export can lose it,
 * and can grow only after that.
 *
 * THREADS  Any: pure functions. Sizes are bytes; region: the size of each region but the last.
 */
#ifndef RMEMFS_SERVER_BASE_RESIZE_H
#define RMEMFS_SERVER_BASE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool resize_is_possible(uint64_t have, uint64_t want, uint64_t region);
/* After a request for an impossible size: "it can have 64MiB or 96MiB, ..." */
void resize_choices(uint64_t have, uint64_t want, uint64_t region, char *buf, size_t len);

#endif
