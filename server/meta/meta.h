/* meta.h - the metadata core: batches on the store and the space of every export.
 *
 * The metadata thread collects the requests that are pending, opens one batch, executes them, and
 * sends the replies only after the batch has been committed:
 *
 *     meta_begin
 *       meta_reply_find: a stored reply; else execute_request, and meta_reply_store for changes
 *       meta_session_new, meta_session_end, meta_reclaim ...
 *     meta_commit, or meta_abort: nothing of the batch has happened, in memory neither
 *
 * After an error of the store the batch is aborted and its requests are run again one by one, so
 * that one request's failure is its own.
 *
 * Every page of an export is in one state: free (zero) -> granted to a session -> in a file ->
 * dirty (nobody can reach it; to be scrubbed) -> free. States but "in a file" are stored as runs.
 * The scrubber's thread zeroes dirty pages. The reaper deletes long files piece by piece.
 *
 * OWNERSHIP  struct meta owns the LMDB environment, the space tables and the scrubber's thread. The
 *            regions' mappings are the caller's and outlive it.
 * THREADS    The metadata thread only. The scrubber touches dirty pages, nothing else.
 * ERRORS     0 or -errno. why gets a line for people.
 */
#ifndef RMEMFS_SERVER_META_META_H
#define RMEMFS_SERVER_META_META_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "common/rpc/squash.h"
#include "common/base/types.h"
#include "server/record/quota_limit.h"

struct kept_values;
struct meta;

enum { META_STORE_ID_BYTES = 16 };

struct meta_export {
	const char *name;
	uint64_t npages; /* of data */
	uint32_t nregions;
	uint64_t region_pages; /* of each region but the last, which has the rest */
	/* Pages of the regions whose files are there, also of those to go: from the first on,
	 * without a gap, all whole but the last. Less than npages: npages counts. */
	uint64_t mapped_pages;
	void *const *bases;      /* [of all these regions] where each is mapped */
	const char *missing;     /* the first region's file that this start had to make, or NULL */
	uint32_t missing_region; /* its index */
	const char *holed;       /* the first region's file that had holes, or NULL */
	uint32_t holed_region;   /* its index */
	const bool *used; /* [nregions] the file was there before, with any bytes; NULL: none */
	const atomic_bool *lost;          /* see volume_is_lost(); NULL: never */
	uint64_t max_inodes;              /* 0: as many as the store has room for */
	uint64_t metadata_bytes;          /* its share of the store; 0: all of it */
	const struct quota_limit *quotas; /* [nquotas] */
	unsigned nquotas;
};

struct meta_config {
	const char *dir;      /* of the store: on tmpfs, exists */
	uint64_t store_bytes; /* LMDB's map size, allocated whole at open */
	const struct meta_export *exports;
	unsigned nexports;
};

/* Opens or makes the store. An export that is not in the store is made. One that is larger than the
 * stored one by whole regions has grown. A smaller one shrinks by whole regions, and then only the
 * first nregions are used. -EINVAL: more is in use; -EBUSY: a session has pages in the regions to
 * go. Another size is refused (-EINVAL). An export that is stored but not configured is kept
 * untouched. -ENOSPC: the memory is not there (needed and free named); -EBADMSG: the store is
 * damaged, or a region of a stored export is missing; -EPROTONOSUPPORT: another version made it.
 * After an error nothing has changed, but that exports may have shrunk. */
int meta_open(const struct meta_config *config, struct meta **out, char *why, size_t whylen);

/* An export as meta_open() would find it. */
struct meta_look {
	bool stored;
	uint64_t npages, used; /* of the stored one: in all, and in files */
	bool has_files; /* some export of the store has, or a session has pages of this one */
	int err;        /* it would be refused with this error: */
	char why[512];
};
/* Fills looks[config->nexports] and changes nothing. The exports' bases are not used. -ENOENT:
 * there is no store yet; else errors as meta_open()'s of the store itself, with why. */
int meta_look(const struct meta_config *config, struct meta_look *looks,
	uint8_t store_id[META_STORE_ID_BYTES], char *why, size_t whylen);
/* Whether a store that nobody has open has an export of that name. It changes nothing. Errors as
 * meta_open()'s of the store itself, with why; a store that is not there has none. */
int meta_stored(const char *dir, const char *name, bool *stored, char *why, size_t whylen);
void meta_close(struct meta *m);

/* ---- another configuration, while the store is open ---- */

/* Indexes that exports have had. */
unsigned meta_nexports(const struct meta *m);
/* Whether the store has an export of that name. */
int meta_knows(struct meta *m, const char *name, bool *knows);
/* Makes ready that the store has so many bytes, see store_grow_prepare(): any thread. */
struct store_growth;
int meta_grow_prepare(struct meta *m, uint64_t store_bytes, struct store_growth *growth, char *why,
	size_t whylen);
void meta_grow_cancel(struct meta *m, struct store_growth *growth);
/* Whether nothing that is open stands in the way of meta_reconfigure(), as far as can be told
 * before there is memory: its -EBUSY and -EOPNOTSUPP. config->exports: as
 * meta_reconfigure() gets them, without those that are new, or with them. */
int meta_may_reconfigure(
	struct meta *m, const struct meta_config *config, char *why, size_t whylen);
/* Makes the store larger, adds, removes and enlarges exports, and sets the limits and shares of all
 * anew; outside batches. config->exports goes by export_index:
 *
 *     open here, named     stays: limits and shares are set. With more npages than it has, and
 *                          whole regions, it grows: its bases are those of all regions, and the new
 *                          ones are zero. No snapshot of it is taken
 *     open here, no name   is removed (removal.h), and nobody may use this index any more
 *     not open, named      is new to the store, and is added
 *     not open, no name    stays empty
 *
 * All that is added, removed and enlarged is one transaction. The regions of an export that was
 * removed are not touched any more, and are the caller's. -EBUSY: a snapshot reads the store, or a
 * session of an export that is to go has not ended. -EOPNOTSUPP: see quota_prepare(). -ENOSPC: the
 * store has no room for the records. -EINVAL: it can't grow so. -ENOTRECOVERABLE: the process has
 * lost the store, and must end at once.
 */
int meta_reconfigure(struct meta *m, const struct meta_config *config, struct store_growth *growth,
	char *why, size_t whylen);

const uint8_t *meta_store_id(const struct meta *m);
/* Whether meta_open() made the store. */
bool meta_is_new(const struct meta *m);

/* ---- batches --------------------------------------------------------------------------------- */

int meta_begin(struct meta *m);
int meta_commit(struct meta *m);
void meta_abort(struct meta *m);

/* The session that a request runs for, and questions that upper folders answer. */
struct meta_ctx {
	unsigned export_index; /* into meta_config.exports */
	uint64_t session;
	bool read_only; /* changes of files and names, and requests that prepare them: -EROFS */
	uint32_t flags; /* of the stored session */
	bool lonely;    /* no other session is at the export */
	bool shared;    /* others may write, too: use of an inode needs a lease */
	struct squash squash; /* of the session's users, see namespace/squash_request.h */
	uint32_t lease_limit; /* leases that the session may keep */
	uint32_t lock_limit;  /* locks that it may have */
	int64_t now;          /* ns, the server's clock: one value a batch */
	/* wanted: the leases of an inode (lease_bit()) that earlier requests of others wait for.
	 * restless: whether a lease that is not needed had better not be given, since it would soon
	 * be recalled. NULL: none and no. */
	uint8_t (*wanted)(const void *asker, uint64_t ino);
	bool (*restless)(const void *asker, uint64_t ino);
	/* How many sessions write the export, or are about to: each is granted its share, and none
	 * more than half of what is free. NULL, or 0: the session has the export for itself. */
	unsigned (*sharers)(const void *asker);
	/* Whether dirty pages that must not be reused yet will be free in time. NULL: they will. */
	bool (*dirty_comes)(const void *asker);
	const void *asker;
	struct kept_values *kept; /* see kept_values.h; NULL: it can't keep values */
};

/* The last request that gave OUTCOME_WAIT waits until no other session has a lease of the inode
 * that conflicts with this type. */
struct meta_wait {
	uint64_t ino;
	uint8_t type; /* enum lease_type */
};

struct meta_wait meta_wait(const struct meta *m);
/* Whether the last request, which was refused with -ENOSPC or parked, lacked pages, or store pages
 * that are kept for granted ones. If so, it may have pages that others were granted and do not
 * use. */
bool meta_lacks_pages(const struct meta *m);

/* Calls fn for each lease record of an inode; outside batches. */
struct lease_record;
int meta_leases(struct meta *m, unsigned export_index, uint64_t ino,
	void (*fn)(const struct lease_record *record, void *arg), void *arg);
/* The same for its locks, and for the waits for one. */
struct lock;
struct lock_waiter;
struct lock_waited;
int meta_locks(struct meta *m, unsigned export_index, uint64_t ino,
	bool (*fn)(const struct lock *lock, void *arg), void *arg);
void meta_lock_waits(const struct meta *m, unsigned export_index, uint64_t ino,
	void (*fn)(const struct lock_waiter *wait, void *arg), void *arg);
void meta_locks_waited(const struct meta *m, unsigned export_index,
	void (*fn)(const struct lock_waited *waited, void *arg), void *arg);
/* A session's counts, as they were last committed. */
struct holder_counts meta_holder(const struct meta *m, unsigned export_index, uint64_t session);
/* Its granted pages; within a batch, as the batch has left them. */
struct space_grantee meta_granted(const struct meta *m, unsigned export_index, uint64_t session);
/* Grows with each lease record that goes because its session has ended. */
uint64_t meta_leases_ended(const struct meta *m);

/* The session whose lock was in the way of a LOCK or GETLK that ran since the last call of this. 0:
 * none. */
uint64_t meta_lock_holder(struct meta *m);
/* The waits for locks (lock_waits.h); outside batches. Whether meta_locks_look() has something to
 * do now; else *next_ms is when to ask again, or INT64_MAX. */
bool meta_locks_due(const struct meta *m, int64_t *next_ms);
/* Finds waits that may come now, and calls tell for the session of each. */
int meta_locks_look(struct meta *m, void (*tell)(uint64_t session, void *arg), void *arg);
/* Calls fn for each wait of the session that has been told to come and has not, until fn returns
 * false: then the others are first the next time. False: fn was never called for one of them. */
bool meta_locks_told(struct meta *m, uint64_t session,
	bool (*fn)(uint64_t ino, uint64_t number, void *arg), void *arg);
void meta_locks_untold(struct meta *m, uint64_t session);
/* Whether another session waits for locks of this one. */
int meta_locks_wanted(struct meta *m, uint64_t session, bool *wanted);
unsigned meta_locks_waiting(const struct meta *m);

/* The root's attributes, and totals for ATTACH and status. */
struct meta_usage {
	uint64_t npages, free_pages, granted_pages, dirty_pages;
	uint64_t inodes, max_inodes; /* UINT64_MAX: no limit */
	uint64_t store_bytes, store_used_bytes;
	uint64_t share_bytes, share_used_bytes;    /* the export's part of these */
	uint64_t share_left_bytes;                 /* that it can grow by, see share.h */
	uint64_t transactions;                     /* that changed the store, since it was made */
	unsigned offset_bits;                      /* directory offsets are below 1 << this */
	uint64_t layouts, shared, exclusive, pins; /* leases of sessions at a shared export */
	uint64_t locks;                            /* of these sessions */
	unsigned lock_waits;
};
/* Grows with each transaction that has changed the store. */
uint64_t meta_version(const struct meta *m);
int meta_root(struct meta *m, unsigned export_index, struct attr *attr);
void meta_usage(struct meta *m, unsigned export_index, struct meta_usage *usage);
/* Whether a user or group is limited: clients then reserve before they accept data. */
bool meta_has_quotas(const struct meta *m, unsigned export_index);
/* Calls fn for each owner that has a limit or any usage; outside batches. */
struct quota_entry;
int meta_quotas(struct meta *m, unsigned export_index,
	void (*fn)(const struct quota_entry *entry, void *arg), void *arg);

/* ---- stored replies -------------------------------------------------------------------------- */

/* The last stored reply of a slot: its sequence number and the encoded message, which stays valid
 * until the batch ends. -ENOENT: none. */
int meta_reply_find(struct meta *m, uint64_t session, unsigned slot, uint64_t *seq,
	const void **msg, size_t *len);
int meta_reply_store(
	struct meta *m, uint64_t session, unsigned slot, uint64_t seq, const void *msg, size_t len);

/* ---- sessions -------------------------------------------------------------------------------- */

/* Inode numbers that a session was lent (enum rpc_numbers), and which of them it has not used. */
struct lent_window {
	uint64_t first;
	uint64_t left; /* bit n: first + n */
};
enum { LENT_WINDOWS = 2 };

struct meta_session {
	uint64_t id; /* never 0, never used twice */
	uint32_t export_index;
	uint32_t flags; /* of ATTACH, and SESSION_FORGETS */
	uint8_t owner[OWNER_BYTES];
	uint64_t instance;
	uint16_t nchannels;
	/* The client of the configuration that the session belongs to; "local": root, or the
	 * server's own user, over shm. Empty: the record is of an earlier release, and nobody's. */
	char holder[HOLDER_NAME_MAX + 1];
	uint8_t token[TOKEN_BYTES]; /* random; each later ATTACH has to show it */
	uint16_t wire_version;      /* that its channels speak, and its stored replies have */
	struct lent_window lent[LENT_WINDOWS];
	char client[128]; /* for people; ATTACH's, made printable */
};

/* A flag that no message has: CONVERT_SHARES was executed, and CONVERT_FORGOT was not yet. */
enum { SESSION_FORGETS = 1 << 16 };

/* Gives the session a new id and stores it; within a batch. */
int meta_session_new(struct meta *m, struct meta_session *session);
/* Stores other flags for a session; within a batch. */
int meta_session_set_flags(struct meta *m, uint64_t session, uint32_t flags);
/* From now on the session speaks another version of the protocol: its stored replies are coded
 * anew. Within a batch. */
int meta_session_set_version(struct meta *m, uint64_t session, uint16_t version);
/* Another process has the session: what people read of its client. Within a batch. */
int meta_session_set_client(struct meta *m, uint64_t session, const char *client);
/* Calls fn for every stored session (configured exports only). Outside batches, at start. */
int meta_session_each(
	struct meta *m, void (*fn)(const struct meta_session *session, void *arg), void *arg);
/* Forgets the session: its grants become dirty, the unlinked inodes it kept are freed (by the
 * reaper), its replies dropped. Call it when no channel of it can touch memory any more. */
int meta_session_end(struct meta *m, unsigned export_index, uint64_t session);
/* The same for a session that has committed all it changed: the times of files that it had leased
 * stay as they are. */
int meta_session_leave(struct meta *m, unsigned export_index, uint64_t session);

/* ---- reaping and scrubbing ------------------------------------------------------------------- */

/* Readable when there is something to reclaim: the scrubber has finished a job, a committed batch
 * has left work for it or for the reaper. Call meta_reclaim then. */
int meta_scrub_fd(const struct meta *m);

/* Within a batch: frees a bounded number of extents of reaped files, takes in scrubbed pages, gives
 * the scrubber more. *more: call again soon (reaping is left). *freed: pages that became free, so
 * that parked requests are worth another try. A part that fails, for a damaged record, rests for a
 * time that grows to a minute. The other parts go on, and nothing parks for it. -ENOSPC: the store
 * has no room even for this. Then nothing parks, and nothing asks for another try, until a batch
 * has changed something. */
int meta_reclaim(struct meta *m, bool *more, uint64_t *freed);

/* After a restart, pages that were not free are not reused (scrubbed) before this was called for
 * the export. Call it when all its stored sessions have come back or ended, and one lease time has
 * passed: connections of a dying process may outlive it. Exports that meta_open() made need no
 * call. */
void meta_allow_reuse(struct meta *m, unsigned export_index);

#endif
