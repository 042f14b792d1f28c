/* lock_wait.h - callers that wait for a lock of a file at a shared export. lock_owner.h has those
 * with locks.
 *
 *     SETLKW -> lock_wait -> LOCK, "noted" -> (the server has news, or is back) -> LOCK -> answer
 *
 * Many callers may wait, and for long. So a wait has nothing but memory: no request, and no slot of
 * the session. The tail of PING's reply tells when the lock may be had; then the LOCK is sent
 * again.
 *
 * Any signal ends a wait. It is withdrawn at the server before the caller hears of the signal, so
 * that no other client is refused because of a wait that is over. Without the server the caller
 * hears of it at once. A message that is still on its way then is leaving (lock_owner.h).
 *
 * THREADS    A wait belongs to the I/O thread that has read it. fs.locks->lock guards the list of
 *            all waits, and what the other threads tell one.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCK_WAIT_H
#define RMEMFS_DAEMON_LOCK_LOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "daemon/lock/locks.h"

struct io_thread;
struct request;

void locks_init(struct locks *locks);
void locks_fini(struct locks *locks);

/* SETLKW: the request ends here, and its caller is answered later. */
void lock_wait_begin(struct request *req);
/* The caller of the message `unique` was signalled. False: that message does not wait here. */
bool lock_interrupt(struct io_thread *thread, uint64_t unique);
/* The server has told that the lock of this wait may be had. */
void lock_look_again(struct io_thread *thread, uint64_t number);
/* The thread's connection is back. The server may have been started again, and know of no waits. */
void lock_look_at_all(struct io_thread *thread);
void lock_tick(struct io_thread *thread);

/* ---- of a mount that moves to another daemon (handover/sharing.h) ---------------------------- */

/* A wait of which the server knows. Its caller is answered on the descriptor that it was read from,
 * which is the thread's. */
struct lock_wait_kept {
	uint64_t unique;
	uint32_t pid;
	uint32_t thread; /* its index */
	struct rpc_lock lock;
};
/* Whether nothing of the thread's waits is on its way or due: all of them only wait. */
bool lock_waits_stand(struct io_thread *thread);
/* All of the mount, in order: room for n of them in v. Returns their number, which may be
 * greater. */
unsigned lock_waits_describe(struct locks *locks, struct lock_wait_kept *v, unsigned n);
/* Before the threads run. Its inode is there, with its owners. Waits until lock_look_at_all().
 * -ENOMEM; -EINVAL: it makes no sense. */
int lock_wait_adopt(struct io_thread *thread, const struct lock_wait_kept *kept);

#endif
