/* marker.h - an export as it was at one moment. It has the records, while the store goes on
 * changing. The pages that they name are protected from then on (protect.h).
 *
 * Left out are files without a name that sessions kept open at that moment, and extents that wait
 * for the reaper. Grants, sessions and replies are not part of it, either.
 *
 * OWNERSHIP  marker_new() takes the store's one view; marker_delete() gives it back.
 * THREADS    New and delete: the metadata thread, outside batches. The others: one other thread.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_MARKER_H
#define RMEMFS_SERVER_SNAPSHOT_MARKER_H

#include <stddef.h>
#include <stdint.h>

#include "server/record/dirent.h"
#include "server/meta/meta.h"
#include "server/store/store.h"

struct marker;
struct protect;

/* Facts about the export and its store at that moment. */
struct marker_facts {
	char name[EXPORT_NAME_MAX + 1];
	uint8_t store_id[META_STORE_ID_BYTES];
	struct dirent_hash hash; /* the cookies come from it */
	uint64_t npages, region_pages;
	uint64_t next_ino;
};

/* A record; its key lacks the export's id. */
struct marker_record {
	enum store_table table;
	uint64_t ino, lo;
	const void *data; /* valid until the next one */
	size_t len;
};

/* The tables of a marker, in its order; inodes come before all else. */
extern const enum store_table marker_tables[];
extern const unsigned marker_ntables;

/* aside_bytes, wake_fd: see protect_begin(). */
int marker_new(struct meta *m, unsigned export_index, uint64_t aside_bytes, int wake_fd,
	struct marker **out);
/* Also ends the protection of pages. */
void marker_delete(struct marker *mk);

const struct marker_facts *marker_facts(const struct marker *mk);
struct protect *marker_pages(const struct marker *mk);
/* A part of the export's memory is lost: what was taken of it may be zeros. Any thread. */
bool marker_memory_is_lost(const struct marker *mk);

/* -ENOENT: that was the last one. -ESTALE: the store was short of room, and the marker is gone;
 * -EBADMSG: the store is damaged. */
int marker_next(struct marker *mk, struct marker_record *rec);
/* No more records are needed: the store need not keep them. */
void marker_records_done(struct marker *mk);

#endif
