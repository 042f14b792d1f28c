/* lock.h - locks of files at a shared export, which the server keeps: who waits for one, and what
 * goes when a file is closed.
 *
 *     SETLKW -> lock_wait -> LOCK, "noted" -> (the server has news, or is back) -> LOCK -> answer
 *
 * Many may wait, and for long, so who waits has nothing but memory: no request, and at the server
 * no slot. When a lock may be had is told by the tail of PING's reply; the LOCK is sent again then.
 * Any signal ends a wait. It is withdrawn at the server before the caller hears of it, so that
 * nobody is refused for waiting for who waits no more; without the server he hears of it at once.
 *
 * Of an owner of record locks is remembered that he may have some, until he closes a handle of the
 * file (FLUSH), or the handle that he has locked by is closed by all (RELEASE: the locks of an open
 * file). So a close costs an RPC only where something was locked.
 *
 * THREADS    A wait belongs to the I/O thread that has read it; the list of all waits, and what the
 *            others tell one, to fs.locks.lock. Owners are under the inode's lock.
 */
#ifndef RMEMFS_DAEMON_LOCK_H
#define RMEMFS_DAEMON_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "common/rpc.h"

struct handle;
struct inode;
struct io_thread;
struct request;

struct locks {
	pthread_mutex_t lock;
	struct list waits; /* struct lock_wait */
	uint64_t number;   /* of the last one */
};
void locks_init(struct locks *locks);
void locks_fini(struct locks *locks);

/* Of an inode. */
struct inode_locks {
	struct list owners; /* struct lock_owner */
};
void inode_locks_init(struct inode_locks *locks);
void inode_locks_fini(struct inode_locks *locks);

/* What the request asks for may give its owner a record lock. -ENOLCK: no memory. */
int lock_note_owner(const struct request *req, struct inode *inode);

/* SETLKW: the request ends, and who sent it is answered some time. */
void lock_wait_begin(struct request *req);
/* The caller of the message `unique` was signalled. False: it does not wait here. */
bool lock_interrupt(struct io_thread *thread, uint64_t unique);
/* The server has told that what this one waits for may be had. */
void lock_look_again(struct io_thread *thread, uint64_t number);
/* The thread's connection is back: the server may be another one, that knows of no waits. */
void lock_look_at_all(struct io_thread *thread);
void lock_tick(struct io_thread *thread);

/* What a request asks for, without a wait. */
struct rpc_lock lock_asked(const struct request *req);
/* That was granted to nobody: it is given up. */
void lock_give_up(const struct request *req);
/* FLUSH: the owner's record locks go. True: he has none. False: then(req, status) follows. */
bool lock_flush(struct request *req, void (*then)(struct request *req, int status));
/* RELEASE: what belongs to the handle goes. */
void lock_handle_closed(struct request *req, struct inode *inode, const struct handle *handle);

#endif
