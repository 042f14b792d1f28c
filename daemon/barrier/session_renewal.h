/* session_renewal.h - a sharing mount whose session was ended by the server begins another one.
 *
 * Others had to wait for what this client had, and it did not give that back in time: its process
 * was stopped, or its link was gone. So what it knew is not true any more, what it had written and
 * not committed is lost, and nothing of the old session may be used in a new one.
 *
 *     ATTACH: -EIDRM -> every thread: channel deleted, all that has begun is taken back, or ends ->
 *     all threads are idle -> one of them forgets everything -> ATTACH of a new session -> what was
 *     held meanwhile begins
 *
 * Operations by name that changed nothing, or of which nothing was sent, are done again in the new
 * session; others end with EIO, for nobody knows what has become of them. Handles from before are
 * stale: their first operation on data ends with EIO, FSYNC if something was lost, and then they
 * are as good as new ones, where the file is still there. But a handle by which a lock was had is
 * of no use any more: what the lock has protected, others may have changed. Data that is lost is
 * told to each who has the file open (commit.h), and logged by path.
 *
 * What comes meanwhile is held, but for data of stale handles, and what the kernel reads for its
 * cache or writes back from it: that ends with EIO, since what is being taken back may wait for the
 * page. It tells nobody: reading ahead fails unseen, what could not be written back msync(2) tells,
 * and a page that is written back may come by another's handle. So who has mapped a file, and does
 * nothing else with it, finds it as it is now.
 *
 * A mount that doesn't share has no new session: its export is somebody else's then, or was, and
 * the kernel has much cached. It is to be mounted anew.
 *
 * THREADS    Each thread holds its own requests (barrier.h). Whoever is the last to be idle
 * forgets; the others do nothing meanwhile that touches what is forgotten.
 */
#ifndef RMEMFS_DAEMON_BARRIER_SESSION_RENEWAL_H
#define RMEMFS_DAEMON_BARRIER_SESSION_RENEWAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/barrier/barrier.h"

struct fs;
struct handle;
struct request;

enum renewal_phase {
	RENEWAL_NONE,
	RENEWAL_ENDS,     /* what has begun */
	RENEWAL_ATTACHES, /* and nothing is known any more */
};

struct session_renewal {
	_Atomic enum renewal_phase phase;
	atomic_uint session; /* counts them: handles of another number are stale */
	struct barrier hold;
	/* Begins a request that was held, or ends it. */
	void (*begin)(struct request *req, int status);
	pthread_mutex_t lock;
	uint32_t idle; /* a bit for each thread */
};

void session_renewal_init(
	struct session_renewal *r, struct fs *fs, void (*begin)(struct request *req, int status));
void session_renewal_fini(struct session_renewal *r);

/* Does what is due, after events and about every 100 ms. */
void session_renewal_step(struct io_thread *thread);

/* Before a request of a sharing mount begins. False: it was answered, or it is held and
 * begin(req, 0) follows, or begin(req, -ECANCELED) if it is taken back. STATFS needs no session. */
bool session_renewal_enter(struct request *req);
/* An operation ends with an error while the session ends. True: it is held, to begin anew. False:
 * *error is what its caller is to be told. */
bool session_renewal_takes_back(struct request *req, int *error);

/* Of a file that is opened now. */
void session_renewal_handle_opened(struct fs *fs, struct handle *handle);

#endif
