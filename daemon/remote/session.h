/* session.h - the mounted client's session at one export, and how the I/O threads drive their ends
 * of it. remote.h has the part for calls and I/O.
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
 *            other thread uses the session. Other remote_* functions in the thread that they are
 *            about.
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
	bool exclusive; /* no other client may have the export meanwhile */
	bool sharing;   /* other clients may write what this mount writes: lease.h */
	unsigned connect_timeout_ms;
	int64_t connect_until_ms; /* by now_ms(); 0: connect_timeout_ms from session_new() on */
	unsigned peer_timeout_ms; /* a connection that is silent for so long is given up */
	unsigned soft_ms;         /* operations without the server get EIO after this; 0: never */
	unsigned io_threads;      /* 1 .. IO_THREADS_MAX */
	uint64_t instance;        /* of this run */
};

/* Calls to the folders above, for a shared export only. Each comes in the thread named. */
struct session_events {
	/* The server asks for leases, or says that locks may be free: struct rpc_recall each. */
	void (*news)(struct io_thread *thread, const struct rpc_tail *recalls);
	/* The thread's channel is back. News may have been lost meanwhile. */
	void (*connected)(struct io_thread *thread);
	/* The server asks for so many unused pages. */
	void (*pages_wanted)(struct io_thread *thread, uint64_t npages);
};

/* Resolves the host and opens the transport, which may block for connect_timeout_ms.
 * -EINVAL: options that exclude each other. -EHOSTUNREACH: no such host. -EAGAIN: its name
 * can't be resolved now. -ENODEV: no RDMA device has a route to it. */
int session_new(const struct session_options *options, const struct session_events *events,
	struct session **out, char *why, size_t whylen);
void session_delete(struct session *s);

/* The mount is gone. Another one may be made in its place, which waits for the end of this session.
 * Any thread; harmless when it was called before. */
void session_leave_place(struct session *s);

struct transport *session_transport(struct session *s);
/* "tcp 127.0.0.1:7470": for logs. */
const char *session_server(const struct session *s);

/* The server takes no change from this session any more, or takes changes again. Each thread
 * connects its channel anew, for keys of the other kind, and repeats there what is under way. When
 * a session becomes read-only, nothing may be under way that changes something. Any thread. */
void session_set_read_only(struct session *s, bool read_only);
/* The server has refused to let the session write; ATTACH asked with the keys of that number. The
 * session is read-only again, and logs why, unless it has changed since. Any thread. */
void session_may_not_write(struct session *s, unsigned keys, const char *why);
bool session_is_read_only(const struct session *s);
/* Whether all channels were attached since then. Any thread, while the remotes exist. */
bool session_has_keys(const struct session *s);

/* The server has ended a session that shares its export, since other clients had to wait for it.
 * Its channels are deleted; its calls, and new ones, end with -ESTALE. When all threads are idle,
 * one of them forgets what was known, and calls session_begin_anew(). Then calls wait for the new
 * session. Any thread. */
bool session_has_ended(const struct session *s);
void session_begin_anew(struct session *s);
/* Whether there is a session: false while another one is to be made. */
bool session_is_made(const struct session *s);
/* No call is on its way or waits, and the channel is deleted. */
bool remote_is_idle(const struct io_thread *thread);
/* For an idle thread of a session that has ended: its next request is the first of another
 * session. */
void remote_begin_anew(struct io_thread *thread);

/* The session is about to end, and not all that was written is committed. Any thread. */
void session_leaves_unsafe(struct session *s);

/* Connects thread 0's channel and makes the session. For connect_timeout_ms it tries again if there
 * is no server yet, or one that has no time, and logs what it waits for. On failure the remotes can
 * only be ended. -ECONNREFUSED (also without a socket), -ECONNRESET, -ENETUNREACH, -ETIMEDOUT: no
 * server there, still after that time. -EPROTO: another version, or no rmemfs server. -ENOENT: no
 * such export. -EACCES: we may not connect. -EBUSY: others are in the way, still after the time
 * allowed. -EUSERS: too many share it. -ERESTART: this machine's server has opened its socket
 * meanwhile, so a new session would take another transport. */
int session_connect(struct session *s, struct io_thread *thread, char *why, size_t whylen);

/* Instead of running the threads: returns when `thread` has stopped. The caller has called
 * remote_stop() for all threads, for this one last. */
void session_disconnect(struct session *s, struct io_thread *thread);

/* Sets thread->evq and thread->remote. */
int remote_init(struct io_thread *thread, struct session *s);
/* Forgets calls that are still under way: done() is not called, and nothing touches their memory
 * any more. */
void remote_fini(struct io_thread *thread);

void remote_event(struct io_thread *thread, const struct event *ev);
void remote_tick(struct io_thread *thread, int64_t now);

/* Ends the thread's part. The last thread to call this sends BYE, as soon as its channel is ready.
 * It has stopped when the answer is there or limit_ms have passed. */
void remote_stop(struct io_thread *thread, unsigned limit_ms);
bool remote_stopped(const struct io_thread *thread);

#endif
