/* fs_block.h - a mount and its parts in one block. */
#ifndef RMEMFS_DAEMON_SERVE_FS_BLOCK_H
#define RMEMFS_DAEMON_SERVE_FS_BLOCK_H

#include "daemon/barrier/abandoned.h"
#include "daemon/barrier/conversion.h"
#include "daemon/barrier/remount.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/file/access_time.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/make_batch.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/kcache/expire.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/local_answer.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/op/fs_parts.h"
#include "daemon/ops/statfs.h"
#include "daemon/ops/value_stages.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/pages/grants.h"
#include "daemon/pages/landing.h"
#include "daemon/pages/quota_allowance.h"
#include "daemon/serve/pause.h"

struct fs_thread_parts {
	struct landing landing;
	struct freeze_thread freeze;
	struct make_batch makes;
};

struct fs_parts {
	struct access_policy access;
	struct inode_table inodes;
	struct unmade_files unmade;
	struct name_queue name_queue;
	struct grants grants;
	struct grant_refill refill;
	struct inode_returns returns;
	struct lease_keeper leases;
	struct last_resorts releases;
	struct local_answers looks;
	struct value_stages stages;
	struct quota_allowances allowances;
	struct snapshot_freeze freeze;
	struct locks locks;
	struct remount remount;
	struct session_renewal renewal;
	struct conversion conversion;
	struct abandoned abandoned;
	struct expiries expiries;
	struct statfs_memory statfs;
	struct pause pause;
	struct fs_thread_parts threads[IO_THREADS_MAX];
};

struct fs_block {
	struct fs fs;
	struct fs_parts parts;
};

/* Has the mount point to its parts; nothing else is set. */
static inline void fs_wire(struct fs *fs, struct fs_parts *parts)
{
	fs->parts = parts;
	for (unsigned i = 0; i < IO_THREADS_MAX; i++) {
		fs->threads[i].landing = &parts->threads[i].landing;
		fs->threads[i].freeze = &parts->threads[i].freeze;
		fs->threads[i].makes = &parts->threads[i].makes;
	}
	fs->access = &parts->access;
	fs->inodes = &parts->inodes;
	fs->unmade = &parts->unmade;
	fs->name_queue = &parts->name_queue;
	fs->grants = &parts->grants;
	fs->refill = &parts->refill;
	fs->returns = &parts->returns;
	fs->leases = &parts->leases;
	fs->releases = &parts->releases;
	fs->looks = &parts->looks;
	fs->stages = &parts->stages;
	fs->allowances = &parts->allowances;
	fs->freeze = &parts->freeze;
	fs->locks = &parts->locks;
	fs->remount = &parts->remount;
	fs->renewal = &parts->renewal;
	fs->conversion = &parts->conversion;
	fs->abandoned = &parts->abandoned;
	fs->expiries = &parts->expiries;
	fs->statfs = &parts->statfs;
	fs->pause = &parts->pause;
}

/* The parts of fs_open() and fs_thread_init() without a thread or a connection. fs_open() adds the
 * notifiers and the session, fs_thread_init() the remote. -ENOMEM. */
int fs_init(struct fs_block *block, const struct fs_options *options);
void fs_fini(struct fs *fs);
void fs_thread_prepare(struct fs *fs, struct io_thread *thread);

#endif
