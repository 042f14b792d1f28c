/* inode_return.h - inodes without a name. The server keeps each until we say that it is not open
 * any more, so that files which were unlinked while open go on working. The kernel does not tell us
 * when directories and special files are in use (a working directory, an open FIFO). Those are kept
 * until their last reference goes.
 *
 * Inodes are returned in batches: when 64 have gathered, about every 100 ms, and when pages run
 * out. A sharing mount adds the number up to which all its leases of the inode go back (lease.h).
 * That is the number of the answer which told of the last name's end, or a later one.
 *
 * THREADS    A lock of its own, taken inside inodes' locks. Any thread sends.
 */
#ifndef RMEMFS_DAEMON_FILE_INODE_RETURN_H
#define RMEMFS_DAEMON_FILE_INODE_RETURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/remote/remote.h"

struct fs;
struct inode;

enum { RETURNS_BATCH = 64 };

struct returned_inode {
	uint64_t ino, number;
};

struct inode_returns {
	pthread_mutex_t lock;
	struct returned_inode *v; /* to be returned: those of [first, n), in the order they came */
	size_t first, n, cap;
	unsigned nsent;             /* on their way; 0: none are */
	uint64_t nadded, nanswered; /* ever */
	struct io_thread *thread;   /* that sent the batch */
	struct rpc_call call;
	uint8_t tail[RETURNS_BATCH * RPC_RETURNED_BYTES];

	/* Inodes that will be returned when messages about them are answered. */
	unsigned nleaving;
	/* inode_return_drain(): how often it was called, and how much the last call waits for. */
	uint64_t ndrains;
	unsigned nawaited;                         /* of the nleaving ones */
	uint64_t until;                            /* nanswered */
	void (*drained)(struct io_thread *thread); /* NULL: nobody waits */
};

void inode_return_init(struct inode_returns *r);
void inode_return_fini(struct inode_returns *r);

/* The inode's last name is gone; the answer that told so had that number. */
void inode_return_orphan(struct inode *inode, uint64_t number, struct io_thread *thread);
/* For names that this client takes away by itself (name_queue.h). Whether nobody uses the inode, so
 * that it ends with its name: it counts as returned then. And after the server's answer. */
bool inode_return_gives_up_locked(struct inode *inode);
void inode_return_settle_removed(struct inode *inode, struct io_thread *thread);
/* A file that is made without a name. */
void inode_return_nameless(struct inode *inode);
/* Around a LINK of it, which gives a name to a file that never had one. False: the inode has lost
 * its last name, or is returned already, and can't be linked any more. */
bool inode_return_link_begin(struct inode *inode);
void inode_return_link_end(struct inode *inode, bool linked, struct io_thread *thread);
/* The last use of a file without a name may have ended. If so, it is returned when no message about
 * it is on its way to the server. Called after a handle was closed, the gate or the lease was left,
 * or a commit has ended. */
void inode_return_settle(struct inode *inode, struct io_thread *thread);

/* Returns an inode that is not in the table. */
void inode_return_add(struct io_thread *thread, uint64_t ino, uint64_t number);
/* The last reference to the inode goes: inode_hooks.forgotten. */
void inode_return_forgotten(struct inode *inode);

/* Sends the inodes that have gathered. */
void inode_return_flush(struct io_thread *thread);
/* The same, and calls drained() when that is answered, and also all inodes that are not used by now
 * and still wait to be returned. It is called in the thread that got the last answer, or at once if
 * there is nothing to wait for. Inodes that come later are not waited for. One call at a time. */
void inode_return_drain(struct io_thread *thread, void (*drained)(struct io_thread *thread));

/* Nothing is to be returned, and no answer is awaited. */
bool inode_return_is_idle(struct fs *fs);

/* Files' pages that the pool may need: for grant_refill_init(). */
extern const struct refill_holders inode_return_refill_holders;

/* The inodes are not this session's any more, and no message is on its way. Waits for them end. */
void inode_return_forget(struct io_thread *thread);

#endif
