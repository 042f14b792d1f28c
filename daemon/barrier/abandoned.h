/* abandoned.h - operations that go on although their callers were told that they are over, and
 * requests that wait for them.
 *
 * While the server is away, a caller that gets a signal is answered, and so is every caller on a
 * soft mount that gives up. The operation was sent, and happens all the same, perhaps only when the
 * server is back. Each I/O thread finds the server again in its own time. A program that is started
 * again must not meet what the one before has left: the UNLINK of a journal that it is reading,
 * say. So a request that comes after such an answer is held until everything that was answered so
 * has ended. Requests that neither see nor change files and names are not held. Until then the
 * kernel answers from its caches with what was before; after each such operation it has to ask anew
 * (expire.h).
 *
 * A client that is stopped must not hold up all of this mount. So if such an operation waits for
 * other clients when the server is back, it is taken back (interrupt_request()).
 *
 * THREADS    Requests begin and end in their own thread; the last one to end wakes all threads
 *            (barrier.h).
 */
#ifndef RMEMFS_DAEMON_BARRIER_ABANDONED_H
#define RMEMFS_DAEMON_BARRIER_ABANDONED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/barrier/barrier.h"

struct fs;
struct request;

struct abandoned {
	atomic_uint n; /* 0 but for moments after the server was away */
	struct barrier hold;
};

void abandoned_init(struct abandoned *l, struct fs *fs);

/* Answers with `error` now. The operation, which has begun, goes on by itself, and the ticks look
 * after it (op_watch()). */
void abandoned_make(struct request *req, int error);
/* For each operation that ends, while it still has its inode. */
void abandoned_end(struct request *req);

/* Before a request begins. False: it is held, and then(req, 0) follows, or then(req, -ECANCELED) if
 * it is taken back. */
bool abandoned_enter(struct request *req, void (*then)(struct request *req, int status));

#endif
