/* barrier.h - requests that wait, before they begin, until something is over for the whole mount.
 *
 * Each thread holds its own requests. The end of what they wait for wakes all threads. Each thread
 * checks again before it lets the next request go: one that begins may bring something new to wait
 * for.
 *
 * A held request has taken nothing, so nothing that goes on waits for it. While there is memory
 * (request_may_set_aside()) it keeps neither a data buffer nor one of its thread's requests, which
 * operations that go on, or what is behind them, may need. But an append keeps its place
 * (append_order.h).
 *
 * OWNERSHIP  A held request is in its thread's list until it goes on, or op_cancel() takes it out.
 * THREADS    barrier_hold() in the request's thread, where it goes on, too; barrier_wake() in any.
 */
#ifndef RMEMFS_DAEMON_BARRIER_BARRIER_H
#define RMEMFS_DAEMON_BARRIER_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/list.h"
#include "daemon/request/io_thread.h"
#include "daemon/op/op.h"

struct barrier {
	struct fs *fs;
	enum op_wait wait; /* the wait of the operations that are held */
	bool (*lasts)(const struct fs *fs);
	struct barrier_thread {
		struct barrier *hold;
		struct list requests; /* struct waiter */
		struct thread_call call;
		atomic_bool called; /* and has not run yet */
	} threads[IO_THREADS_MAX];
};

/* lasts(fs): whether held requests go on waiting; any thread asks. */
void barrier_init(
	struct barrier *h, struct fs *fs, enum op_wait wait, bool (*lasts)(const struct fs *fs));

/* then(req, 0) follows, or then(req, -ECANCELED) if it is taken back. */
void barrier_hold(
	struct barrier *h, struct request *req, void (*then)(struct request *req, int status));

/* To be called after the wait may have ended. */
void barrier_wake(struct barrier *h);

#endif
