/* inode.h - what this client knows of one file or directory, and the table of all of them.
 *
 * A client that may write has its export for itself, and of those that share one either all only
 * read, or what is known of a file needs a lease (lease.h). So what is known here is the truth
 * while the session lives, or the lease: attributes are answered locally, and a file's size and
 * times are newer here than at the server until they are committed (commit.h). On a sharing mount
 * attributes are the truth while they are `sure`; the rest of what is known is what was told last,
 * and the server is asked again.
 *
 * OWNERSHIP  Counted: the kernel (while it has lookups of it, and so while it is open), requests on
 *            their way, the dirty list, a running commit, what is dropped from the cache and a
 *            lease on its way back hold references. Node ids are inode numbers, which are never
 *            used again: whoever has kept one as a file handle can come back with it.
 * THREADS    Fields belong to inode.lock, but for what is said to be atomic. Two inodes are never
 *            locked at once, and inode_put() is not called with any of these locks held:
 * LOCK ORDER a shard of the table > an inode > one of: grants, allowances, returns, the keeper of
 *            leases > one of: an inbox, a notifier's jobs, a session, a bucket of names. The other
 *            locks of a mount (locks, releases, renewal, remount, freeze, expiries) are taken
 *            inside none of these, and have none but the last ones inside.
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

struct appends;
struct kernel_pages;
struct stale_pages;
struct fs;
struct inode_lease;
struct inode_locks;
struct kernel_owner;
struct rpc_entry_reply;
struct kernel_attr;

struct inode {
	struct list hash; /* under the shard's lock */
	uint64_t ino;
	struct fs *fs;
	uint32_t type;       /* S_IFMT bits; set once, before the kernel knows the inode */
	uint64_t refs;       /* atomic; the last one goes under the shard's lock */
	uint64_t nlookup;    /* atomic: the kernel's; together one reference */
	unsigned nleftovers; /* atomic: abandoned.h */
	bool has_caps; /* atomic: there are capabilities, or may be; a write takes them away */

	pthread_mutex_t lock;
	struct attr attr; /* npages without the map's uncommitted ones */
	bool attr_valid;
	bool sized;   /* size, npages and mtime of a file are known, and ours from then on */
	bool changed; /* by us, since it is in the table */
	bool growing; /* over a doubtful gap: who looks sees the size from before, until all of it
		       * is done */
	uint64_t size_before;
	bool stale;    /* written past the kernel's cache, which may have older pages */
	bool orphan;   /* has no name any more; the server keeps it until we return it */
	bool nameless; /* an orphan that never had a name, and may get one: O_TMPFILE */
	bool returned;
	/* inode_return.h: until what of it is on its way is answered; the number of the drain that
	 * would be the next when that began; 0: it is not. */
	uint64_t leaving;
	unsigned nlinking;     /* LINKs of it on their way: it is not returned meanwhile */
	unsigned nchanging;    /* RPCs on their way that change attributes */
	uint64_t change_epoch; /* the table's, when the first of them was sent */
	/* Of a sharing mount, under a lease: attr is what it is; and was, before they were sent. */
	bool sure, was_sure;
	uint64_t changed_at; /* the table's epoch when one of them began or ended last */
	int64_t looked_ms;   /* when the server was asked for them last: local_answer.h */
	bool doubt; /* several of them at once, or a lease beside one: whose answer is newer is not
		     * known */
	struct list handles;          /* struct handle, of a file */
	unsigned nopen, nopen_cached; /* handles: all of them cached, or none (cache.c) */
	unsigned nwriters;            /* handles that may write, whose close commits */
	struct names names;           /* of a directory */
	struct place place;

	struct extent_map map;
	bool fetching;        /* an RPC for more of the map is on its way */
	struct list fetchers; /* struct waiter */
	uint64_t written_to;  /* the page that a write ended before, or in, last */
	struct gate gate;     /* of struct op_pass */
	struct window window;
	struct share share; /* of its owners' quotas */
	int64_t filled_ms;  /* when they were last used */
	struct commit commit;
	struct access access;

	/* What this client has a lease for, where others write, too: enum lease_type, and the
	 * number of the last grant. lease/ sets both. */
	uint8_t lease_type;
	uint64_t lease_number;
	struct list lease_waiters; /* struct waiter of operations, in order; pins first */
	uint64_t unleased;         /* the table's epoch when that was got or given back */

	/* Parts of others, laid out by inode_hooks.init behind the inode. */
	struct stale_pages *drop;
	struct inode_lease *lease;
	struct kernel_pages *cached;
	struct kernel_attr *told;
	struct kernel_owner *kernel_owner;
	struct appends *appends;
	struct inode_locks *locks;
};

/* What files tell the parts above them, and ask of them. All but init and fini with the inode's
 * lock held, but for what is said otherwise. */
struct inode_hooks {
	size_t parts_bytes; /* of all parts */
	void (*init)(struct inode *inode, void *parts);
	void (*fini)(struct inode *inode);

	/* A COMMIT tells all that was written: what it gives back of the lease, too, and what stays
	 * (*keep); 0: nothing. Then it is answered. */
	uint64_t (*lower)(struct inode *inode, uint8_t *keep);
	void (*lowered)(struct inode *inode, struct io_thread *thread, bool done);
	/* A lease that waited may go back, or be used: without the lock. */
	void (*settle)(struct inode *inode, struct io_thread *thread);
	/* Whether operations use the lease; whether nothing of it is on its way; whether it is
	 * about to go back. */
	bool (*is_used)(const struct inode *inode);
	bool (*is_idle)(const struct inode *inode);
	bool (*is_leaving)(const struct inode *inode);
	/* The file goes back to the server, and its lease with it. */
	void (*end_lease)(struct inode *inode);
	/* The inode is about to be forgotten: with its shard's lock, too. */
	void (*forgotten)(struct inode *inode);
	/* The file's end is the one that a lease has told. */
	void (*end_is_told)(struct inode *inode);
	/* A change begins: what the kernel has of the attributes is taken back. */
	void (*change_begins)(struct inode *inode);
	/* The kernel may have no lookups of it any more: without the lock. */
	void (*kernel_forgets)(struct inode *inode);
};

struct inode_shard;
struct inode_table {
	const struct inode_hooks *hooks;
	struct inode_shard *shards;
	/* Atomic: counts inodes that were forgotten though we had changed them, leases that came
	 * and went, and on a sharing mount begins and ends of changes. */
	uint64_t epoch;
	uint64_t forgotten; /* atomic: its value when the last inode was forgotten that had changed
			     */
	struct name_sets names;
};
int inode_table_init(struct inode_table *t, const struct inode_hooks *hooks);
/* Frees all inodes, whoever refers to them. */
void inode_table_fini(struct inode_table *t);

/* Finds or makes it and takes a reference. NULL: no memory. */
struct inode *inode_get(struct fs *fs, uint64_t ino);
/* Finds it if it is there, and takes a reference; else NULL. */
struct inode *inode_find(struct fs *fs, uint64_t ino);
struct inode *inode_ref(struct inode *inode);
/* The same of one that is found where it has none. False: its last reference is gone. */
bool inode_try_ref(struct inode *inode);
void inode_put(struct inode *inode);

/* What it was going to be filled with goes back to all. */
void inode_return_unused_locked(struct inode *inode);

/* The same of all that were not filled since then. */
void inodes_return_unused(struct fs *fs, int64_t since_ms);

/* Calls fn for each inode, under its shard's lock. */
void inode_each(struct fs *fs, void (*fn)(struct inode *inode, void *arg), void *arg);

/* The kernel's name for it, and back, with a reference; NULL: the kernel has no lookups of it. */
uint64_t inode_node(const struct inode *inode);
struct inode *inode_of_node(struct fs *fs, uint64_t node);
/* The kernel learns of it, or forgets n of its lookups. */
void inode_remember(struct inode *inode);
void inode_forget(struct inode *inode, uint64_t n);

/* ---- attributes ------------------------------------------------------------------------------ */

/* What a reply that changes nothing says: taken if nothing better is known. epoch is that of the
 * table when the request was started: an inode that was changed and forgotten since, or changed
 * under a lease that was given back, may have been newer than the reply. False: so it is, or the
 * inode has lost its last name; ask again. seen: the
 * attributes as this reply has left them, for the kernel; NULL: nobody wants to know. */
bool inode_learn(struct inode *inode, const struct attr *attr, uint64_t epoch, struct attr *seen);
/* The same for a LOOKUP or CREATE, which bring the first extents. */
bool inode_learn_entry(struct inode *inode, const struct rpc_entry_reply *entry, uint64_t epoch,
	struct attr *seen);
/* The same for one that was made just now: none that was forgotten can have been this one. Of a
 * directory that nobody can have used since is known that it is empty. */
void inode_learn_new(struct inode *inode, const struct attr *attr, uint64_t epoch);
uint64_t inode_epoch(struct fs *fs);
/* What the kernel is to see of an answer that has come now: what it says, but for what is known
 * better here. */
void inode_see(struct inode *inode, const struct attr *attr, struct attr *seen);

/* A lease was granted, of whatever type lease.type is now; it becomes less, so that answers from
 * before are too old, and what is known may change from now on if it is not sure; or all of it goes
 * back. */
void inode_lease_locked(struct inode *inode, const struct attr *attr,
	const struct rpc_entry_reply *extents, uint64_t epoch);
void inode_share_locked(struct inode *inode, bool sure);
void inode_unlease_locked(struct inode *inode);
/* Under a lease more was granted, and the attributes are not known for sure: before, with what the
 * answer says, and when lease.type says so. */
void inode_see_others_locked(struct inode *inode, const struct attr *attr);
void inode_sure_locked(struct inode *inode, uint64_t epoch);

/* Around each RPC that changes attributes of the inode. attr NULL: nothing was changed. */
void inode_change_begin(struct inode *inode);
void inode_change_end(struct inode *inode, const struct attr *attr);
/* Both, of one that changed names whose inodes were not known: it was sent at this epoch. */
void inode_changed_since(struct inode *inode, const struct attr *attr, uint64_t epoch);
/* The same for one that gave or took names. What it says of a file's mode and owners may be older
 * than a COMMIT that was answered meanwhile. */
void inode_change_names_end(struct inode *inode, const struct attr *attr);

/* The same for one that changed a file's size or pages, these from fpage on, while nothing of the
 * file was uncommitted and no I/O of it ran: the server's numbers are exact then. */
void inode_change_pages_end(struct inode *inode, const struct attr *attr, uint64_t fpage);

/* Whether the file, if it were to go on at offset, might show what is not zero between its end and
 * there: op_grow() has to come first then. Its map is known up to offset. */
bool inode_has_doubtful_gap(struct inode *inode, uint64_t offset);

/* As the kernel is to see them. False: they have to be fetched first. */
bool inode_attr(struct inode *inode, struct attr *attr);
void inode_attr_locked(const struct inode *inode, struct attr *attr);

/* ---- names of a directory -------------------------------------------------------------------- */

/* Before a request is sent that may make the name. */
void inode_name_add(struct inode *dir, const char *name);
/* When the name was taken away. */
void inode_name_remove(struct inode *dir, const char *name);
/* Whether it is known that there is none. */
bool inode_lacks_name(struct inode *dir, const char *name);

static inline bool inode_is_regular(const struct inode *inode)
{
	return S_ISREG(inode->type);
}

static inline bool inode_has_caps(const struct inode *inode)
{
	return __atomic_load_n(&inode->has_caps, __ATOMIC_RELAXED);
}

#endif
