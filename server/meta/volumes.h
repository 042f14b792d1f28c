/* volumes.h - the exports of an open store: their records in it, and what memory has of each.
 *
 * OWNERSHIP  struct meta owns its volumes. Each stays where it is in memory until the store closes.
 * One that is closed before is empty, and its place may be used again. THREADS    The metadata
 * thread. ERRORS     0 or -errno, of the store or of memory.
 */
#ifndef RMEMFS_SERVER_META_VOLUMES_H
#define RMEMFS_SERVER_META_VOLUMES_H

#include "server/meta/meta_internal.h"
#include "server/space/space_growth.h"

/* Appends an empty one. */
int volumes_add(struct meta *m);
/* Frees all that it has, and empties it. */
void volumes_close(struct volume *v);

/* Whether a record is of a removed export, see removal.h: it has a name that no export can have. */
static inline bool volumes_is_removed(const struct volume *v)
{
	return v->name[0] == '.';
}

/* Within a transaction: */
/* Fills *v with what the record of an export says. */
int volumes_decode(
	struct meta *m, struct store_key key, const struct store_val *val, struct volume *v);
/* The record at or after *id, of an export or of a removed one; *id, at first 1, becomes the next.
 * -ENOENT: there is none. */
int volumes_next(struct meta *m, uint64_t *id, struct volume *v);
/* The export's stored record. -ENOENT: none, and *id is one that no other export has, a removed
 * one neither; 0: all are in use. */
int volumes_find(struct meta *m, const char *name, struct volume *out, uint16_t *id);
/* A new export, with its root. No other inode has a number that a removed export's may have. */
int volumes_make(struct meta *m, struct volume *v, uint16_t id, const struct meta_export *e);
/* v has its stored shape; regions from first on are new to the store. */
int volumes_load(struct meta *m, struct volume *v, const struct meta_export *e, uint32_t first);

/* More regions for an export that is open, while no snapshot of it is taken:
 *
 *     volumes_growth_prepare
 *     -> [transaction] volumes_growth_store -> commit -> volumes_growth_apply
 *
 * volumes_growth_cancel() stands in the place of any later step.
 */
struct volume_growth {
	struct space_growth space;
	void **bases;
	int64_t store_pages; /* before the transaction */
};
/* e: the export as it is to be, with the bases of all its regions. -EINVAL: it can't be so. */
int volumes_growth_prepare(
	const struct volume *v, const struct meta_export *e, struct volume_growth *growth);
int volumes_growth_store(struct meta *m, struct volume *v, struct volume_growth *growth);
void volumes_growth_apply(struct volume *v, struct volume_growth *growth);
/* After the transaction was aborted, or none was begun. */
void volumes_growth_cancel(struct volume *v, struct volume_growth *growth);

#endif
