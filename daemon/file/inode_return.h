/* inode_return.h - inodes without a name: the server keeps each for us until we say that it is not open
 * any more, so that files which were unlinked while open go on working. Of directories and special
 * files, whose use the kernel does not tell us of (a working directory, an open FIFO), it is the
 * last reference that counts.
 *
 * They are told in batches: when 64 have gathered, about every 100 ms, and when pages run out. On a
 * sharing mount with the number up to which all that this client has of it goes back (lease.h):
 * that of the answer which told of its last name's end, or of what has come since.
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
	struct returned_inode *v; /* to be told: those of [first, n), in the order they came */
	size_t first, n, cap;
	unsigned nsent;             /* on their way; 0: none are */
	uint64_t nadded, nanswered; /* ever */
	struct io_thread *thread;   /* that sends */
	struct rpc_call call;
	uint8_t tail[RETURNS_BATCH * RPC_RETURNED_BYTES];

	/* Inodes that will be told when what of them is on its way is answered. */
	unsigned nleaving;
	/* inode_return_drain(): how often it was called, and what the last call waits for. */
	uint64_t ndrains;
	unsigned nawaited;                         /* of those that leave */
	uint64_t until;                            /* nanswered */
	void (*drained)(struct io_thread *thread); /* NULL: nobody waits */
};

void inode_return_init(struct inode_returns *r);
void inode_return_fini(struct inode_returns *r);

/* The inode's last name is gone, as was told with that number. */
void inode_return_orphan(struct inode *inode, uint64_t number, struct io_thread *thread);
/* A file that is made without a name. */
void inode_return_nameless(struct inode *inode);
/* Around a LINK of it: what never had a name has got one. False: it is returned already, and can't
 * be linked any more. */
bool inode_return_link_begin(struct inode *inode);
void inode_return_link_end(struct inode *inode, bool linked, struct io_thread *thread);
/* A file that has no name may have ended its last use: if so, it is returned, when nothing of it is
 * on its way to the server. Called after a handle was closed, the gate or the lease was left, a
 * commit has ended. */
void inode_return_settle(struct inode *inode, struct io_thread *thread);

/* An inode that is not in the table. */
void inode_return_add(struct io_thread *thread, uint64_t ino, uint64_t number);
/* The last reference to the inode goes. */
void inode_return_forgotten(struct inode *inode);

/* Sends what has gathered. */
void inode_return_flush(struct io_thread *thread);
/* The same, and calls drained() when that is answered, and all that nobody uses by now and is still
 * on its way to be returned: in the thread that got the last answer, at once if there is nothing.
 * What comes later is not waited for. One at a time. */
void inode_return_drain(struct io_thread *thread, void (*drained)(struct io_thread *thread));

/* What files have that the pool may need: for grant_refill_init(). */
extern const struct refill_holders inode_return_refill_holders;

/* Nothing of it is this session's any more, and nothing is on its way. Who waits for what was
 * gathered need not. */
void inode_return_forget(struct io_thread *thread);

#endif
