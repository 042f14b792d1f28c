/* append_order.h - the order of what is appended to a file of a sharing mount: one WRITE after the other.
 *
 * The kernel appends at the end that it knows, which others may have moved: each WRITE goes to
 * where the file ends when its turn comes (ops_write.c). The kernel lets its own callers append one
 * after the other, but it sends what one of them appends asynchronously, if that is long, in pieces
 * that are all on their way at once, and any threads read them. By the kernel's offsets these are
 * in order. So a WRITE that appends has its place among them from when it is read, whatever else it
 * has to wait for before it begins (abandoned.h, session_renewal.h). Then it waits, before it asks
 * for a lease, until all with lower offsets have ended; and before that until none can have been
 * read that has no place yet:
 *
 *     messages are read in the order in which they were sent -> those sent before this one that
 *     have none are with a thread that is just reading, or are parked there -> that one is asked
 *
 * One that is taken back while a thread is asked fails when that looks again, whatever is parked
 * there: that may wait for what ends after this one (session_renewal.h).
 *
 * When one fails the pieces behind it that have been read do, too, since nothing is to lie behind
 * what is missing. One that is read later can't be told from another append; but the kernel, which
 * tells its caller of one failure, then cuts the file off at the end that it knew.
 *
 * OWNERSHIP  A WRITE's place is in its struct op, and has a reference to the inode.
 * THREADS    The queue belongs to the inode's lock. The thread that is asked looks in its own turn.
 */
#ifndef RMEMFS_DAEMON_LEASE_APPEND_ORDER_H
#define RMEMFS_DAEMON_LEASE_APPEND_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/op/hold.h"
#include "common/base/list.h"
#include "daemon/request/io_thread.h"

struct inode;
struct op;
struct request;

/* Of an inode. */
struct appends {
	bool inside;         /* one has its turn */
	struct list waiting; /* struct op_append, the lowest offset first */
};

struct op_append {
	struct op_hold hold;
	struct list link;     /* before its turn */
	struct inode *inode;  /* NULL: it does not append */
	uint64_t offset;      /* the kernel's */
	bool inside, settled; /* it may begin, and all that come before it have their places */
	bool unwanted;        /* it was taken back before they had */
	int status;           /* what it fails with, as the one before it has, or by itself */
	unsigned asked;       /* the thread that looks, by its index */
	struct thread_call call;
};

void append_order_init(struct appends *a);

/* A request of a sharing mount was read: takes its place, if it appends. */
void append_order_queue(struct request *req);
/* Before it begins. True: it does not append, or it has its turn. False: then(req, status) follows;
 * wait_aside() is to be called. */
bool append_order_enter(struct request *req, void (*then)(struct request *req, int status));
/* Its end, whether it has begun or not, with what is answered (reply_error()); harmless for all
 * others. */
void append_order_leave(struct request *req, int status);
/* What it appends is the file's from now on, though it goes on, under the inode's lock. */
void append_order_done_locked(struct request *req);

/* Takes it back. False: it has its turn, or is about to, or it is not yet known whether it has. */
bool append_order_withdraw(struct request *req);

#endif
