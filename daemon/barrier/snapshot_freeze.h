/* snapshot_freeze.h - the client's part in a snapshot that the server takes: a moment without
 * writes, and a question before pages of that moment are written again.
 *
 *     a ring -> PING's reply: frozen -> new writes are held -> those on their way end, in all
 *     threads -> all that is dirty is committed -> FROZEN -> its answer -> the held ones go on
 *
 * From then on, until PING's reply says that the snapshot is over, a write into pages that the file
 * had before asks by UNPROTECT first. One bit a page remembers which pages were asked for. Pages
 * that came from grants since then need no question. Without a snapshot all of this is a test of a
 * flag.
 *
 * THREADS    A thread's writes, and those that it holds, are its own. So is its phase: other
 *            threads only read it, and none takes back what another has said, since each hears of a
 *            snapshot in its own time. The lock is taken inside no other one and around none.
 */
#ifndef RMEMFS_DAEMON_BARRIER_SNAPSHOT_FREEZE_H
#define RMEMFS_DAEMON_BARRIER_SNAPSHOT_FREEZE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/request/io_thread.h"
#include "daemon/remote/remote.h"

struct fs;
struct inode;
struct request;

enum freeze_phase { FREEZE_NONE, FREEZE_HOLDS, FREEZE_QUIET, FREEZE_CLEAN };

/* Of each thread. */
struct freeze_thread {
	struct io_thread *thread;
	/* Changed by the thread, under the lock; other threads read them under the lock. */
	uint64_t id; /* the snapshot that it holds its writes for; 0: none */
	enum freeze_phase phase;

	unsigned nwriting;
	struct list held; /* struct waiter */
	struct thread_call call;
	atomic_bool called;
};

struct snapshot_freeze {
	pthread_mutex_t lock; /* guards the next ones, and the phases of the threads */
	uint64_t sent;        /* the snapshot that the last FROZEN was sent for */
	bool busy;            /* the call is in use */
	struct rpc_call call;
	struct fs *fs;

	/* Pages that may be written without asking, of the snapshot bits_id. */
	_Atomic uint64_t *bits;
	uint64_t nbits, region_pages;
	_Atomic uint64_t bits_id;
};

void snapshot_freeze_init(struct snapshot_freeze *f, struct fs *fs);
void snapshot_freeze_fini(struct snapshot_freeze *f);
void snapshot_freeze_thread_init(struct freeze_thread *t, struct io_thread *thread);

/* Does what is due, after events and about every 100 ms. */
void snapshot_freeze_step(struct io_thread *thread);

/* Before a request's write begins. False: it is held, and then(req, 0) follows. */
bool snapshot_freeze_enter(struct request *req, void (*then)(struct request *req, int status));
void snapshot_freeze_leave(struct request *req);

/* Up to max extents of committed pages of [*fpage, end) that must be asked for. Where the file is
 * being written in order, pages behind `end` are included. *fpage: how far was looked. */
unsigned snapshot_freeze_protected_locked(
	struct inode *inode, uint64_t *fpage, uint64_t end, struct extent *out, unsigned max);
/* While nobody writes: all pages are to be asked for, once each for the snapshot `id`; without
 * memory each time. */
void snapshot_freeze_forget_pages(struct snapshot_freeze *f, uint64_t id);
/* The session has ended: the next one has sent nothing, and asked for nothing. */
void snapshot_freeze_forget(struct snapshot_freeze *f);
/* These extents were asked for. */
void snapshot_freeze_unprotected(struct fs *fs, const struct extent *e, unsigned n);

#endif
