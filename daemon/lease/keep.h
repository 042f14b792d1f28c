/* keep.h - the leases that this mount has, how many it keeps, and those that go back together.
 *
 * A lease stays when its file is closed, so that the next open asks nobody. Each is listed here
 * from its grant to its return. When there are as many as the server lets a client keep, the least
 * recently used leave, whether their files are open or not. So do the leases of inodes that the
 * kernel has forgotten. A lease that leaves has a reference to its inode until it has left. So
 * recalls, and operations that want it after all, find it as it is. Leases are returned in batches:
 * when a batch is full, and about every 100 ms.
 *
 * This client does not know every grant of the server. A recall, or an UNLINK of ours, may overtake
 * CREATE's answer, and the inode be unknown. If the client returns something of an unknown inode,
 * it notes that. Then CREATE's answer for that inode does not count if CREATE was sent before:
 *
 *     lease_note, is the inode here by now? -> RETURN      inode_get -> lease_noted_since
 *
 *
 * OWNERSHIP  Embedded in struct fs. Listed inodes belong to the holders of references: while a
 *            lease is listed, there is one.
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
	struct list listed;  /* inodes, by lease.listed: the most recently used last */
	struct list leaving; /* the same by lease.leaving, with references: for the next batch */
	unsigned nlisted, nleaving;
	struct thread_call call; /* when one of the lists is too long: evicts, and sends */
	bool called;
	struct io_thread *caller;
	atomic_bool held; /* lease_keep_hold() */

	/* The batch on its way. */
	bool sending;
	struct io_thread *thread;
	struct list sent; /* as leaving */
	struct rpc_call rpc;
	uint8_t tail[LEASES_BATCH * RPC_RETURNED_BYTES];

	/* The inodes that were noted last: lease_note(). */
	_Atomic uint64_t nnoted;
	uint64_t noted[LEASES_NOTED];
};

void lease_keeper_init(struct lease_keeper *k);
void lease_keeper_fini(struct lease_keeper *k);

/* The inode has got a lease, or has none any more. */
void lease_list_locked(struct inode *inode, struct io_thread *thread);
void lease_unlist_locked(struct inode *inode);
/* The inode's lease goes with the next batch, if lease_leave_locked() still says so then. */
void lease_leave_later_locked(struct inode *inode, struct io_thread *thread);
/* Sends what has gathered. */
void lease_keep_flush(struct io_thread *thread);
/* The same. True: nothing has gathered, and no batch is on its way. */
bool lease_keep_give_all(struct io_thread *thread);
/* No lease is asked for or goes back while they are held: the mount is about to need none
 * (conversion.h). A recall is left to the server, which repeats it. */
void lease_keep_hold(struct fs *fs, bool held);
bool lease_keep_is_held(const struct fs *fs);
/* A lease of a mount that was taken over is listed, before the threads run. */
void lease_keep_adopt_locked(struct inode *inode);

/* Something of the inode goes back that may not have arrived here. */
void lease_note(struct fs *fs, uint64_t ino);
/* lease_notes(): before a request is sent whose answer brings a lease or pin of an inode.
 * lease_noted_since(): whether that inode was noted since. */
uint64_t lease_notes(struct fs *fs);
bool lease_noted_since(struct fs *fs, uint64_t notes, uint64_t ino);

#endif
