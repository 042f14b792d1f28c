/* name_queue.h - changes of names, and of attributes of directories and symbolic links, that this
 * client has made by itself, and that the server does not know yet.
 *
 * UNLINK, RMDIR, MKDIR, SYMLINK, LINK, RENAME, and SETATTR of
 * directories and links are answered here
 * where ops/remove_here.h, make_here.h, link_here.h, move_here.h and set_here.h allow it. These
 * changes are one queue for the whole mount, in the order of their answers. It goes to the server
 * by NAMES, one message at a time: when as many have gathered as one message takes, when something
 * comes behind them, and within a second.
 *
 *     answered -> queued -> sent -> answered by the server
 *
 * Behind the changes that were answered before it comes
 * - each request that changes something at the server, also a COMMIT or MAKE (commit.h). So if this
 *   client dies, the server has a beginning of all these changes and closes, in the order in
 *   which its programs saw them. Bytes that are written in place are in no such order, and a new
 *   file takes its place with its MAKE;
 * - fsync of anything, a write with O_DSYNC or O_SYNC, and close of a file that was open for
 *   writing;
 * - a request that reads the directory, or is about the inode;
 * - a snapshot, a change to read-only, an upgrade, the end of the mount (commit_tick()).
 *
 * OWNERSHIP  A struct name_change has a reference to its inode and its directory, and the inode
 *            points to it, from the answer to the program to that of the NAMES. If the server
 *            refuses, nothing that is known of the directory is believed any more. An inode may
 *            have several NAME_SETs, and another change as well: it counts them (inode.nsets).
 * THREADS    Any. The lock is taken inside an inode's lock, and inboxes' inside it. A message is
 *            filled, and its answer is taken, by the thread that sends it, without the lock.
 * ERRORS     What the server refuses has not happened: name_hooks.refused.
 */
#ifndef RMEMFS_DAEMON_FILE_NAME_QUEUE_H
#define RMEMFS_DAEMON_FILE_NAME_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "daemon/file/name_change.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote.h"

struct inode;
struct io_thread;

/* MESSAGE: changes in one message, at most. QUEUE: more that wait are not taken. */
enum { NAME_MESSAGE = 128, NAME_QUEUE = 512, NAME_TAIL_BYTES = RPC_MSG_BYTES - 256 };

struct name_hooks {
	/* A removal is about to be sent. Whether nobody uses the inode any more: then the server
	 * ends it with the name, and it counts as returned. Called under the inode's lock, once
	 * more if the message has to be sent again. */
	bool (*gives_up_locked)(struct inode *inode);
	/* The server has answered, and the inode has no struct name_change any more. Not called of
	 * a NAME_SET, which takes no name. */
	void (*settle)(struct inode *inode, struct io_thread *thread);
	/* The same, before settle: it has not happened. */
	void (*refused)(struct inode *inode, const struct name_change *one, int status);
};

/* Something that is no request, and waits for the changes before it. When its call is run it asks
 * again, since more may have been changed meanwhile. From the second time on that it has to wait,
 * no further changes are taken before it has asked again. So programs that change names all the
 * time do not hold it up for ever. */
struct name_behind {
	struct list link;
	uint64_t until;
	struct io_thread *thread;
	struct thread_call call; /* call.run is the caller's */
	struct thread_call wake;
	/* The caller's: false before it asks for the first time, and when a message that took names
	 * along was not refused. */
	bool again;
	bool closes; /* no further changes are taken */
};

struct name_queue {
	const struct name_hooks *hooks;
	pthread_mutex_t lock;
	struct list queued, sent;
	atomic_uint n; /* of both */
	unsigned nqueued;
	uint64_t last, done; /* numbers: of the last one; all up to it are answered */
	uint64_t wanted;     /* those up to it are sent at once */
	unsigned nalone;     /* so many are sent one by one: together they were refused */
	struct list waiters; /* struct waiter, by `until` */
	struct list behind;  /* struct name_behind */
	unsigned nclosing; /* of these, or of those whose call is run: no more changes are taken */
	bool lost;         /* some, with the session: name_queue_take_loss() */
	bool running;      /* a message is on its way, or is being filled */
	bool called;       /* `call` is in an inbox */
	struct thread_call call;
	struct io_thread *caller;

	/* The message's. */
	struct io_thread *thread;
	struct rpc_call rpc;
	uint8_t tail[NAME_TAIL_BYTES];
};

void name_queue_init(struct name_queue *r, const struct name_hooks *hooks);
void name_queue_fini(struct name_queue *r);

static inline bool name_queue_any(const struct name_queue *r)
{
	return atomic_load(&r->n);
}

/* Whether one more may be taken. */
bool name_queue_has_room(struct name_queue *r);

/* Under the inode's lock. name_queue_added() follows, without it. */
void name_queue_add_locked(struct name_queue *r, struct name_change *one);
void name_queue_added(struct name_queue *r, struct io_thread *thread);

/* Sends all that are queued, if no message is on its way; else behind that. */
void name_queue_flush(struct name_queue *r, struct io_thread *thread);

/* For a MAKE that is about to be sent: how it comes behind all changes. */
enum name_along {
	ALONG_NONE, /* there are none */
	/* They are in the message, before its files. name_queue_along_answered() follows, or
	 * name_queue_along_back(). */
	ALONG_TAKEN,
	/* One is on its way, or they don't fit: behind->call is run in the thread. */
	ALONG_BEHIND,
};
enum { ALONG_BYTES_MAX = 8192 }; /* that they take in such a message */
enum name_along name_queue_go_along(struct name_queue *r, struct name_behind *behind,
	struct io_thread *thread, struct wire_out *w);
/* status: the message's; 0: `rep` has what became of the changes. True: all have taken effect, and
 * the server has looked at the files. */
bool name_queue_along_answered(struct name_queue *r, int status, const struct rpc_names_reply *rep);
/* The message is not sent. */
void name_queue_along_back(struct name_queue *r);
/* Whether one was changed after name_queue_go_along() returned ALONG_NONE or ALONG_TAKEN, and is
 * not answered. May be called under an inode's lock. */
bool name_queue_has_later(struct name_queue *r, const struct name_behind *behind);

/* Whether some are lost with a session since the loss was last taken. */
bool name_queue_has_lost(struct name_queue *r);
bool name_queue_take_loss(struct name_queue *r);

/* The number up to which a request has to wait; 0: there is nothing to wait for. */
uint64_t name_queue_before(struct name_queue *r, const struct op_about *about);
/* Waits until all up to that number are answered. True: there is nothing to wait for. False:
 * then(req, status) follows; -ECANCELED: the operation was taken back; -EIO: some are lost with the
 * session; -ESTALE: there will be no other one. */
bool name_queue_wait(
	struct request *req, uint64_t until, void (*then)(struct request *req, int status));
/* The same for all that there are now. */
bool name_queue_wait_all(struct request *req, void (*then)(struct request *req, int status));
/* The same for all that there are now: false: behind->call is run in the thread. May be called
 * under an inode's lock. */
bool name_queue_wait_behind(
	struct name_queue *r, struct name_behind *behind, struct io_thread *thread);

#endif
