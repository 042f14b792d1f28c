/* keep.h - the leases that this mount has, how many it keeps, and those that go back together.
 *
 * A lease stays when its file is closed, so that the next one who opens it asks nobody. Each is
 * listed here from its grant to its return. When there are as many as the server lets a client
 * keep, those leave that were not used for the longest time, whether their files are open or not;
 * so do those of inodes that the kernel has forgotten. What leaves has a reference to its inode
 * until it has left, so recalls, and whoever wants to use it after all, find it as it is; it is
 * told in batches, when one is full and about every 100 ms.
 *
 * Not everything that the server grants is known here: CREATE's answer may be overtaken by a
 * recall, and the inode be unknown, or by an UNLINK of ours. What is given back of an inode in
 * ignorance is noted, and CREATE's answer for that inode is worth nothing if it was sent before:
 *
 *     lease_note, is the inode here by now? -> RETURN      inode_get -> lease_noted_since
 *
 *
 * OWNERSHIP  Embedded in struct fs. Listed inodes belong to whoever has a reference: while a lease
 *            is listed, somebody has.
 * THREADS    A lock of its own, taken inside a shard's and an inode's. Any thread sends.
 */
#ifndef RMEMFS_DAEMON_LEASE_KEEP_H
#define RMEMFS_DAEMON_LEASE_KEEP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/request/io_thread.h"
#include "daemon/remote/remote.h"

struct fs;
struct inode;

enum { LEASES_BATCH = 256, LEASES_NOTED = 256 };

struct lease_keeper {
	pthread_mutex_t lock;
	struct list listed;  /* inodes, by lease.listed: those that were used last at the end */
	struct list leaving; /* the same by lease.leaving, with references: for the next batch */
	unsigned nlisted, nleaving;
	struct thread_call call; /* when one of the lists is too long */
	bool called;
	struct io_thread *caller;

	/* The batch on its way. */
	bool sending;
	struct io_thread *thread;
	struct list sent; /* as leaving */
	struct rpc_call rpc;
	uint8_t tail[LEASES_BATCH * RPC_RETURNED_BYTES];

	/* What was given back in ignorance: the last ones. */
	_Atomic uint64_t nnoted;
	uint64_t noted[LEASES_NOTED];
};

void lease_keeper_init(struct lease_keeper *k);
void lease_keeper_fini(struct lease_keeper *k);

/* The inode has got a lease, or has none any more. */
void lease_list_locked(struct inode *inode, struct io_thread *thread);
void lease_unlist_locked(struct inode *inode);
/* Its lease is to go with the next batch, if lease_leave_locked() still says so then. */
void lease_leave_later_locked(struct inode *inode, struct io_thread *thread);
/* Sends what has gathered. */
void lease_keep_flush(struct io_thread *thread);

/* Something of an inode is given back that may not have arrived here. */
void lease_note(struct fs *fs, uint64_t ino);
/* Before a request is sent whose answer brings a lease or pin of an inode; and whether that was
 * noted since. */
uint64_t lease_notes(struct fs *fs);
bool lease_noted_since(struct fs *fs, uint64_t notes, uint64_t ino);

#endif
