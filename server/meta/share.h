/* share.h - each export's share of the memory for metadata, so that one export's clients can't take
 * the records' room of all exports.
 *
 * The unit is pages of the store: what LMDB's trees take of them or give back while the server
 * changes records for an export counts to it (store_charge()). So thin pages count whole, and what
 * all exports have together is what the store has. All records count: inodes, names, extents,
 * attributes and their stages, locks, leases, runs of pages, quotas, sessions and stored replies.
 * The count is in memory only, changes with the batch, and each start counts anew. So a crash can't
 * spoil it, and a store of any version has it.
 *
 *     0 ...................... growth ........ most .... pages
 *       anything can be made   |   what gives  |   kept for what is of no export that is served:
 *                              |   back        |   the free list, pages on their way, others'
 * records
 *
 * The room from growth to most is the export's part of the store's reserve. Pages that are granted
 * count as their COMMIT's records, as they do in the store.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_META_SHARE_H
#define RMEMFS_SERVER_META_SHARE_H

#include "server/meta/meta_internal.h"

/* Counts what each export has, and sets its share; within the transaction that has loaded them. */
int share_open(struct meta *m, const struct meta_config *config);
/* Sets the shares again, with the counts as they are; config: of the volumes that m has;
 * empty ones are passed over. */
void share_set(struct meta *m, const struct meta_config *config);
/* Sets m->reserve by the store's size. */
void share_set_reserve(struct meta *m);
/* An export that has more than its share, by an earlier configuration or a snapshot, can make
 * nothing new, but give back: raises `most`, and logs it. */
void share_fit(struct volume *v);
/* For tests: counts anew. counts[m->nvolumes]; within a transaction. */
int share_count(struct meta *m, int64_t *counts);

/* Whether an operation of the export may touch npages pages: 0 or -ENOSPC. grows: it makes records
 * that stay. Others, which give back, are refused only where the export's part of the reserve is
 * used up. */
int share_room(const struct volume *v, uint64_t npages, bool grows);
/* After share_room() has refused growth: whether it would not, had none of the export's pages been
 * granted. */
bool share_has_room_but_for_grants(const struct volume *v, uint64_t npages);
/* The export's part of the store's reserve, and what is left of all parts. */
uint64_t share_reserve(const struct meta *m, const struct volume *v);
uint64_t share_reserves(const struct meta *m);
/* Pages that the export has. */
uint64_t share_used(const struct volume *v);
/* Pages that it can still grow by: of its share, and of the store that all exports have. */
uint64_t share_left(const struct meta *m, const struct volume *v);

#endif
