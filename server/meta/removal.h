/* removal.h - an export leaves the store for good, with all its records.
 *
 *     record "web" --one transaction--> record ".web" --steps of reclaiming--> record ".", or none
 *
 * The transaction gives the export's record a name that no export can have. From then on the export
 * is gone: it is neither served nor found, and one of the same name can be made. A killed server
 * goes on with the steps at its next start. They delete the records of the export's ended sessions,
 * then its own, a bounded number at a time. A record with a removed name keeps next_ino, below
 * which no later export has an inode but the root: a client that had the old export never takes a
 * new file for an old one. So of all records that are done, the one with the highest next_ino
 * stays. The name of a removed record tells an earlier release that it is of an export that is not
 * configured, which it leaves alone.
 *
 * THREADS  The metadata thread.
 * ERRORS   0 or -errno, of the store.
 */
#ifndef RMEMFS_SERVER_META_REMOVAL_H
#define RMEMFS_SERVER_META_REMOVAL_H

#include "server/meta/meta_internal.h"

/* Within a transaction, outside batches: */
/* Gives the record its removed name. *ended: ended sessions of it that were to be drained. -EBUSY:
 * a session of it has not ended. */
int removal_store(struct meta *m, const struct volume *v, unsigned *ended);
/* Removed exports that still have records. */
int removal_count(struct meta *m, unsigned *n);

/* After the transaction was committed: memory forgets the export. The scrubber does not touch it
 * any more; the call waits for the scrubber's current job. The volume stays where it is, empty. */
void removal_forget(struct meta *m, unsigned export_index, unsigned ended);

/* Within a batch that has asked for room: deletes up to nrecords of one removed export. *more: call
 * again soon. */
int removal_step(struct meta *m, unsigned nrecords, bool *more);

#endif
