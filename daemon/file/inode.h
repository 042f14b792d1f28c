/* inode.h - what this client knows of one file or directory, and the table of all of them.
 *
 * A client that may write has its export for itself. Clients that share an export either all only
 * read, or need a lease for what they know of a file (lease.h). So this knowledge is true while the
 * session or the lease lives. Attributes are answered locally, and a file's size and times are
 * newer here than at the server until they are committed (commit.h). On a sharing mount attributes
 * are true while they are `sure`. Else they are what the server told last, and the server is asked
 * again.
 *
 * OWNERSHIP  Counted. References are held by the kernel (while it has lookups of the inode, and so
 *            while it is open), requests on their way, the dirty list and a running commit. So are
 *            they by pages being dropped from the cache and a lease on its way back. Node ids are
 *            inode numbers, which are never used again, so a file handle with one stays valid.
 * THREADS    Fields belong to inode.lock, but for those that are said to be atomic. Two inodes are
 *            never locked at once, and inode_put() is not called with any of the locks below held.
 * LOCK ORDER a shard of the table > locks.circles > an inode > one of: grants, allowances, returns,
 *            the keeper of leases, locks.lock > one of: an inbox, a notifier's jobs, a session, a
 *            bucket of names. The other locks of a mount (releases, renewal, remount, freeze,
 *            expiries) are taken inside none of these, and have none but the last ones inside.
 */
#ifndef RMEMFS_DAEMON_FILE_INODE_H
#define RMEMFS_DAEMON_FILE_INODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/list.h"
#include "common/base/types.h"
#include "daemon/file/access_time.h"
#include "daemon/pages/quota_allowance.h"
#include "daemon/file/commit.h"
#include "daemon/file/extent_map.h"
#include "daemon/file/gate.h"
#include "daemon/pages/grants.h"
#include "daemon/file/dir_names.h"
#include "daemon/file/inode_path.h"
#include "daemon/record/record.h"

struct appends;
struct kernel_pages;
struct stale_pages;
struct fs;
struct inode_lease;
struct inode_locks;
struct kernel_owner;
struct rpc_entry_reply;
struct kernel_attr;
struct name_change;
struct unmade;

struct inode {
	struct list hash; /* under the shard's lock */
	uint64_t ino;
	struct fs *fs;
	uint32_t type;             /* S_IFMT bits; set once, before the kernel knows the inode */
	uint64_t refs;             /* atomic; the last one goes under the shard's lock */
	uint64_t nlookup;          /* atomic: the kernel's lookups; together one reference */
	unsigned nleftovers;       /* atomic: abandoned.h */
	struct record_inode *note; /* NULL: it is not recorded */
	bool has_caps; /* atomic: it has capabilities, or may have; a write takes them away */

	pthread_mutex_t lock;
	struct attr attr; /* npages without the map's uncommitted ones */
	bool attr_valid;
	bool sized;   /* size, npages and mtime of a file are known, and are ours from then on */
	bool changed; /* by us, since it is in the table */
	bool growing; /* over a doubtful gap: until that is done everybody sees size_before */
	uint64_t size_before;
	bool stale;    /* written past the kernel's cache, whose pages may be older */
	bool orphan;   /* has no name any more; the server keeps it until we return it */
	bool nameless; /* an orphan that never had a name, and may get one: O_TMPFILE */
	bool returned;
	/* inode_return.h: the inode waits for an answer about it before it is returned. The number
	 * that the next drain had when the wait began; 0: it does not wait. */
	uint64_t leaving;
	unsigned nlinking;     /* LINKs of it on their way; it is not returned meanwhile */
	unsigned nchanging;    /* RPCs on their way that change attributes */
	uint64_t change_epoch; /* the table's, when the first of them was sent */
	/* Of a sharing mount, under a lease: attr is true; and was, before those RPCs were sent. */
	bool sure, was_sure;
	uint64_t changed_at; /* the table's epoch when such an RPC last began or ended */
	/* The number of the last move that was begun when attributes were last changed, if they
	 * were changed while something was moved. */
	uint64_t changed_move;
	int64_t looked_ms; /* when the server was last asked for attributes: local_answer.h */
	/* several such RPCs at once, or a lease beside one: nobody knows which answer is newer */
	bool doubt;
	struct list handles;          /* struct handle, of a file */
	unsigned nopen, nopen_cached; /* handles; which are cached: cache_policy.c */
	unsigned nwriters;            /* handles that may write, whose close commits */
	struct names names;           /* of a directory */
	uint64_t nrenamed;            /* begins and ends of changes of these: inode_names.h */
	int names_error; /* of the last change here that the server refused: fsync tells it once */
	struct place place;

	struct extent_map map;
	bool fetching;        /* an RPC for more of the map is on its way */
	struct list fetchers; /* struct waiter */
	uint64_t written_to;  /* the page where the last write ended, or before which */
	struct gate gate;     /* its passes are in struct op_pass */
	struct window window;
	struct share share; /* of its owners' quotas */
	int64_t filled_ms;  /* when window and share were last used */
	struct commit commit;
	struct unmade *unmade;      /* NULL: the server knows it */
	struct name_change *queued; /* of its names, which the server does not know; NULL: none */
	unsigned nsets;             /* NAME_SETs of it that the server has not answered */
	atomic_uint ninside;        /* such changes of names in it, a directory */
	struct access access;

	/* This client's lease of it, where others write, too: enum lease_type, and the number of
	 * the last grant. lease/ sets both. */
	uint8_t lease_type;
	uint64_t lease_number;
	struct list lease_waiters; /* struct waiter of operations, in order; pins first */
	uint64_t unleased; /* the table's epoch when the lease last came, became less or went */

	/* Parts of others, laid out by inode_hooks.init behind the inode. */
	struct stale_pages *drop;
	struct inode_lease *lease;
	struct kernel_pages *cached;
	struct kernel_attr *told;
	struct kernel_owner *kernel_owner;
	struct appends *appends;
	struct inode_locks *locks;
};

/* How files call the parts above them. All but init and fini are called with the inode's lock held,
 * unless it says otherwise below. */
struct inode_hooks {
	size_t parts_bytes; /* of all parts */
	void (*init)(struct inode *inode, void *parts);
	void (*fini)(struct inode *inode);

	/* lower: a COMMIT that tells all that was written is about to be sent. Returns the number
	 * of the grant that it makes less, and in *keep what stays; 0: it makes none less. lowered:
	 * it was answered. */
	uint64_t (*lower)(struct inode *inode, uint8_t *keep);
	void (*lowered)(struct inode *inode, struct io_thread *thread, bool done);
	/* A lease that waited may go back, or be used. Without the lock. */
	void (*settle)(struct inode *inode, struct io_thread *thread);
	/* Whether operations use the lease; whether no message about it is on its way; whether it
	 * is about to go back. */
	bool (*is_used)(const struct inode *inode);
	bool (*is_idle)(const struct inode *inode);
	bool (*is_leaving)(const struct inode *inode);
	/* The file goes back to the server, and its lease with it. */
	void (*end_lease)(struct inode *inode);
	/* The inode is about to be forgotten. If it has no name, the server is told. Called under
	 * its shard's lock instead. */
	void (*forgotten)(struct inode *inode);
	/* A lease has told the file's end. */
	void (*end_is_told)(struct inode *inode);
	/* A change begins: the kernel's attributes are taken back. */
	void (*change_begins)(struct inode *inode);
	/* The kernel may have no lookups of it any more. Without the lock. */
	void (*kernel_forgets)(struct inode *inode);
};

struct inode_shard;
struct inode_table {
	const struct inode_hooks *hooks;
	struct inode_shard *shards;
	/* Atomic: counts inodes that were forgotten though we had changed them, leases that came
	 * and went, and, on a sharing mount, begins and ends of changes. */
	uint64_t epoch;
	/* Atomic, inode_move_begin()'s: their number, and those on their way. */
	uint64_t moves, nmoving;
	uint64_t forgotten; /* atomic: the epoch when a changed inode was last forgotten */
	struct name_sets names;
};
int inode_table_init(struct inode_table *t, const struct inode_hooks *hooks);
/* Frees all inodes, even if there are references to them. */
void inode_table_fini(struct inode_table *t);

/* Finds or makes the inode and takes a reference. NULL: no memory. */
struct inode *inode_get(struct fs *fs, uint64_t ino);
/* Finds the inode and takes a reference; NULL: it is not in the table. */
struct inode *inode_find(struct fs *fs, uint64_t ino);
struct inode *inode_ref(struct inode *inode);
/* The same for a caller that has no reference to it. False: its last reference is gone. */
bool inode_try_ref(struct inode *inode);
void inode_put(struct inode *inode);

/* Unused pages and quota of the inode go back to the pools. */
void inode_return_unused_locked(struct inode *inode);

/* The same for all inodes that were not filled since then. */
void inodes_return_unused(struct fs *fs, int64_t since_ms);

/* Calls fn for each inode, under its shard's lock. */
void inode_each(struct fs *fs, void (*fn)(struct inode *inode, void *arg), void *arg);

/* The kernel's name for it, and back, with a reference; NULL: the kernel has no lookups of it. */
uint64_t inode_node(const struct inode *inode);
struct inode *inode_of_node(struct fs *fs, uint64_t node);
/* The kernel learns of it, or forgets n of its lookups. */
void inode_remember(struct inode *inode);
void inode_forget(struct inode *inode, uint64_t n);

/* Once, before the kernel knows the inode: S_IFMT bits. */
void inode_set_type(struct inode *inode, uint32_t type);

/* ---- attributes ------------------------------------------------------------------------------ */

/* Takes the attributes of a reply that changes nothing, if nothing better is known. epoch: the
 * table's when the request was started. If the inode was changed and forgotten since, or changed
 * under a lease that was given back, the reply may be too old. False: it is too old, or the inode
 * has lost its last name; ask again. seen: the attributes after this reply, for the kernel; may be
 * NULL. */
bool inode_learn(struct inode *inode, const struct attr *attr, uint64_t epoch, struct attr *seen);
/* The same for a LOOKUP or CREATE, which bring the first extents. */
bool inode_learn_entry(struct inode *inode, const struct rpc_entry_reply *entry, uint64_t epoch,
	struct attr *seen);
/* The same for an inode that was made just now, so none that was forgotten can be this one. A new
 * directory that nobody can have used since is known to be empty. */
void inode_learn_new(struct inode *inode, const struct attr *attr, uint64_t epoch);
uint64_t inode_epoch(struct fs *fs);
/* Answers that belong to an epoch from before are not believed, where that matters. */
uint64_t inode_next_epoch(struct fs *fs);
/* The attributes that the kernel is to see of a new answer: the answer's, but for those that are
 * known better here. */
void inode_see(struct inode *inode, const struct attr *attr, struct attr *seen);

/* inode_lease: a lease was granted, of the type that inode.lease_type has now. inode_share: it
 * becomes less, so answers from before are too old, and unless `sure` others may change the
 * attributes from now on. inode_unlease: all of it goes back. */
void inode_lease_locked(struct inode *inode, const struct attr *attr,
	const struct rpc_entry_reply *extents, uint64_t epoch);
void inode_share_locked(struct inode *inode, bool sure);
/* The lease ends with the inode, which was returned. Answers that are on their way still count. */
void inode_unsure_locked(struct inode *inode);
void inode_unlease_locked(struct inode *inode);
/* A lease became more, and the attributes are not known for sure. inode_see_others, with the
 * answer's attributes, comes before inode.lease_type is set, and inode_sure after. */
void inode_see_others_locked(struct inode *inode, const struct attr *attr);
void inode_sure_locked(struct inode *inode, uint64_t epoch);

/* Around each RPC that changes attributes of the inode. attr NULL: nothing was changed. */
void inode_change_begin(struct inode *inode);
void inode_change_end(struct inode *inode, const struct attr *attr);
/* Around an RPC that moves inodes that may not be known before its answer. Returns its number. */
uint64_t inode_move_begin(struct fs *fs);
void inode_move_end(struct fs *fs);
/* Attributes were changed, of which the server is told later. */
void inode_changed_here_locked(struct inode *inode);
/* Begin and end, for an RPC that changed names of inodes that were not known. epoch: when it was
 * sent; move: its number if it moves, or 0. */
void inode_changed_since(
	struct inode *inode, const struct attr *attr, uint64_t epoch, uint64_t move);
/* The same for an RPC that gave or took names. The mode and owners of a file in its answer may be
 * older than a COMMIT that was answered meanwhile. */
void inode_change_names_end(struct inode *inode, const struct attr *attr);

/* The same for an RPC that changed a file's size or its pages from fpage on. Nothing of the file
 * was uncommitted and no I/O of it ran, so the server's numbers are exact. */
void inode_change_pages_end(struct inode *inode, const struct attr *attr, uint64_t fpage);

/* Whether bytes other than zero might appear between the file's end and offset, if the file went on
 * there. If so, op_grow() has to come first. The map is known up to offset. */
bool inode_has_doubtful_gap(struct inode *inode, uint64_t offset);

/* The attributes as the kernel is to see them. False: they have to be fetched first. */
bool inode_attr(struct inode *inode, struct attr *attr);
void inode_attr_locked(const struct inode *inode, struct attr *attr);

/* Marks of record.h, for the daemon after this one. */
static inline void inode_mark_locked(struct inode *inode, uint32_t set, uint32_t clear)
{
	if (inode->note)
		atomic_store_explicit(&inode->note->marks,
			(atomic_load_explicit(&inode->note->marks, memory_order_relaxed) & ~clear) |
				set,
			memory_order_release);
}

static inline bool inode_is_regular(const struct inode *inode)
{
	return S_ISREG(inode->type);
}

static inline bool inode_has_caps(const struct inode *inode)
{
	return __atomic_load_n(&inode->has_caps, __ATOMIC_RELAXED);
}

#endif
