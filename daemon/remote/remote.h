/* remote.h - a thread's end of the session with the memory server: RPCs and one-sided I/O that
 * outlive connections.
 *
 * Callers start a call and are told when it is done; a lost connection is no error of theirs. This
 * folder connects the channel again with a back-off of at most one second, and resumes the session.
 * Then
 * - it sends RPCs without a reply again in their slots, with their sequence numbers, so that the
 *   server answers from its stored reply if it had executed them;
 * - it posts I/O that ended in error again, after the server has confirmed the old channel fenced.
 *   If the server no longer knows the session, it is lost: every call ends with -ESTALE from then
 *   on.
 *
 * The I/O threads drive their ends so:
 *
 *     remote_init       for each thread, before it runs: its event queue, no channel yet
 *     remote_connect    blocks, in the place of thread 0, until its channel is attached
 *     remote_await_stop ends it again, if the threads are not to run
 *     remote_event      each event of the thread's queue
 *     remote_tick       about every 100 ms: connects, pings, gives up; the first one of a thread
 *                       connects its channel
 *     session_has_ended the server has taken the session away: session.h
 *     remote_stop       the thread has no calls any more; the last thread to say so sends BYE
 *     remote_stopped    whether the thread may end
 *     remote_fini, then session_delete
 *
 * OWNERSHIP  Calls are embedded in the caller's struct, which lives until done() is called. All
 *            that a request names (names, tails, works, SGEs, data) stays as it is until then.
 * THREADS    Everything belongs to the I/O thread. remote_init, remote_connect and remote_fini
 * while no other thread uses the session.
 */
#ifndef RMEMFS_DAEMON_REMOTE_REMOTE_H
#define RMEMFS_DAEMON_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "common/transport/transport.h"
#include "daemon/remote/session.h"
#include "daemon/request/io_thread.h"

struct rpc_call {
	struct list link;
	struct rpc_request req; /* op and body are the caller's; slot and seq are filled in */
	/* rep->status is the server's status; rep is valid during the call only. With -ESTALE
	 * (session lost) rep has only op and status. */
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep);
	/* The caller has leases, which others may wait for: it is sent, whatever waits for
	 * others. */
	bool nested;
	uint64_t by; /* request_number() of the kernel's request that it is for; 0: for none */
	/* rpc.c's: */
	bool sent;
	int status;
};

/* Starts an RPC of RPC_LOOKUP or above. Waits in order for a free slot; COMMIT and RETURN have
 * slots of their own. done() is never called from within. A request longer than a message ends with
 * -EMSGSIZE. The caller checks its values (lengths and characters of names, ranges). */
void rpc_start(struct io_thread *thread, struct rpc_call *call);
/* Whether its answer may be late because another mount has to give something back first: the mount
 * shares, and the server answers other messages. */
bool rpc_may_wait_for_mounts(const struct io_thread *thread, const struct rpc_call *call);
/* Takes a call back that has not been sent yet: true, and done() is not called. */
bool rpc_cancel(struct io_thread *thread, struct rpc_call *call);

/* The caller does not want a call any more that was sent. If the call waits at the server for
 * another client, or for pages, now or later, it is not executed, and done() gets -EINTR. Else it
 * goes on. Harmless when it was called before. */
void rpc_withdraw(struct io_thread *thread, struct rpc_call *call);

struct io_call {
	struct list link;
	enum io_dir dir;
	const struct work *works; /* regions are export's indices; within io_limits() */
	uint32_t nworks;
	const void *head; /* READ: for channel_post_piped(); NULL: wanted in memory */
	uint32_t headlen;
	void (*done)(struct io_call *call, int status); /* 0, or -ESTALE, -EIO */
	bool piped; /* in done(): head and bytes are in the io_pipe() until its return */
	/* io.c's: */
	uint32_t nposted, nbatches;
	int status;
	uint64_t refused_by; /* the incarnation of the server that refused it last; 0: none */
	uint64_t answer; /* the one that brings the keys that it lacks; 0: none: region_table.c */
	bool tried;
};

/* Starts a transfer: any number of works, cut into batches as the channel allows. */
void io_start(struct io_thread *thread, struct io_call *call);
/* Takes a transfer back if nothing of it was posted ever: true, and done() is not called. */
bool io_cancel(struct io_thread *thread, struct io_call *call);

/* The pipe that has the bytes of a call that says piped. */
int io_pipe(const struct io_thread *thread);

/* Whether bytes of regions can be read or written now without a transfer, since they are mapped
 * here. */
bool io_maps(const struct io_thread *thread);
/* The address of these bytes: channel_mapped(), valid until the thread's next turn. NULL: only a
 * transfer can reach them, or the connection is not up. A revivable mount has all pages there:
 * request_room(). */
void *io_mapped(
	struct io_thread *thread, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len);
/* Counts bytes that were read or written there. */
void io_count_mapped(struct io_thread *thread, enum io_dir dir, uint64_t bytes);

/* The most that one work may hold. */
const struct io_limits *io_limits(const struct io_thread *thread);

/* Whether the server answers now: false before the first connection and from a loss to the
 * resumption. */
bool remote_connected(const struct io_thread *thread);
/* Whether it is open when the server will answer: from a loss, or a first connection that failed,
 * until the next one stands. While the first connection is being made neither function is true;
 * that ends within the deadlines of its steps. */
bool remote_disconnected(const struct io_thread *thread);

/* Whether this is a soft mount, and the server has given no sign of life for soft_ms. Then calls
 * that have sent nothing are to be taken back, and the others not waited for. The connection has
 * the clock, not the call. Pings keep it running, and it is mended, without traffic. So a first
 * call after an idle time finds a server that is there, and calls to an absent server don't wait
 * for soft_ms each. Nothing new is sent before the server is back. A server that says that it knows
 * us no more is not away: false once the session is lost. */
bool remote_gives_up(const struct io_thread *thread);

/* ---- how a thread drives its end ------------------------------------------------------------- */

/* Sets thread->evq and thread->remote. */
int remote_init(struct io_thread *thread, struct session *s);
/* Forgets calls that are still under way: done() is not called, and nothing touches their memory
 * any more. */
void remote_fini(struct io_thread *thread);

/* Connects thread 0's channel and makes the session. For connect_timeout_ms it tries again if there
 * is no server yet, or one that has no time, and logs what it waits for. On failure the remotes can
 * only be ended. -ECONNREFUSED (also without a socket), -ECONNRESET, -ENETUNREACH, -ETIMEDOUT: no
 * server there, still after that time. -EPROTO: another version, or no rmemfs server. -ENOENT: no
 * such export. -EACCES: we may not connect. -EBUSY: others are in the way, still after the time
 * allowed. -EUSERS: too many share it. -ERESTART: this machine's server has opened its socket
 * meanwhile, so a new session would take another transport. */
int remote_connect(struct io_thread *thread, char *why, size_t whylen);

/* Instead of running the threads: returns when `thread` has stopped. The caller has called
 * remote_stop() for all threads, for this one last. */
void remote_await_stop(struct io_thread *thread);

void remote_event(struct io_thread *thread, const struct event *ev);
void remote_tick(struct io_thread *thread, int64_t now);

/* Ends the thread's part. The last thread to call this sends BYE, as soon as its channel is ready.
 * It has stopped when the answer is there or limit_ms have passed. */
void remote_stop(struct io_thread *thread, unsigned limit_ms);
bool remote_stopped(const struct io_thread *thread);

/* No call is on its way or waits. */
bool remote_has_no_calls(const struct io_thread *thread);
/* The same, and the channel is deleted. */
bool remote_is_idle(const struct io_thread *thread);

/* For a thread without calls: its channel is closed in order, and no other one is made before
 * remote_resume(). Meanwhile another process may have the session (session_handover.h). */
void remote_rest(struct io_thread *thread);
/* If it does not rest, it only asks for news. */
void remote_resume(struct io_thread *thread);

/* For an idle thread of a session that has ended: its next request is the first of another
 * session. */
void remote_begin_anew(struct io_thread *thread);

#endif
