/* fs_parts.h - struct fs: the parts of a mount, as pointers. Each part is defined in its own
 * folder, and known there only; serve/fs_block.h lays them out. */
#ifndef RMEMFS_DAEMON_OP_FS_PARTS_H
#define RMEMFS_DAEMON_OP_FS_PARTS_H

#include <stdatomic.h>

#include "daemon/fuse/notifier.h"
#include "daemon/fuse/port.h"
#include "daemon/op/fs_options.h"
#include "daemon/remote/remote.h"
#include "daemon/request/io_thread.h"

struct access_policy;
struct quota_allowances;
struct record;
struct expiries;
struct snapshot_freeze;
struct fs_parts;
struct freeze_thread;
struct grants;
struct inherited;
struct inode;
struct inode_table;
struct landing;
struct make_batch;
struct lease_keeper;
struct pause;
struct abandoned;
struct conversion;
struct locks;
struct local_answers;
struct grant_refill;
struct last_resorts;
struct remount;
struct session_renewal;
struct inode_returns;
struct session;
struct value_stages;
struct statfs_memory;
struct unmade_files;
struct name_queue;

/* The state of one I/O thread. */
struct fs_thread {
	struct io_thread *thread;
	struct list dirty;       /* inodes, by commit.dirty */
	struct list accessed;    /* the same, by access.link: the longest waiting first */
	struct list interrupted; /* ops, by interrupted */
	struct list lock_waits;  /* struct lock_wait, by own */
	unsigned nbackground;    /* RPCs on their way for no request */
	unsigned nacked;         /* WRITEs on their way that were acknowledged */
	uint32_t keeping;        /* numbers that values of GETXATTRs are kept by, as bits */
	uint64_t taken;          /* pages from windows, ever; read by other threads, too */
	int64_t next_commit_ms, next_idle_ms;
	struct landing *landing;
	struct freeze_thread *freeze;
	struct make_batch *makes;
	unsigned nrunning;      /* while session_renewal.c counts them */
	bool stopping, stopped; /* fs_stop was called; remote_stop was */
	int64_t stop_by_ms;
};

struct fs {
	struct fs_options options;
	/* Other clients may write, too. From the beginning on (options.session.sharing), or from a
	 * moment on at which no request runs: conversion.h. */
	atomic_bool sharing;
	/* It has shared at any time, and the kernel may have what others have changed since. */
	atomic_bool has_shared;
	struct fs_features features;
	struct access_policy *access;
	struct session *session;
	struct inode_table *inodes;
	struct inode *root;
	struct inherited *inherited; /* file/inherited.h; NULL: this daemon has mounted */
	struct record *record;       /* record/record.h; NULL: nothing is recorded */
	bool revived;                /* file/revived.h: the mount was a killed daemon's once */
	struct unmade_files *unmade;
	struct name_queue *name_queue;
	struct grants *grants;
	struct grant_refill *refill;
	struct inode_returns *returns;
	struct lease_keeper *leases;
	struct last_resorts *releases;
	struct local_answers *looks;
	struct value_stages *stages;
	struct quota_allowances *allowances;
	struct snapshot_freeze *freeze;
	struct locks *locks;
	struct remount *remount;
	struct session_renewal *renewal;
	struct conversion *conversion;
	struct abandoned *abandoned;
	struct notifier notifier; /* of attributes */
	struct notifier dropper;  /* of pages */
	struct notifier expirer;  /* of names */
	struct notifier giver;    /* of pages, before their lease goes: kernel_pages.h */
	struct expiries *expiries;
	atomic_uint ndrop_waiters; /* stale_pages.h */
	struct request_shared requests;
	struct statfs_memory *statfs;
	struct fs_thread threads[IO_THREADS_MAX];
	struct fs_parts *parts; /* serve/fs_block.h */
	/* State of the whole mount: barrier/ sets it, and the folders below read it. */
	atomic_bool tracing;        /* each request has a line in the log; any thread sets it */
	atomic_bool renewing;       /* the session has ended, and another one is to be made */
	atomic_bool committing_all; /* it becomes read-only: everything is committed for the last
				     * time */
	struct pause *pause;
};

static inline bool fs_is_renewing(const struct fs *fs)
{
	return atomic_load_explicit(&fs->renewing, memory_order_acquire);
}

/* Whether other clients may come to write, too, if they have not yet. */
static inline bool fs_may_share(const struct fs *fs)
{
	return fs->options.session.converts || atomic_load(&fs->sharing);
}

/* Whether it is alone, at least for now, knows what its names are of, and may answer changes of
 * them by itself. */
static inline bool fs_keeps_names(const struct fs *fs)
{
	return fs->options.names == NAMES_LOCAL && !atomic_load(&fs->sharing);
}

/* Whether such a mount is also sure of names that the server says are missing. Requests of a killed
 * daemon may still make some after that. */
static inline bool fs_knows_names(const struct fs *fs)
{
	return fs_keeps_names(fs) && !fs->record;
}

static inline void fs_begin_sharing(struct fs *fs)
{
	atomic_store(&fs->has_shared, true);
	atomic_store(&fs->sharing, true);
}

/* Whether the kernel surely knows who owns what: nobody else has ever written. */
static inline bool fs_kernel_knows_owners(const struct fs *fs)
{
	return !atomic_load(&fs->has_shared);
}

/* The same of where files end. If not, what is appended goes to where the daemon knows the end to
 * be (append_order.h). */
static inline bool fs_kernel_knows_ends(const struct fs *fs)
{
	return !atomic_load_explicit(&fs->has_shared, memory_order_relaxed);
}

static inline bool fs_is_paused(const struct fs *fs)
{
	return atomic_load_explicit(&fs->requests.paused, memory_order_acquire);
}

static inline struct fs_thread *fs_thread_of(struct io_thread *thread)
{
	return &thread->fs->threads[thread->index];
}

#endif
