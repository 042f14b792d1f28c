/* quota.h - how much of an export each user and each group has, and may have.
 *
 * A file's pages and the inode itself count for its owner and for its group, as long as they are in
 * its record. Pages that wait for the reaper or the scrubber are nobody's. An unlinked file that is
 * kept open still counts for its owner.
 *
 * Clients fill files without asking. So they reserve pages before they accept data. Reserved pages
 * count as used for all others, and become usage as they are committed. So a COMMIT is never
 * refused for a quota. A COMMIT without a reservation (the limits are younger than the data) may go
 * beyond the limit; then nothing more is accepted.
 *
 * Usage is kept for exports that have a limit for somebody, and only there: others pay nothing for
 * it. Where limits are new to an export its inodes are counted once, at start.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed, but for -EDQUOT where said.
 */
#ifndef RMEMFS_SERVER_RECORD_QUOTA_H
#define RMEMFS_SERVER_RECORD_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "server/record/quota_limit.h"
#include "server/record/volume.h"

/* How much an inode counts, and for which user and group. */
struct quota_share {
	uint32_t uid, gid;
	uint64_t npages, inodes;
};

struct quota_usage {
	uint64_t npages, inodes;
	uint64_t held; /* pages reserved by sessions */
};

/* Sets the volume's limits. If there are any its usage is counted, unless it was kept; else it is
 * forgotten. */
int quota_open(struct volume *v, const struct quota_limit *limits, unsigned n);
void quota_close(struct volume *v);

/* Other limits for a volume that has some. First they are made, so that quota_replace() can't fail;
 * quota_discard() is for those that come to nothing. -EOPNOTSUPP: the volume has no limits yet, or
 * is to have none any more. For that its usage must be counted or forgotten: see quota_open(). *out
 * is NULL if it has none and is to have none. */
int quota_prepare(
	const struct volume *v, const struct quota_limit *limits, unsigned n, struct quotas **out);
void quota_replace(struct volume *v, struct quotas *quotas);
void quota_discard(struct quotas *quotas);

static inline bool quota_on(const struct volume *v)
{
	return v->quotas;
}

/* -EDQUOT: the limits don't let an inode that counts as `from` count as `to`. */
int quota_check(struct volume *v, const struct quota_share *from, const struct quota_share *to);

/* How many more pages an inode may get. counted: as its record counts; npages: its pages by now. */
int quota_left(
	struct volume *v, const struct quota_share *counted, uint64_t npages, uint64_t *left);

/* Counts an inode as `to` that counted as `from`. inode.c calls this for each record that it
 * writes; no other caller has to. */
int quota_charge(struct volume *v, const struct quota_share *from, const struct quota_share *to);

/* ---- reservations ---------------------------------------------------------------------------- */

/* Reserves up to want pages. *got may be QUOTA_UNLIMITED: then nothing was reserved. -EDQUOT: there
 * is no page left. */
int quota_reserve(struct volume *v, uint64_t session, enum rpc_quota_kind kind, uint32_t id,
	uint64_t want, uint64_t *got);

/* Gives back npages, or all that is reserved if that is less. */
int quota_give_back(
	struct volume *v, uint64_t session, enum rpc_quota_kind kind, uint32_t id, uint64_t npages);

/* The session puts pages into a file of this owner: takes them off its reservations, as far as
 * these go. */
int quota_use(struct volume *v, uint64_t session, uint32_t uid, uint32_t gid, uint64_t npages);

/* Gives back the session's reservations for at most max owners. */
int quota_end_session(struct volume *v, uint64_t session, unsigned max, bool *done);

/* Whether the store has the export's usage; limits that come and go may change it at each start. */
int quota_is_kept(struct volume *v, bool *kept);

/* ---- for status and checks ------------------------------------------------------------------- */

/* Calls fn for each owner that has a limit or any usage, and for the limits of everybody else. */
struct quota_entry {
	struct quota_limit limit;
	struct quota_usage usage;
};
int quota_each(struct volume *v, void (*fn)(const struct quota_entry *entry, void *arg), void *arg);

/* The next owner's stored usage, from *id on; advances it. -ENOENT: no more. */
int quota_next(struct volume *v, enum rpc_quota_kind kind, uint64_t *id, struct quota_usage *usage);

/* A stored reservation. */
struct quota_held {
	uint64_t session;
	enum rpc_quota_kind kind; /* 0: it is of another export */
	uint32_t id;
	uint64_t npages;
};

/* Decode stored records. *kind 0: the record says only that usage is kept. */
int quota_decode(struct volume *v, struct store_key key, const struct store_val *val,
	enum rpc_quota_kind *kind, uint32_t *id, struct quota_usage *usage);
int quota_decode_held(struct volume *v, struct store_key key, const struct store_val *val,
	struct quota_held *held);

#endif
