/* growths.h - served exports that become larger.
 *
 * An export grows when its configuration is read with another size: by a reload while it is served,
 * or by a start (meta_open()). Live, it gains whole regions at its end:
 *
 *     growths_plan -> the thread of new_exports.h makes the regions -> growths_check, _reserve
 *     -> the store's transaction -> growths_take
 *
 * The point of no return is that transaction. A server that is killed before it leaves region files
 * that the store does not know. The next start, with the larger size, takes them as dirty, or with
 * the former one removes them.
 *
 * No client is told. The pages of new regions are granted, and are in files, from the transaction
 * on. A channel that has no keys to a region yet asks for them when it meets an extent there
 * (daemon/remote/region_table.c). REGIONS makes keys to all regions that the export has then. So
 * growths_check() asks whether the devices have keys for the channels that there are.
 *
 * THREADS    The metadata thread.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_SERVER_SERVE_GROWTHS_H
#define RMEMFS_SERVER_SERVE_GROWTHS_H

#include "server/serve/changes.h"
#include "server/serve/new_exports.h"

/* The configuration has another size than the export. Plans its growth, or refuses: -EBUSY: it
 * would be smaller; a snapshot of it is taken. -EINVAL: not by whole regions; -EIO: it has lost
 * memory. */
int growths_plan(struct new_exports *new, struct export *export, const struct export_config *config,
	char *why, size_t whylen);
/* Checks what may have changed since: -EBUSY: a snapshot; -ENOSPC: a device has too few keys. */
int growths_check(const struct new_exports *new, char *why, size_t whylen);
/* -ENOMEM. */
int growths_reserve(const struct new_exports *new);
/* exports: by index. Describes those that grow as they are to be. Their regions are mapped. */
void growths_describe(const struct new_exports *new, struct meta_export *exports);
/* The store has the regions: so has the server. Tells of each. */
void growths_take(struct server *s, struct new_exports *new, struct changes *changes);

#endif
