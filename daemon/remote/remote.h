/* remote.h - a thread's end of the session with the memory server: RPCs and one-sided I/O that
 * outlive connections.
 *
 * Callers start a call and are told when it is done; a lost connection is no error of theirs. The
 * channel is connected again with a back-off of at most one second, the session resumed, and then
 * - RPCs without a reply are sent again in their slots, with their sequence numbers, so that the
 *   server answers from its stored reply if it had executed them;
 * - I/O that ended in error is posted again, after the server has confirmed the old channel fenced.
 * A session that the server no longer knows is lost: every call ends with -ESTALE from then on.
 *
 * OWNERSHIP  Calls are embedded in the caller's struct, which lives until done() is called. What a
 *            request names (names, tails, works, SGEs, data) stays as it is until then.
 * THREADS    Everything belongs to the I/O thread. The session's shared facts (id, server's time,
 *            lease) are read by all threads and have a lock of their own in session.c.
 */
#ifndef RMEMFS_DAEMON_REMOTE_REMOTE_H
#define RMEMFS_DAEMON_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "common/transport/transport.h"
#include "daemon/request/io_thread.h"

struct rpc_call {
	struct list link;
	struct rpc_request req; /* op and body are the caller's; slot and seq are filled in */
	/* rep->status tells of the server's refusal; rep is valid during the call only. With
	 * -ESTALE (session lost) rep has nothing but op and status. */
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep);
	/* Who asks has leases, which others may wait for: it is sent, whatever waits for others'.
	 */
	bool nested;
	/* remote_rpc.c's: */
	bool sent;
	int status;
};

/* Starts an RPC of RPC_LOOKUP or above. Waits in order for a free slot; COMMIT and RETURN have
 * slots of their own. done() is never called from within. A request longer than a message ends with
 * -EMSGSIZE; its values (lengths and characters of names, ranges) are the caller's to have checked.
 */
void rpc_start(struct io_thread *thread, struct rpc_call *call);
/* Takes a call back that has not been sent yet: true, and done() is not called. */
bool rpc_cancel(struct io_thread *thread, struct rpc_call *call);

/* Nobody wants a call any more that was sent: if it waits at the server for another client, or for
 * pages, now or later, it is not executed, and done() is called with -EINTR. Else it goes on.
 * Harmless when it was said before. */
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
	/* remote_io.c's: */
	uint32_t nposted, nbatches;
	int status;
	uint64_t refused_by; /* the incarnation of the server that did last; 0: none */
	bool tried;
};

/* Starts a transfer: any number of works, cut into batches as the channel allows. */
void io_start(struct io_thread *thread, struct io_call *call);
/* Takes a transfer back of which nothing was posted ever: true, and done() is not called. */
bool io_cancel(struct io_thread *thread, struct io_call *call);

/* Where a call's bytes are that says piped. */
int io_pipe(const struct io_thread *thread);

/* Whether bytes of regions can be had now without a transfer, since they are mapped here. */
bool io_maps(const struct io_thread *thread);
/* Where they are: channel_mapped(), valid until the thread's next turn. NULL: only by a transfer,
 * as when the connection is not up. */
void *io_mapped(
	struct io_thread *thread, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len);
/* They were read or written there. */
void io_count_mapped(struct io_thread *thread, enum io_dir dir, uint64_t bytes);

/* What one work may hold; settled when the session connects and kept over reconnects. */
struct io_limits {
	uint32_t max_sge_read, max_sge_write, max_work_bytes;
};
const struct io_limits *io_limits(const struct io_thread *thread);

/* Whether the server answers now: false before the first connection and from a loss to the
 * resumption. */
bool remote_connected(const struct io_thread *thread);
/* Whether nobody knows when it will: from a loss, or a first connection that failed, to the next
 * that stands. While the first is being made neither is true; that ends within the deadlines of its
 * steps. */
bool remote_disconnected(const struct io_thread *thread);

/* Whether calls that nothing was sent of are to be taken back, and the others not waited for, since
 * this is a soft mount and the server has given no sign of life for soft_ms. The connection has the
 * clock and not the call: pings keep it running without traffic, and it is mended without traffic,
 * so that a first call after an idle time finds a server that is there, while calls to one that
 * is known to be away don't wait for soft_ms each. Nothing new is sent before it is back. Whoever
 * says that it knows us no more is not away: false once the session is lost. */
bool remote_gives_up(const struct io_thread *thread);

/* ---- the session, for all threads (session.c) ------------------------------------------------ */

struct session;
struct session_info {
	uint64_t npages; /* of the export, which may have grown or shrunk since */
	uint32_t lease_ms;
	struct attr root;
};
const struct session_info *session_info(const struct session *s);
/* The server's clock now, ns: ours and the offset learned from its replies. */
int64_t session_time(const struct session *s);
/* How long the kernel may keep what this session knows: the rest of the lease, in ms, counted from
 * when its renewal was sent; 0 while nothing renews it. */
uint32_t session_ttl_ms(const struct session *s);
/* The whole of that time, counted from when the server was heard. */
uint32_t session_lease_ms(const struct session *s);
/* How many leases may be kept. */
uint32_t session_lease_limit(const struct session *s);
/* 0: the export has no quotas; else a number that changes when its limits may have: the server's
 * incarnation. */
uint64_t session_quotas(const struct session *s);
bool session_lost(const struct session *s);
/* The export's regions, as the connection that was made last has found them. */
uint32_t session_nregions(const struct session *s);
uint64_t session_region_pages(const struct session *s);

/* The server's snapshot on its way, whose pages are to be asked for before they are written, and
 * the one that waits until this client has ended its writes; 0: none. */
uint64_t session_snapshot(const struct session *s);
uint64_t session_freezing(const struct session *s);
/* FROZEN was answered: it waits no more. */
void session_thaw(struct session *s, uint64_t snapshot);

#endif
