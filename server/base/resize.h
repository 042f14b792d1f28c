/* resize.h - which sizes an export can change to.
 *
 * By whole regions at its end: none ever changes its length, since sessions have it mapped. An
 * export that ends in a smaller region can lose that one, and can't grow before.
 *
 * THREADS  Any: pure functions. Sizes are bytes, region: of each but the last.
 */
#ifndef RMEMFS_SERVER_BASE_RESIZE_H
#define RMEMFS_SERVER_BASE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool resize_is_possible(uint64_t have, uint64_t want, uint64_t region);
/* For who asked for another one: "it can have 64MiB or 96MiB, ..." */
void resize_choices(uint64_t have, uint64_t want, uint64_t region, char *buf, size_t len);

#endif
