/* io_thread.h - the threads that carry requests from the kernel to the memory server and back.
 *
 * Each has its own clone of /dev/fuse, its own event queue with one channel, its own requests and
 * data buffers. It runs each request that it reads to completion: read, decode, post, go on
 * reading, reply when the transfer has ended. When idle it spins for spin_us, where that has paid
 * lately (spin.h), then sleeps on all its descriptors.
 *
 *     main starts and joins them; fs.h is called from their loops.
 *
 * OWNERSHIP  main creates the threads' structs before the session connects, and deletes them after
 *            the session has closed.
 * THREADS    Everything in here belongs to the thread itself, except io_thread_call().
 */
#ifndef RMEMFS_DAEMON_REQUEST_IO_THREAD_H
#define RMEMFS_DAEMON_REQUEST_IO_THREAD_H

#include <stdint.h>

#include "common/base/list.h"
#include "common/transport/transport.h"
#include "daemon/request/request.h"

struct fs;
struct fuse_ops; /* fuse/fuse_ops.h */
struct fuse_port;
struct remote; /* the thread's end of the session: remote.h */

/* Work handed to a thread by another one; embedded in the giver's struct. */
struct thread_call {
	struct list link;
	void (*run)(struct thread_call *call);
	int64_t at_ms; /* io_thread_call_later()'s */
};

/* Before they sleep, threads look for work for `us` microseconds, where that pays (spin.h).
 * Meanwhile at most `readers` of them read /dev/fuse (readers.h). */
struct spinning {
	unsigned us, readers;
};

enum { IO_THREADS_MAX = 16 };

struct io_thread {
	unsigned index;
	struct fs *fs;
	struct fuse_port *port;
	const struct fuse_ops *ops; /* where its messages go */
	struct request_shared *shared;
	struct evq *evq;          /* made by remote_init() */
	struct remote *remote;    /* likewise */
	const struct buffer *mem; /* all the data buffers, registered once */
	struct io_thread_private *priv;
};

/* The index-th thread of the same mount, counted round; and the number of threads. */
struct io_thread *io_thread_sibling(const struct io_thread *thread, unsigned index);
unsigned io_thread_siblings(const struct io_thread *thread);

struct counters; /* counters.h */
const struct counters *io_thread_counters(const struct io_thread *thread);

/* Runs call->run(call) in the thread, soon. Any thread may call it; nothing is allocated. */
void io_thread_call(struct io_thread *thread, struct thread_call *call);
/* The same in `ms` milliseconds, or soon after, in the caller's own thread. */
void io_thread_call_later(struct io_thread *thread, struct thread_call *call, unsigned ms);

/* Time as of this turn of the loop, BOOTTIME ms. */
int64_t io_thread_now(const struct io_thread *thread);

/* How much the thread lacked a CPU, and how late it was. */
struct cpu_wait_view;
void io_thread_cpu(const struct io_thread *thread, struct cpu_wait_view *view);

#endif
