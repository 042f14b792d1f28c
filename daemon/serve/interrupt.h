/* interrupt.h - which waits end early: those of callers that are killed, and all of a soft mount
 * whose server is away.
 *
 * THREADS    The I/O thread's own.
 */
#ifndef RMEMFS_DAEMON_SERVE_INTERRUPT_H
#define RMEMFS_DAEMON_SERVE_INTERRUPT_H

#include "daemon/request/request.h"

/* The caller of req was signalled. If that kills it, now or later (caller_ends_wait()), a request
 * that waits for an absent server, or for other clients, ends with -EINTR. If something of it is on
 * the way, abandoned_make() answers it. Other requests are left alone. A request that goes on after
 * its caller's end is taken back where it waits for other clients, when the server is there. */
void interrupt_request(struct request *req);

/* About every 100 ms: looks again at requests whose caller was signalled before. */
void interrupt_tick(struct io_thread *thread);

/* Soft mounts: the server has given no sign of life for soft_ms (remote_gives_up()). Ends with EIO
 * every operation that needs the server; called again for each new one, until it is back.
 * - Operations that had not been sent will never happen. Those on their way are undetermined: they
 *   may still land. Requests that come when the server is back begin after them (abandoned.h).
 * - FLUSH (close) and FSYNC that could not be committed in time fail, too. The data stays dirty
 *   here and is committed when the server comes back; until then the log calls it not safe.
 * - A session that the server has lost ends with ESTALE, as on hard mounts.
 */
void interrupt_all_failing(struct io_thread *thread);

#endif
