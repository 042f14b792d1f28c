/* slow.h - tells the log when callers wait for long, and for what.
 *
 * Once a second each I/O thread looks at its own requests. For those that wait for longer than a
 * second, and have not been told of, one line names the oldest, and counts the others. When the one
 * that was named is answered, another line says after how long.
 *
 *     read of inode 12, asked by process 4711, has not been answered for 1.2 s: it waits for ...
 *     read of inode 12, asked by process 4711, was answered after 5.0 s
 *
 * There are no such lines while the mount is without its server: the log has said so (session.c).
 * Callers that wait for locks, and messages that wait for a request (fuse/receive.c), are told of
 * by `rmemfsctl status` alone.
 *
 * THREADS    Each I/O thread, its own requests.
 */
#ifndef RMEMFS_DAEMON_SERVE_SLOW_H
#define RMEMFS_DAEMON_SERVE_SLOW_H

#include <stdint.h>

struct io_thread;

/* At each tick; now: in ms. */
void slow_tick(struct io_thread *thread, int64_t now);

#endif
