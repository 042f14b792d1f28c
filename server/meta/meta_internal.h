/* meta_internal.h - the struct that all files of the metadata core share, and their functions for
 * each other. server/namespace and server/check use it, too.
 *
 *     core.c             room in the store, the records of the superblock and the exports
 *     share.c            the exports' shares of the store
 *     session_records.c  sessions and stored replies
 *     reclaim.c          reaper, ended sessions, scrubber
 *     meta.c             batches
 *     shrink.c           exports that become smaller
 *     removal.c          exports that were removed
 *     open.c             opens the store
 *
 * A batch changes memory here, in struct volume and in struct space. Each such value has the one
 * from before the batch beside it.
 */
#ifndef RMEMFS_SERVER_META_META_INTERNAL_H
#define RMEMFS_SERVER_META_META_INTERNAL_H

#include "server/record/dirent.h"
#include "server/meta/lock_waits.h"
#include "server/meta/meta.h"
#include "server/space/scrub.h"
#include "server/record/volume.h"

enum { STORE_ID_BYTES = META_STORE_ID_BYTES };

struct meta_counts {
	uint64_t next_session;
	uint64_t lease_number; /* the last one given out */
	uint64_t leases_ended; /* lease records of ended sessions that went, in this run */
	unsigned nending;      /* ended sessions of our exports that still have records */
	unsigned removed;      /* removed exports that still have records, see removal.h */
	int64_t removed_pages; /* the store's pages with these, as far as this run counts them */
};

struct meta {
	struct store *store;
	struct scrub *scrub;
	uint8_t store_id[STORE_ID_BYTES];
	struct dirent_hash hash;
	bool is_new;
	bool inspected; /* see meta_inspect() */
	/* [nvolumes], by export_index; each stays where it is. One whose id is 0 is empty: its
	 * export was removed, and the next one that is added may have its place. */
	struct volume **volumes;
	unsigned nvolumes;
	struct meta_counts now, saved;
	uint64_t reserve; /* store pages that only deletes and the like may take */

	/* Finished jobs whose pages are still dirty in the store; the batch took in nused of them.
	 */
	struct scrub_job done[SCRUB_JOBS];
	unsigned ndone, nused;
	/* Dirty runs that go to the scrubber once the batch is committed: before that they may
	 * still be in a file. */
	struct scrub_job todo[SCRUB_JOBS];
	unsigned ntodo;
	bool reclaiming; /* meta_reclaim ran in this batch */
	struct retry scrub_retry, drain_retry, removal_retry;
	bool removals_turn;  /* of reclaiming: removed exports and all else go by turns */
	uint64_t full_at;    /* store_version() at which reclaiming found no room; 0: none */
	unsigned full_tries; /* tries since it had room */

	uint64_t ending_session; /* the ended session that is drained, and how far its grants were
				  * sought */
	uint64_t ending_position;
	struct store_key ending_lease; /* how far its leases were sought */
	struct store_key ending_lock;  /* and its locks */
	struct meta_wait wait;         /* of the last request that waits */
	bool lacks_pages;              /* see meta_lacks_pages() */

	struct lock_waits lock_waits;
	uint64_t lock_holder; /* see meta_lock_holder() */
};

/* Store pages that an operation may touch: paths to some records and their splits. */
enum {
	ROOM_PAGES = 64,
	ROOM_PAGES_PER_EXTENT = 2,
	ROOM_PAGES_PER_LEASE = 2,
	ROOM_PAGES_PER_REAPED = 6,
};

/* Every granted page may become an extent of its own, and COMMIT must always be possible. So one
 * store page is kept for so many granted pages: some hundred bytes of records each. */
enum { PAGES_PER_STORE_PAGE = 32 };

/* core.c */
/* See store_room(). grows: the operation must leave the reserve alone. */
int meta_room(struct meta *m, uint64_t npages, bool grows);
/* After meta_room() allowed what the operation needs: is there so much more for growth? An estimate
 * that may be too low. */
bool meta_has_spare_room(const struct meta *m, uint64_t npages);
/* After meta_room() has refused growth: whether it would not, had none of the volume's pages been
 * granted. */
bool meta_has_room_but_for_grants(const struct meta *m, const struct volume *v, uint64_t npages);

/* Writes the superblock, or the record of an export. */
int meta_save_super(struct meta *m);
int meta_save_volume(struct meta *m, const struct volume *v);

/* open.c */
/* For checks: the store of a stopped server with all exports that it has, to be read only. Nothing
 * is loaded but the superblock and the exports' records (bases are NULL), and nothing is changed.
 * ERRORS as meta_open; -ENOENT: there is no store, or none that was ever written to. */
int meta_inspect(const char *dir, struct meta **out, char *why, size_t whylen);

/* shrink.c */
/* v must be the only volume that is open, with all its regions. Nothing runs, and no transaction is
 * open. Leaves the export with nregions in the store; then v can only be closed. -EINVAL: more than
 * that is in use; -EBUSY: a session has pages in the regions to go. Both have changed nothing. */
int meta_shrink(struct meta *m, struct volume *v, uint32_t nregions, char *why, size_t whylen);

/* Whether meta_shrink() would refuse. Only reads the store: files and sessions that are still to be
 * given back count as they are. */
int meta_shrink_look(struct meta *m, struct volume *v, uint32_t nregions, char *why, size_t whylen);

/* session_records.c */
/* For checks: a stored session, of any export, ended or not. */
int meta_session_decode(struct meta *m, struct store_key key, const struct store_val *val,
	struct meta_session *session, uint16_t *export_id);
/* Whether a session that can be decoded has ended. */
bool meta_session_has_ended(const struct store_val *val);
int meta_count_ended(struct meta *m, unsigned *n);
/* One bounded step for one ended session. */
int meta_drain_session(struct meta *m, bool *more);

/* reclaim.c */
bool meta_has_reclaim(const struct meta *m);
/* Whether a request may wait for this part of reclaiming. The part has not just failed. The store
 * has room for it, or has changed since it had none. */
bool meta_may_reclaim(const struct meta *m, const struct retry *retry);

#endif
