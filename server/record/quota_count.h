/* quota_count.h - counts the inodes and pages of each user and group, by a walk over all inodes of
 * an export.
 *
 * OWNERSHIP  quota_count() fills the caller's struct; quota_sums_fini() frees what it holds.
 * THREADS    The metadata thread, in a transaction.
 * ERRORS     -ENOMEM; the store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_QUOTA_COUNT_H
#define RMEMFS_SERVER_RECORD_QUOTA_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "server/record/quota.h"

struct quota_sum {
	uint32_t kind, id; /* kind 0: an unused element */
	struct quota_usage usage;
};

struct quota_sums {
	struct quota_sum *v; /* by hash */
	size_t n, room;
};

int quota_count(struct volume *v, struct quota_sums *sums);
/* Adds one inode. */
int quota_sums_add(struct quota_sums *sums, const struct quota_share *share);
void quota_sums_fini(struct quota_sums *sums);

/* The owner's sum, made if need be; NULL: no memory. */
struct quota_sum *quota_sum_of(struct quota_sums *sums, enum rpc_quota_kind kind, uint32_t id);

#endif
