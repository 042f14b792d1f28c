/* lock_wait.h - who waits for a lock of a file at a shared export. Who has locks is lock_owner.h's.
 *
 *     SETLKW -> lock_wait -> LOCK, "noted" -> (the server has news, or is back) -> LOCK -> answer
 *
 * Many may wait, and for long, so who waits has nothing but memory: no request, and at the server
 * no slot. When a lock may be had is told by the tail of PING's reply; the LOCK is sent again then.
 * Any signal ends a wait. It is withdrawn at the server before the caller hears of it, so that
 * nobody is refused for waiting for who waits no more; without the server he hears of it at once.
 * What is still on its way for one who heard is leaving (lock_owner.h).
 *
 * THREADS    A wait belongs to the I/O thread that has read it; the list of all waits, and what the
 *            others tell one, to fs.locks->lock.
 */
#ifndef RMEMFS_DAEMON_LOCK_LOCK_WAIT_H
#define RMEMFS_DAEMON_LOCK_LOCK_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"

struct io_thread;
struct request;

struct locks {
	pthread_mutex_t lock;
	struct list waits; /* struct lock_wait */
	uint64_t number;   /* atomic: of the last wait, or owner */
};
void locks_init(struct locks *locks);
void locks_fini(struct locks *locks);
/* One that the mount has not used before; not 0. */
uint64_t locks_number(struct locks *locks);

/* SETLKW: the request ends, and who sent it is answered some time. */
void lock_wait_begin(struct request *req);
/* The caller of the message `unique` was signalled. False: it does not wait here. */
bool lock_interrupt(struct io_thread *thread, uint64_t unique);
/* The server has told that what this one waits for may be had. */
void lock_look_again(struct io_thread *thread, uint64_t number);
/* The thread's connection is back: the server may be another one, that knows of no waits. */
void lock_look_at_all(struct io_thread *thread);
void lock_tick(struct io_thread *thread);

#endif
