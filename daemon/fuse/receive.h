/* receive.h - reading the kernel's messages, and keeping those that there is no room for.
 *
 * THREADS    The I/O thread's own, unless said otherwise.
 */
#ifndef RMEMFS_DAEMON_FUSE_RECEIVE_H
#define RMEMFS_DAEMON_FUSE_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_thread;

enum { RECEIVE_GONE = -1, RECEIVE_NOTHING = 0, RECEIVE_ONE = 1 };

/* Whether a message may be read now. */
bool fuse_receive_ready(struct io_thread *thread);
/* Reads a message, if there is one, and starts what it asks for. */
int fuse_receive(struct io_thread *thread);
/* Starts parked messages for which there is room now. Returns how many. */
unsigned fuse_receive_parked(struct io_thread *thread);
/* How many messages are parked, and when the oldest was read; 0: none is. The thread's own. */
unsigned fuse_receive_nparked(const struct io_thread *thread, int64_t *oldest_ns);
/* Ends those whose callers are being killed (caller_ends_wait()), or exit while the server is
 * away. */
void fuse_receive_give_up_parked(struct io_thread *thread);
/* Ends with EIO those that a soft mount may end. */
void fuse_receive_refuse_parked(struct io_thread *thread);
void fuse_receive_drop_parked(struct io_thread *thread);

/* ---- of a mount that moves to another daemon (handover/sharing.h) ---------------------------- */

/* A message that is parked. It is answered by the descriptor that it was read from, which is the
 * thread's. */
struct fuse_parked {
	unsigned thread; /* its index */
	bool interrupted;
	int64_t since_ms, read_ns;
	const void *msg;
	size_t len;
};
/* Whether all parked messages were read since the mount is paused: they wait for its end. */
bool fuse_receive_parked_stay(const struct io_thread *thread);
/* Calls fn for each, in order. While the mount stands: any thread. */
void fuse_receive_each_parked(struct io_thread *thread,
	void (*fn)(const struct fuse_parked *message, void *arg), void *arg);
/* Before the threads run. -ENOMEM; -EINVAL: that is no message. */
int fuse_receive_adopt_parked(struct io_thread *thread, const struct fuse_parked *message);

/* For any thread, also outside of the mount. The kernel is about to drop pages before their lease
 * goes; it has dropped them. It may wait for messages that no thread has read yet, or that are
 * parked. */
void fuse_receive_drop_begins(struct io_thread *thread);
void fuse_receive_drop_ended(struct io_thread *thread);
bool fuse_receive_is_dropping(const struct io_thread *thread);

/* Any thread: whether this one may have read a message before now and not dispatched it. `asking`
 * is the caller's own thread. */
bool fuse_receive_may_hide(const struct io_thread *thread, const struct io_thread *asking);
/* The thread's own: whether it has parked a WRITE that appends to the file below this offset. */
bool fuse_receive_has_parked_append(const struct io_thread *thread, uint64_t node, uint64_t offset);

#endif
