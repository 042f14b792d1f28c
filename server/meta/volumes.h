/* volumes.h - the exports of an open store: their records in it, and what memory has of each.
 *
 * OWNERSHIP  struct meta owns its volumes. Each stays where it is in memory until the store closes.
 * THREADS    The metadata thread.
 * ERRORS     0 or -errno, of the store or of memory.
 */
#ifndef RMEMFS_SERVER_META_VOLUMES_H
#define RMEMFS_SERVER_META_VOLUMES_H

#include "server/meta/meta_internal.h"

/* Appends an empty one. */
int volumes_add(struct meta *m);
/* Frees all that it has, and empties it. */
void volumes_close(struct volume *v);

/* Within a transaction: */
/* Fills *v with what the record of an export says. */
int volumes_decode(
	struct meta *m, struct store_key key, const struct store_val *val, struct volume *v);
/* The export's stored record. -ENOENT: none, and *id is one that no other export has. */
int volumes_find(struct meta *m, const char *name, struct volume *out, uint16_t *id);
/* A new export, with its root. */
int volumes_make(struct meta *m, struct volume *v, uint16_t id, const struct meta_export *e);
/* v has its stored shape; regions from first on are new to the store. */
int volumes_load(struct meta *m, struct volume *v, const struct meta_export *e, uint32_t first);

#endif
