/* fuse_ops.h - where the kernel's messages go: the functions that the FUSE port calls in the
 * filesystem above it.
 *
 * serve/ fills the table, and hands it to each I/O thread before the thread runs.
 *
 * THREADS    Each is called in the I/O thread of the request, or of the message.
 */
#ifndef RMEMFS_DAEMON_FUSE_FUSE_OPS_H
#define RMEMFS_DAEMON_FUSE_FUSE_OPS_H

#include <stdbool.h>
#include <stdint.h>

struct forget;
struct io_thread;
struct request;

struct fuse_ops {
	/* A request was decoded. It is the filesystem's until one of the reply_*() calls. */
	void (*dispatch)(struct request *req);
	/* Once for each element of FORGET and BATCH_FORGET; has no reply. */
	void (*forget)(struct io_thread *thread, const struct forget *forget);
	/* The caller of a request that is not answered was signalled. */
	void (*interrupt)(struct request *req);
	/* The same if the thread has no request of that number. False: nothing of that number waits
	 * elsewhere. */
	bool (*interrupt_other)(struct io_thread *thread, uint64_t unique);
	/* The request ends with an error. True: it does not end, but begins anew in another
	 * session. False: *error is for its caller. */
	bool (*begins_anew)(struct request *req, int *error);
	/* Whether the kernel needs this request, which was only decoded, before it can drop
	 * pages. */
	bool (*holds_up_dropping)(struct request *req);

	/* Before a message is read: IO_BYTES_MAX zero bytes where its payload may stay. NULL: it
	 * goes into the thread's buffer. Else payload_arrived() follows, then perhaps dispatch(),
	 * then payload_done(). */
	void *(*payload_home)(struct io_thread *thread);
	/* So many bytes have arrived there, and belong at `buffer` unless the request takes them;
	 * or -errno. `stays`: the message may be a request that takes them; else they go to
	 * `buffer` now. */
	void (*payload_arrived)(struct io_thread *thread, void *buffer, int64_t len, bool stays);
	/* The message with that number was dealt with. If its request still waits, it finds its
	 * payload in its buffer from now on. */
	void (*payload_done)(struct io_thread *thread, uint64_t unique);
};

#endif
