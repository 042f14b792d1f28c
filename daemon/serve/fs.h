/* fs.h - the filesystem as the FUSE port and the I/O threads see it: where requests go.
 *
 *     fs_open        options -> transport, session's name and tables; no I/O thread runs yet
 *     fs_connect     blocks until thread 0's channel is attached, or the time is over
 *     (mount, start of the I/O threads, which attach their own channels)
 *     fs_dispatch    each request              fs_event   each event of the thread's queue
 *     fs_tick        about every 100 ms        fs_interrupt  INTERRUPT
 *     fs_stop        the mount is gone: commit what is dirty, return, BYE; fs_stopped tells when
 *     (the I/O threads have ended) fs_stop_telling, fs_close
 *
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_SERVE_FS_H
#define RMEMFS_DAEMON_SERVE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/address.h"
#include "common/transport/transport.h"
#include "daemon/file/access_time.h"
#include "daemon/file/cache_policy.h"
#include "daemon/request/io_thread.h"
#include "daemon/request/request.h"

/* When write(2) returns: the data is remote, or on its way there in a registered buffer. */
enum ack_mode { ACK_REMOTE, ACK_LOCAL };

enum { FS_THREADS_MAX = 16 };

struct fs_options {
	struct source source;
	char mountpoint[4096];
	bool auto_transport; /* else transport */
	enum transport_kind transport;
	unsigned port; /* 0: not given */
	bool read_only;
	enum cache_mode cache;
	enum ack_mode ack;
	enum access_mode access;
	bool nodiratime;
	bool sharing; /* others may write what this mount does: lease.h */
	unsigned connect_timeout_ms;
	int64_t connect_until_ms; /* by now_ms(); 0: connect_timeout_ms from fs_open() on */
	unsigned peer_timeout_ms; /* of silence, after which a connection is given up */
	unsigned soft_ms;         /* after which operations without the server get EIO; 0: never */
	bool debug_io;            /* a line for each request */
	unsigned io_threads;      /* 1 .. FS_THREADS_MAX */
	unsigned buffers;         /* data buffers of each of them */
	unsigned merge_pages;     /* pages that may share an SGE; 1: page-sized SGEs */
	uint64_t instance;        /* of this run */
	/* After which a signal ends the wait of a caller that can't be seen: fs_ends_wait(). */
	unsigned interrupt_wait_ms;
};

struct fs;

int fs_open(const struct fs_options *options, struct fs **out, char *why, size_t whylen);
/* session_server() */
const char *fs_server(const struct fs *fs);
struct transport *fs_transport(struct fs *fs);
/* Makes the thread's event queue and its end of the session. */
int fs_thread_init(struct fs *fs, struct io_thread *thread);
void fs_thread_fini(struct io_thread *thread);
/* session_connect() */
int fs_connect(struct fs *fs, char *why, size_t whylen);
/* When no I/O thread runs any more: ends what still tells the kernel of changes. That may wait for
 * a lock that is held by who waits for an answer, so until then every request is refused. */
void fs_stop_telling(struct fs *fs, struct fuse_port *port);
/* Ends what fs_connect() made, if the threads are not to run after all. */
void fs_disconnect(struct fs *fs);
void fs_close(struct fs *fs);

/* What the kernel offered in INIT and the port took. Set before the first request. */
struct fs_features {
	bool direct_io_allow_mmap; /* a file opened direct may be mapped shared (Linux 6.9) */
	bool parallel_direct_writes;
	bool handle_killpriv_v2;
	/* An inode that the kernel let go of and got again while a LOOKUP was on its way takes no
	 * attributes from its answer (Linux 6.14). */
	bool evictions_seen;
	/* The kernel writes its cache back when it likes, and owns regular files' size and times.
	 */
	bool writeback;
};
void fs_set_features(struct fs *fs, const struct fs_features *features);

void fs_dispatch(struct request *req);
/* The request ends with an error. True: it does not, but begins anew, in another session. False:
 * *error is what its caller is told. */
bool fs_begins_anew(struct request *req, int *error);
/* Called for each element of FORGET and BATCH_FORGET; has no reply. */
void fs_forget(struct io_thread *thread, const struct forget *forget);
/* The caller of req was signalled. If that kills it, now or later (fs_ends_wait()), a request that
 * waits for a server that is away, or for other clients, is ended by -EINTR (leftover_make if
 * something of it is on the way); else it is left alone. What goes on after its caller's end is
 * taken back where it waits for other clients, when the server is there. */
void fs_interrupt(struct request *req);
/* Whether a wait of the thread `pid` is to end, in which it was signalled at since_ms: it is being
 * killed. Of a caller that can't be seen nobody knows that. So that no signal that it catches ends
 * a shorter wait, and it can be killed all the same, its wait ends interrupt_wait_ms later.
 * `signalled`: it was, or may have been without the kernel telling of it. */
bool fs_ends_wait(const struct io_thread *thread, uint32_t pid, bool signalled, int64_t since_ms);
/* Nobody knows when the server will answer: remote_disconnected(). */
bool fs_disconnected(const struct io_thread *thread);
/* Soft mounts: the server has given no sign of life for soft_ms (remote_gives_up()). Every
 * operation that needs it has been ended with EIO, and every new one is at once, until it is back.
 * - What had not been sent will never happen. What was on its way is undetermined: it may still
 *   land; what is asked for when the server is back begins after it (leftover.h).
 * - FLUSH (close) and FSYNC that could not be committed in time fail, too; the data stays dirty
 *   here and is committed when the server comes back, which is logged as not safe until then.
 * - A session that the server has lost ends with ESTALE, as on hard mounts. */
bool fs_gives_up(const struct io_thread *thread);
/* Its requests may wait for other clients. */
bool fs_is_sharing(const struct fs *fs);
/* Memory of those that do so, and of their payloads (request.h): there is so much more of it, or
 * less; and whether there may be more, a quarter of the machine's in all. */
void fs_count_aside(struct fs *fs, int64_t bytes);
bool fs_may_set_aside(const struct fs *fs);
/* One that was decoded is needed for that at this moment: lease_holds_up_dropping(). */
bool fs_holds_up_dropping(const struct request *req);
/* The kernel is about to drop pages before their lease goes, and may wait for messages that no
 * thread has read yet, or has no room for (request.h); it has dropped them. */
void fs_drop_begins(struct fs *fs);
void fs_drop_ended(struct fs *fs);
bool fs_is_dropping(const struct fs *fs);
/* Changes when one begins. */
uint64_t fs_drops_begun(const struct fs *fs);
void fs_event(struct io_thread *thread, const struct event *ev);
void fs_tick(struct io_thread *thread, int64_t now);

/* The mount is gone: no further requests come. Ends what is left, within limit_ms even if the
 * server does not answer. Called in each thread once; fs_stopped() is asked after every turn. */
void fs_stop(struct io_thread *thread, unsigned limit_ms);
bool fs_stopped(struct io_thread *thread);

#endif
