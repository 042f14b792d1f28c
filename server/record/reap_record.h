/* reap_record.h - the records of what the reaper has to free.
 *
 * A record says: the extents of this inode at and beyond page `cut` are in no file any more. They
 * stay in the table of extents until they have been freed.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_REAP_RECORD_H
#define RMEMFS_SERVER_RECORD_REAP_RECORD_H

#include <stdint.h>

#include "server/record/volume.h"

struct reap_record {
	uint64_t cut;
	uint64_t npages; /* left to be freed */
};

/* The inode's record; one that is missing is damage. */
int reap_record_load(struct volume *v, uint64_t key, struct reap_record *out);
int reap_record_decode(
	struct volume *v, uint64_t key, const struct store_val *val, struct reap_record *out);
/* Adds or replaces, and keeps the volume's count. */
int reap_record_save(struct volume *v, uint64_t key, const struct reap_record *record);
/* Replaces, and leaves the counts to the caller. */
int reap_record_put(struct volume *v, uint64_t key, const struct reap_record *record);

#endif
