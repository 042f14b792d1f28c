/* holders.h - how many leases, pins and locks each session has of an export's files.
 *
 * Each change of a record changes them, so that no reader has to walk the records. If a batch is
 * aborted its changes are taken back.
 *
 * OWNERSHIP  Part of struct volume; holders_fini() frees what it holds.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_RECORD_HOLDERS_H
#define RMEMFS_SERVER_RECORD_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

struct holder_counts {
	uint64_t layouts, shared, exclusive; /* leases */
	uint64_t pins, locks;
};

enum { HOLDER_BUCKETS = 64 };
struct holder;
struct holders {
	struct holder *buckets[HOLDER_BUCKETS];
	struct holder *changed; /* by the batch */
};

void holders_fini(struct holders *h);

/* Within a batch: the session's counts, to be changed. NULL: no memory. */
struct holder_counts *holders_change(struct holders *h, uint64_t session);
void holders_commit(struct holders *h);
void holders_abort(struct holders *h);

/* Zeros: the session has nothing. */
struct holder_counts holders_of(const struct holders *h, uint64_t session);

#endif
