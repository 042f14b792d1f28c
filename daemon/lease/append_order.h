/* append_order.h - the order of what is appended to a file of a mount that shares, or has ever shared:
 * one WRITE after the other.
 *
 * The kernel appends at the end that it knows, but other clients may have moved the end. So each
 * WRITE goes to where the file ends when its turn comes (ops/write.c). The kernel lets its own
 * callers append one after the other. But it sends a long asynchronous append in pieces that are
 * all on their way at once, and any threads read them. The kernel's offsets give their order.
 *
 * So an appending WRITE gets its place when it is read, whatever it has to wait for before it
 * begins (abandoned.h, session_renewal.h). Before it asks for a lease, it waits until all WRITEs
 * with lower offsets have ended. Before that, it waits until every WRITE that was read has its
 * place:
 *
 *     the kernel's messages are read in the order in which they were sent -> an earlier one without
 *     a place is with a thread that is just reading, or is parked there -> that thread is asked
 *
 * If a WRITE is taken back while a thread is asked, it fails as soon as that thread looks again,
 * whatever is parked there. A parked message may wait for what ends after this WRITE
 * (session_renewal.h).
 *
 * If one piece fails, the pieces behind it that were read fail, too: nothing may lie behind missing
 * bytes. A piece that is read later can't be told from another append. But the kernel, which tells
 * its caller of one failure, then cuts the file off at the end that it knew.
 *
 * A mount that has never shared needs no order: the kernel knows all ends, and each WRITE goes to
 * the kernel's offset. When such a mount begins to share (barrier/conversion.h), pieces of one
 * append may be held. They take their places then. A later piece may have been written before the
 * mount stood still, and the kernel extends a file by one request at a time. So a held piece in
 * front of the file's end belongs where the kernel has sent it.
 *
 * A piece that is parked all that time is not known to belong there: it goes to the end.
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
	bool inside, settled; /* it has its turn; all WRITEs before it have their places */
	bool unwanted;        /* it was taken back before it was settled */
	bool stays;           /* it goes to the kernel's offset */
	int status;           /* the error that it fails with, from the one before it or its own */
	unsigned asked;       /* the index of the thread that looks */
	struct thread_call call;
};

void append_order_init(struct appends *a);

/* Whether the request is a WRITE that goes to where the file ends when its turn comes. */
bool append_order_appends(const struct request *req);
/* A request was read. If it appends, and the mount shares or has ever shared, it takes its place,
 * unless it has one. */
void append_order_queue(struct request *req);
/* A request is about to be held while the mount may begin to share. If it appends, it takes its
 * place, unless it has one. */
void append_order_hold(struct request *req);
/* All is held, and a mount that has never shared begins to share. Under the inode's lock. */
void append_order_share_locked(struct inode *inode);
/* A request that has not entered: whether a WRITE behind it has its place, and so waits for this
 * one.
 */
bool append_order_is_waited_for(struct request *req);
/* Before the WRITE begins. True: it does not append, or it has its turn. False: then(req, status)
 * follows, and the caller calls wait_aside(). */
bool append_order_enter(struct request *req, void (*then)(struct request *req, int status));
/* The WRITE ends, whether it has begun or not; status is what is answered (reply_error()). Harmless
 * for all other requests. */
void append_order_leave(struct request *req, int status);
/* The appended bytes are part of the file from now on, though the request goes on. Under the
 * inode's lock. */
void append_order_done_locked(struct request *req);

/* Takes the WRITE back. False: it has its turn or is about to get it, or that is not known yet. */
bool append_order_withdraw(struct request *req);

#endif
