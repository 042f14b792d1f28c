/* fs_parts.h - struct fs, for the files of the filesystem itself. */
#ifndef RMEMFS_DAEMON_OP_FS_PARTS_H
#define RMEMFS_DAEMON_OP_FS_PARTS_H

#include "daemon/pages/quota_allowance.h"
#include "daemon/kcache/expire.h"
#include "daemon/serve/fs.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/pages/grants.h"
#include "daemon/file/inode.h"
#include "daemon/pages/landing.h"
#include "daemon/lease/keep.h"
#include "daemon/barrier/abandoned.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/lease/local_answer.h"
#include "daemon/fuse/notifier.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/file/last_resort.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/barrier/remount.h"
#include "daemon/file/inode_return.h"
#include "daemon/remote/session.h"
#include "daemon/ops/value_stages.h"
#include "daemon/ops/statfs.h"

/* What belongs to one I/O thread. */
struct fs_thread {
	struct io_thread *thread;
	struct list dirty;       /* inodes, by commit.dirty */
	struct list accessed;    /* the same, by access.link: the longest waiting first */
	struct list interrupted; /* ops, by interrupted */
	struct list lock_waits;  /* struct lock_wait, by own */
	unsigned nbackground;    /* RPCs on their way for no request */
	unsigned nacked;         /* WRITEs on their way that were acknowledged */
	uint32_t keeping;        /* bits of the numbers that GETXATTRs have values kept by */
	uint64_t taken;          /* pages from windows, ever; read by others as it is */
	int64_t next_commit_ms, next_idle_ms;
	struct landing landing;
	struct freeze_thread freeze;
	unsigned nrunning;      /* while renewal.c counts them */
	bool stopping, stopped; /* fs_stop was called; remote_stop was */
	int64_t stop_by_ms;
};

struct fs {
	struct fs_options options;
	struct fs_features features;
	struct access_policy access;
	struct session *session;
	struct inode_table inodes;
	struct inode *root;
	struct grants grants;
	struct refill refill;
	struct returns returns;
	struct lease_keeper leases;
	struct releases releases;
	struct looks looks;
	struct stages stages;
	struct allowances allowances;
	struct freeze freeze;
	struct locks locks;
	struct remount remount;
	struct renewal renewal;
	struct leftovers leftovers;
	struct notifier notifier; /* of attributes */
	struct notifier dropper;  /* of pages */
	struct notifier expirer;  /* of names */
	struct notifier giver;    /* of pages, before their lease goes: cached.h */
	struct expiries expiries;
	atomic_uint ndrop_waiters; /* drop.h */
	atomic_uint ndropping;     /* fs_drop_begins(), without their ends */
	atomic_ullong ndrops;      /* how many of them there were */
	atomic_ullong aside_bytes; /* fs_count_aside() */
	uint64_t aside_max;
	struct statfs_memory statfs;
	struct fs_thread threads[FS_THREADS_MAX];
};

/* All that has neither a thread nor a connection: what is left of fs_open() are the notifiers and
 * the session, and of fs_thread_init() the remote. -ENOMEM. */
int fs_init(struct fs *fs, const struct fs_options *options);
void fs_fini(struct fs *fs);
void fs_thread_prepare(struct fs *fs, struct io_thread *thread);

static inline struct fs_thread *fs_thread_of(struct io_thread *thread)
{
	return &thread->fs->threads[thread->index];
}

#endif
