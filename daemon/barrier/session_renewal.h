/* session_renewal.h - a sharing mount whose session was ended by the server begins another one.
 *
 * Other clients had to wait for what this client had, and it did not give that back in time: its
 * process was stopped, or its link was gone. All that this client knew is not true any more. Its
 * data that was not committed is lost. Nothing of the old session may be used in a new one.
 * If it was alone, and has changed names by itself that the server does not know of (names=local),
 * they are as before. Requests that make such changes durable, and that have waited for them or
 * come while the session is renewed, tell that.
 *
 *     ATTACH: -EIDRM -> every thread: channel deleted, all that has begun is taken back, or ends ->
 *     all threads are idle -> one of them forgets everything -> ATTACH of a new session -> what was
 *     held meanwhile begins
 *
 * An operation by name begins again in the new session if it changed nothing, or if nothing of it
 * was sent. Others end with EIO, since their outcome is not known. Handles from before are stale:
 * their first operation on data ends with EIO, or FSYNC if something was lost. After that they are
 * as good as new handles, if the file is still there. But a handle that had a lock is of no use any
 * more: others may have changed what the lock has protected. Lost data is told to each handle of
 * the file (commit.h), and logged by path.
 *
 * Requests that come meanwhile are held, except two kinds that end with EIO. One is data requests
 * of stale handles. The other is what the kernel reads for its cache or writes back from it, since
 * what is being taken back may wait for the page. Such an EIO tells nobody of the loss: reading
 * ahead fails unseen, msync(2) tells only what could not be written back, and a page may be written
 * back by another handle. So a program that only uses a mapping of a file finds the file as it is
 * now.
 *
 * A mount that doesn't share gets no new session: its export is another client's then, or was, and
 * the kernel has much cached. It has to be mounted anew.
 *
 * THREADS    Each thread holds its own requests (barrier.h). The last thread to become idle
 *            forgets; the others touch nothing meanwhile that is forgotten.
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
	RENEWAL_ENDS,     /* operations that have begun end */
	RENEWAL_ATTACHES, /* nothing is known any more */
};

struct session_renewal {
	_Atomic enum renewal_phase phase;
	atomic_uint session; /* counts them: handles of another number are stale */
	struct barrier hold;
	/* Begins a request that was held, or ends it. */
	void (*begin)(struct request *req, int status);
	atomic_uint next; /* `session` of the renewal that is under way, or else the next one */
	atomic_uint lost_names; /* `session` of the last renewal that names were lost in; 0: none */
	pthread_mutex_t lock;
	uint32_t idle; /* a bit for each thread */
};

void session_renewal_init(
	struct session_renewal *r, struct fs *fs, void (*begin)(struct request *req, int status));
void session_renewal_fini(struct session_renewal *r);

/* Does what is due, after events and about every 100 ms. */
void session_renewal_step(struct io_thread *thread);

/* Before a request of a sharing mount begins. False: it was answered, or it is held, and begin(req,
 * 0) follows, or begin(req, -ECANCELED) if it is taken back. STATFS needs no session. */
bool session_renewal_enter(struct request *req);
/* An operation ends with an error while the session ends. True: it is held, to begin anew. False:
 * *error is for its caller. */
bool session_renewal_takes_back(struct request *req, int *error);

/* To be called first of all. Makes a note in an FSYNC, FSYNCDIR or FLUSH for the next one. */
void session_renewal_note_arrival(struct request *req);
/* Of such a request: whether names were lost with a session since it has come; or at any time, if
 * there will be no other session. */
bool session_renewal_has_lost_names(struct request *req);

/* The handle belongs to a file that is opened now. */
void session_renewal_handle_opened(struct fs *fs, struct handle *handle);
/* Whether its user is yet to be told of a session that was lost; and that it is so, of a handle
 * that another process has opened. */
bool session_renewal_handle_is_stale(const struct fs *fs, const struct handle *handle);
void session_renewal_handle_adopted(struct fs *fs, struct handle *handle, bool stale);

#endif
