/* returns.h - inodes without a name: the server keeps each for us until we say that it is not open
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
#ifndef RMEMFS_DAEMON_RETURNS_H
#define RMEMFS_DAEMON_RETURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"
#include "daemon/remote.h"

struct fs;
struct inode;

enum { RETURNS_BATCH = 64 };

/* Of one who wants to know when all is answered. */
struct returns_wait {
	struct list link;
	void (*drained)(struct returns_wait *w, struct io_thread *thread);
};

struct returned_inode {
	uint64_t ino, number;
};

struct returns {
	pthread_mutex_t lock;
	struct returned_inode *v;
	size_t n, cap;
	bool sending;
	struct io_thread *thread; /* that sends */
	struct rpc_call call;
	uint8_t tail[RETURNS_BATCH * RPC_RETURNED_BYTES];
	struct list waits; /* struct returns_wait */
};

void returns_init(struct returns *r);
void returns_fini(struct returns *r);

/* The inode's last name is gone, as was told with that number. */
void returns_orphan(struct inode *inode, uint64_t number, struct io_thread *thread);
/* A file that is made without a name. */
void returns_nameless(struct inode *inode);
/* Around a LINK of it: what never had a name has got one. False: it is returned already, and can't
 * be linked any more. */
bool returns_link_begin(struct inode *inode);
void returns_link_end(struct inode *inode, bool linked, struct io_thread *thread);
/* A file that has no name may have ended its last use: if so, it is returned. Called after a handle
 * was closed, the gate was left, a commit has ended. */
void returns_settle(struct inode *inode, struct io_thread *thread);

/* An inode that is not in the table. */
void returns_add(struct io_thread *thread, uint64_t ino, uint64_t number);
/* The same, for whoever can't send. */
void returns_add_later(struct fs *fs, uint64_t ino, uint64_t number);

/* Sends what has gathered. */
void returns_flush(struct io_thread *thread);
/* The same, and calls drained() when all is answered, in the thread that got the last answer; at
 * once if there is nothing. */
void returns_drain(struct io_thread *thread, struct returns_wait *w,
	void (*drained)(struct returns_wait *w, struct io_thread *thread));
/* Whether there is something. */
bool returns_pending(struct returns *r);

#endif
