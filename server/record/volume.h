/* volume.h - an export as the metadata core has it: its pages, its counts, where it is mapped.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_RECORD_VOLUME_H
#define RMEMFS_SERVER_RECORD_VOLUME_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/types.h"
#include "server/record/holders.h"
#include "server/base/retry.h"
#include "server/space/space.h"
#include "server/store/store.h"

struct quotas;

/* An inode's key in the store has the export's id above these bits, and the inode's number in
 * them. */
enum { INO_BITS = 48 };

struct protect;

/* Records and locks of the sessions of a shared export; see lease.h and lock.h. */
struct lease_counts {
	uint64_t records, layouts, shared, exclusive, pins;
	uint64_t locks;
};

struct volume_counts {
	uint64_t next_ino;
	uint64_t inodes;     /* but for dead ones */
	uint64_t reap_files; /* left to the reaper */
	uint64_t reap_pages; /* theirs: of no visible file any more, but not dirty yet */
	struct lease_counts leases;
	int64_t store_pages; /* of the store; see meta/share.h */
};

/* The pages of the store that an export may have; growth and most are UINT64_MAX if it is not
 * limited. See meta/share.h. */
struct volume_share {
	uint64_t pages;   /* in all */
	uint64_t growth;  /* up to here anything can be made */
	uint64_t most;    /* up to here what is needed to give back */
	uint64_t reserve; /* between the two; see share_reserve() */
};

struct volume {
	struct store *store;
	char name[EXPORT_NAME_MAX + 1];
	uint16_t id; /* in the store; from 1 on, no other export's records have it. 0: no export */
	uint32_t generation;
	void **bases;            /* [space.nregions] */
	const atomic_bool *lost; /* see volume_is_lost(); NULL: never */
	struct space space;
	struct protect *protect; /* asked before a page of a file is changed; see protect.h */
	struct volume_counts now, saved;
	struct holders holders; /* the same counts for each session */
	unsigned lock_waits;    /* see meta/lock_waits.h */
	struct volume_share share;
	struct quotas *quotas; /* NULL: nobody is limited */
	uint64_t max_inodes;   /* UINT64_MAX: as many as the store has room for */

	/* The reaper goes on from this key, past files that it failed with. When it has come round
	 * to them again it rests. */
	uint64_t reap_from;
	struct retry reap_retry;
};

/* A part of the export's memory is lost, see server/memory/region_loss.h. Bytes that the server
 * reads there may be zeros. Any thread may set it; it stays. */
static inline bool volume_is_lost(const struct volume *v)
{
	return v->lost && atomic_load_explicit(v->lost, memory_order_relaxed);
}

/* Until the batch ends or another export is charged, changes of the store count to this one. */
static inline void volume_charge(struct volume *v)
{
	store_charge(v->store, &v->now.store_pages);
}

static inline uint64_t inode_key(const struct volume *v, uint64_t ino)
{
	return (uint64_t)v->id << INO_BITS | ino;
}

static inline uint64_t ino_of_key(uint64_t key)
{
	return key & ((UINT64_C(1) << INO_BITS) - 1);
}

#endif
