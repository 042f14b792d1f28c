/* session.h - the mounted client's session at one export, and how the I/O threads drive their ends
 * of it. What calls and I/O need of it stands in remote.h.
 *
 *     session_new       chooses and opens the transport; nothing is sent yet
 *     remote_init       for each thread, before it runs: its event queue, no channel yet
 *     session_connect   blocks, in the place of thread 0, until its channel is attached
 *     session_disconnect  ends it again, if the threads are not to run
 *     remote_event      each event of the thread's queue
 *     remote_tick       about every 100 ms: connects, pings, gives up; the first one of a thread
 *                       connects its channel
 *     session_has_ended the server has taken it away: see there
 *     remote_stop       the thread has no calls any more; the last thread to say so sends BYE
 *     remote_stopped    whether the thread may end
 *     remote_fini, session_delete
 *
 * OWNERSHIP  The session owns the transport; buffers registered with it are deregistered, and all
 *            remotes ended, before session_delete().
 * THREADS    session_new, session_connect, session_delete, remote_init and remote_fini while no
 *            other thread uses the session. remote_* else in the thread they are about.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_REMOTE_SESSION_H
#define RMEMFS_DAEMON_REMOTE_SESSION_H

#include "common/transport/address.h"
#include "common/transport/transport.h"
#include "daemon/remote/remote.h"

struct session_options {
	struct source source;
	char mountpoint[4096];
	bool auto_transport; /* else transport */
	enum transport_kind transport;
	unsigned port; /* 0: not given */
	bool read_only;
	bool exclusive; /* nobody else may have the export meanwhile */
	bool sharing;   /* others may write what this mount does: lease.h */
	unsigned connect_timeout_ms;
	int64_t connect_until_ms; /* by now_ms(); 0: connect_timeout_ms from session_new() on */
	unsigned peer_timeout_ms; /* of silence, after which a connection is given up */
	unsigned soft_ms;         /* after which operations without the server get EIO; 0: never */
	unsigned io_threads;      /* 1 .. IO_THREADS_MAX */
	uint64_t instance;        /* of this run */
};

/* What the session tells those above it; of a shared export only. Called in the thread named. */
struct session_events {
	/* The server asks for leases, or says that locks may be free: struct rpc_recall each. */
	void (*news)(struct io_thread *thread, const struct rpc_tail *recalls);
	/* The thread's channel is back. News may have been lost meanwhile. */
	void (*connected)(struct io_thread *thread);
	/* It asks for so many pages that nobody uses. */
	void (*pages_wanted)(struct io_thread *thread, uint64_t npages);
};

/* Resolves the host and opens the transport, which may block for connect_timeout_ms.
 * -EINVAL: options that exclude each other. -EHOSTUNREACH: no such host. -EAGAIN: its name
 * can't be resolved now. -ENODEV: no RDMA device has a route to it. */
int session_new(const struct session_options *options, const struct session_events *events,
	struct session **out, char *why, size_t whylen);
void session_delete(struct session *s);

/* The mount is gone: another one may be made in its place, which waits for the end of this session.
 * Any thread; harmless when it has been called. */
void session_leave_place(struct session *s);

struct transport *session_transport(struct session *s);
/* "tcp 127.0.0.1:7470": for logs. */
const char *session_server(const struct session *s);

/* Has the server take no change from this session any more, or take changes again: each thread
 * connects its channel anew, for keys of the other kind; what is under way is repeated there. Of a
 * session that becomes read-only nothing may be under way that changes something. Any thread. */
void session_set_read_only(struct session *s, bool read_only);
/* The server has refused to let it write, asked with the keys of that number: it is read-only
 * again, and says why, unless it has changed since. Any thread. */
void session_may_not_write(struct session *s, unsigned keys, const char *why);
bool session_is_read_only(const struct session *s);
/* Whether all channels have been attached since then. Any thread, while the remotes are there. */
bool session_has_keys(const struct session *s);

/* A session that shares its export was ended by the server, which others had to wait for. Its
 * channels are deleted, its calls end with -ESTALE and so do new ones, until all threads are idle
 * and one of them has forgotten what was known by it, and says that another one is to be made. Then
 * calls wait for that. Any thread. */
bool session_has_ended(const struct session *s);
void session_begin_anew(struct session *s);
/* Whether there is one: not while another one is to be made. */
bool session_is_made(const struct session *s);
/* No call is on its way or waits, and the channel is deleted. */
bool remote_is_idle(const struct io_thread *thread);
/* An idle one of a session that has ended: what it sends next is the first of another one's. */
void remote_begin_anew(struct io_thread *thread);

/* The session is about to end, and not all that was written is committed. Any thread. */
void session_leaves_unsafe(struct session *s);

/* Connects thread 0's channel and makes the session. For connect_timeout_ms it tries again where no
 * server is yet, or one that has no time, and logs what it waits for. On failure the remotes can
 * only be ended. -ECONNREFUSED (a socket that is not there, too), -ECONNRESET, -ENETUNREACH,
 * -ETIMEDOUT: no server there, still after that time; -EPROTO: one of another version, or none of
 * ours; -ENOENT: it has no such export; -EACCES: we may not connect; -EBUSY: others are in the way,
 * still after the time allowed; -EUSERS: too many share it. -ERESTART: this machine's server has
 * opened its socket meanwhile, so a session that is made now takes another transport. */
int session_connect(struct session *s, struct io_thread *thread, char *why, size_t whylen);

/* Instead of running the threads: returns when thread has stopped. Before it remote_stop() was
 * called for all of them, for this one last. */
void session_disconnect(struct session *s, struct io_thread *thread);

/* Sets thread->evq and thread->remote. */
int remote_init(struct io_thread *thread, struct session *s);
/* Calls that are still under way are forgotten: done() is not called, and nothing touches their
 * memory any more. */
void remote_fini(struct io_thread *thread);

void remote_event(struct io_thread *thread, const struct event *ev);
void remote_tick(struct io_thread *thread, int64_t now);

/* Ends the thread's part. The last of all threads to call this sends BYE, as soon as its channel
 * is ready, and has stopped when the answer is there or limit_ms have passed. */
void remote_stop(struct io_thread *thread, unsigned limit_ms);
bool remote_stopped(const struct io_thread *thread);

#endif
