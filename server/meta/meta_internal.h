/* meta_internal.h - the struct that all files of the metadata core share, and their functions for each
 * other. server/namespace and server/check use it, too.
 *
 *     core.c             room in the store, the records of the superblock and the exports
 *     session_records.c  sessions and stored replies
 *     reclaim.c          reaper, ended sessions, scrubber
 *     meta.c             batches
 *     shrink.c           exports that become smaller
 *     open.c             opens the store
 *
 * What a batch changes in memory is here, in struct volume and in struct space; each has the value
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
	uint64_t leases_ended; /* records of ended sessions that went, in this run */
	unsigned nending;      /* ended sessions of our exports that still have something */
};

struct meta {
	struct store *store;
	struct scrub *scrub;
	uint8_t store_id[STORE_ID_BYTES];
	struct dirent_hash hash;
	bool is_new;
	bool inspected;         /* see meta_inspect() */
	struct volume *volumes; /* in the order of the configuration */
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
	struct retry scrub_retry, drain_retry;
	uint64_t full_at;    /* store_version() that reclaiming found no room in; 0: none */
	unsigned full_tries; /* since it had some */

	uint64_t ending_session; /* how far the grants of an ended session have been looked for */
	uint64_t ending_position;
	struct store_key ending_lease; /* the same of its leases */
	struct store_key ending_lock;  /* and of its locks */
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

/* Every granted page may become an extent of its own, and COMMIT must always be possible: some
 * hundred bytes of records each are kept for that. */
enum { PAGES_PER_STORE_PAGE = 32 };

/* core.c */
/* See store_room(). grows: the operation must leave the reserve alone. */
int meta_room(struct meta *m, uint64_t npages, bool grows);
/* Once it was refused what grows: whether it would not be, had none of the volume's pages been
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
/* v is the only volume that is open, with all its regions, nothing runs and no transaction is open.
 * Leaves it with nregions in the store; v can only be closed. -EINVAL: more than that is in use;
 * -EBUSY: a session has pages in what is to go: nothing has changed. */
int meta_shrink(struct meta *m, struct volume *v, uint32_t nregions, char *why, size_t whylen);

/* Whether it would refuse, of a store that is only read, before it has begun to give back what
 * nobody has any more. */
int meta_shrink_look(struct meta *m, struct volume *v, uint32_t nregions, char *why, size_t whylen);

/* session_records.c */
/* For checks: a session as it is stored, of whatever export and ended or not. */
int meta_session_decode(struct meta *m, struct store_key key, const struct store_val *val,
	struct meta_session *session, uint16_t *export_id);
/* Whether one that can be decoded has ended. */
bool meta_session_has_ended(const struct store_val *val);
int meta_count_ended(struct meta *m, unsigned *n);
/* One bounded step for one ended session. */
int meta_drain_session(struct meta *m, bool *more);

/* reclaim.c */
bool meta_has_reclaim(const struct meta *m);
/* Whether that part of it is to be waited for: it has not just failed, and there is room for it, or
 * may be since something was changed. */
bool meta_may_reclaim(const struct meta *m, const struct retry *retry);

#endif
