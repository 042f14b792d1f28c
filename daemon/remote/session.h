/* session.h - the mounted client's session at one export: the facts that all threads share. remote.h
 * has the threads' ends of it.
 *
 * OWNERSHIP  The session owns the transport; buffers registered with it are deregistered, and all
 *            remotes ended, before session_delete().
 * THREADS    session_new and session_delete while no other thread uses the session. All others in
 *            any thread.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_REMOTE_SESSION_H
#define RMEMFS_DAEMON_REMOTE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "common/transport/transport.h"
#include "daemon/remote/session_options.h"

struct io_thread;
struct session;

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

/* Where channels are now; it may change between tcp and verbs (paths.h). */
const struct transport_address *session_address(const struct session *s);
/* "tcp 127.0.0.1:7470": for logs. */
const char *session_server(const struct session *s);

/* The protection of its bytes on the way to the server, for the log: ", all bytes protected". */
const char *session_protection_note(const struct session *s);
/* The same as a word: channel_protection_name(). */
const char *session_protection(const struct session *s);

/* The server takes no change from this session any more, or takes changes again. Each thread
 * connects its channel anew, for keys of the other kind, and repeats there what is under way. When
 * a session becomes read-only, nothing may be under way that changes something. Any thread. */
void session_set_read_only(struct session *s, bool read_only);
/* The server has refused to let the session write; ATTACH asked with the keys of that number. The
 * session is read-only again, and logs why, unless it has changed since. If it could write before
 * with such keys, the right was taken away: it stays as it is, and waits. Any thread. */
void session_may_not_write(struct session *s, unsigned keys, const char *why);
bool session_is_read_only(const struct session *s);
/* Whether all channels were attached since then. Any thread. */
bool session_has_keys(const struct session *s);

/* The server has ended a session that shares its export, since other clients had to wait for it.
 * Its channels are deleted; its calls, and new ones, end with -ESTALE. When all threads are idle,
 * one of them forgets what was known, and calls session_begin_anew(). Then calls wait for the new
 * session. Any thread. */
bool session_has_ended(const struct session *s);
void session_begin_anew(struct session *s);
/* Whether there is a session: false while another one is to be made. */
bool session_is_made(const struct session *s);

/* Whether other clients may be at the export. session_share(): from now on, whatever comes; not
 * before the server was told (CONVERT). Any thread. */
bool session_is_sharing(const struct session *s);
void session_share(struct session *s);
/* The opposite, of one that converts: the server was told. */
void session_is_alone(struct session *s);

/* The session is about to end, and not all that was written is committed. Any thread. */
void session_leaves_unsafe(struct session *s);

/* The most that one work may hold; settled when the session connects and kept over reconnects. */
struct io_limits {
	uint32_t max_sge_read, max_sge_write, max_work_bytes;
};

/* ---- facts --------------------------------------------------------------------------------- */

struct session_info {
	uint64_t npages; /* of the export, which may have grown or shrunk since */
	uint32_t lease_ms;
	struct attr root;
};
const struct session_info *session_info(const struct session *s);
/* The server's clock now, ns: ours and the offset learned from its replies. */
int64_t session_time(const struct session *s);
/* How long the kernel may keep the facts that this session knows, in ms: the rest of the lease,
 * which counts from when its renewal was sent. 0 while nothing renews it. */
uint32_t session_ttl_ms(const struct session *s);
/* The whole lease time, which counts from when the server was heard. */
uint32_t session_lease_ms(const struct session *s);
/* How many leases this client may keep. */
uint32_t session_lease_limit(const struct session *s);
/* 0: the export has no quotas; else the server's incarnation, which changes when the limits may
 * have. */
uint64_t session_quotas(const struct session *s);
/* The server knows us no more, or there can't be another session. From then on every operation
 * fails, or the daemon ends (exit_when_lost). Logged once. Any thread. */
void session_lose(struct session *s, const char *why);
bool session_lost(const struct session *s);
/* How the connection to the server is, for people. since_ms: of SESSION_AWAY, in now_ms(). */
enum session_health { SESSION_CONNECTED, SESSION_AWAY, SESSION_LOST };
enum session_health session_health(struct session *s, int64_t *since_ms);
/* How this session's users count, by the server's latest answer to an ATTACH. After a reload of the
 * server's configuration it may be another one than before; the log tells of that. One load where
 * nobody is squashed. */
struct squash session_squash(const struct session *s);
/* The export's regions, as far as a channel has learnt of them. It may have grown since. */
uint32_t session_nregions(const struct session *s);
uint64_t session_region_pages(const struct session *s);

/* The server's snapshot on its way: its pages are to be asked for before they are written. And the
 * snapshot that waits until this client has ended its writes. 0: none. */
uint64_t session_snapshot(const struct session *s);
uint64_t session_freezing(const struct session *s);
/* FROZEN was answered: the snapshot does not wait any more. */
void session_thaw(struct session *s, uint64_t snapshot);

#endif
