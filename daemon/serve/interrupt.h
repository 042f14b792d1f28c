/* interrupt.h - which waits end before what they wait for comes: those of callers that are killed, and
 * all of a soft mount whose server is away.
 *
 * THREADS    The I/O thread's own.
 */
#ifndef RMEMFS_DAEMON_SERVE_INTERRUPT_H
#define RMEMFS_DAEMON_SERVE_INTERRUPT_H

#include "daemon/request/request.h"

/* The caller of req was signalled. If that kills it, now or later (caller_ends_wait()), a request
 * that waits for a server that is away, or for other clients, is ended by -EINTR (abandoned_make if
 * something of it is on the way); else it is left alone. What goes on after its caller's end is
 * taken back where it waits for other clients, when the server is there. */
void interrupt_request(struct request *req);

/* About every 100 ms: looks again at those whose caller was signalled before. */
void interrupt_tick(struct io_thread *thread);

/* Soft mounts: the server has given no sign of life for soft_ms (remote_gives_up()). Ends with EIO
 * every operation that needs the server; called again for each new one, until it is back.
 * - What had not been sent will never happen. What was on its way is undetermined: it may still
 *   land; what is asked for when the server is back begins after it (abandoned.h).
 * - FLUSH (close) and FSYNC that could not be committed in time fail, too; the data stays dirty
 *   here and is committed when the server comes back, which is logged as not safe until then.
 * - A session that the server has lost ends with ESTALE, as on hard mounts. */
void interrupt_all_failing(struct io_thread *thread);

#endif
