/* conversion_private.h - what both ways of a conversion need (conversion.h).
 *
 * THREADS    Thread 0, while all are idle, but for conversion_phase_of().
 */
#ifndef RMEMFS_DAEMON_BARRIER_CONVERSION_PRIVATE_H
#define RMEMFS_DAEMON_BARRIER_CONVERSION_PRIVATE_H

#include "common/rpc/rpc.h"
#include "daemon/barrier/conversion.h"
#include "daemon/fuse/notifier.h"
#include "daemon/op/fs_parts.h"

struct inode;

static inline enum conversion_phase conversion_phase_of(const struct fs *fs)
{
	return atomic_load_explicit(&fs->conversion->phase, memory_order_acquire);
}

/* Whether requests are held. */
bool conversion_holds(const struct fs *fs);
/* True: it was in this phase, and is in the next. */
bool conversion_go_on(struct fs *fs, enum conversion_phase from, enum conversion_phase to);

void conversion_send(struct io_thread *thread, enum rpc_convert_state state,
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep));

/* Access times, which may wait, are told at once while the mount is to stand still. */
void conversion_commit_all(struct fs *fs, bool all);

/* The times that the kernel was told are noted for a successor (record.h). */
void conversion_note_told(struct fs *fs);

/* Answers wait for these two; names, whose notifier may wait for a request that is held, do not
 * count. */
static inline bool conversion_kernel_is_told(struct fs *fs)
{
	return notifier_is_idle(&fs->dropper) && notifier_is_idle(&fs->notifier);
}

/* The server is asked anew. Data that it has refused was told to its writers. */
void conversion_forget_locked(struct fs *fs, struct inode *inode);

/* ---- the way back, conversion_back.c --------------------------------------------------------- */

/* Nobody waits for it, so it may not hold requests for long. True: it is over. */
bool conversion_back_gives_up(struct io_thread *thread, enum conversion_phase phase);
/* The mount is still. */
void conversion_back_returns(struct fs *fs);
/* CONVERSION_RETURNS. */
void conversion_back_step(struct io_thread *thread);

#endif
