/* fs.h - the filesystem as the FUSE port and the I/O threads see it: where requests go.
 *
 *     fs_open        options -> transport, session's name and tables; no I/O thread runs yet
 *     fs_connect     blocks until thread 0's channel is attached, or the time is over
 *     (mount, start of the I/O threads, which attach their own channels)
 *     fs_event       each event of the thread's queue
 *     fs_tick        about every 100 ms
 *     fs_fuse_ops    what the FUSE port calls, fs_session_events the session
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

#include "daemon/fuse/port.h"
#include "daemon/op/fs_options.h"
#include "daemon/request/io_thread.h"
#include "daemon/remote/session.h"
#include "daemon/request/request.h"

struct fs;

int fs_open(const struct fs_options *options, struct fs **out, char *why, size_t whylen);
/* session_server() */
const char *fs_server(const struct fs *fs);
/* Of the bytes on the way there: see session.h. */
const char *fs_protection_note(const struct fs *fs);
enum transport_kind fs_transport_kind(const struct fs *fs);
/* A thread's buffers: paths_register(). */
int fs_register_memory(struct fs *fs, void *addr, size_t len, struct buffer **out);
void fs_deregister_memory(struct fs *fs, struct buffer *b);
/* All threads run; all have ended, if they ever ran. */
void fs_threads_started(struct fs *fs);
void fs_threads_ended(struct fs *fs);
/* Whether the export squashes this mount's users. Known after fs_connect(). */
bool fs_squashes(const struct fs *fs);
/* Makes the thread's event queue and its end of the session. */
int fs_thread_init(struct fs *fs, struct io_thread *thread);
void fs_thread_fini(struct io_thread *thread);
/* session_health() */
enum session_health fs_health(const struct fs *fs, int64_t *since_ms);
/* remote_connect() */
int fs_connect(struct fs *fs, char *why, size_t whylen);
/* Called when no I/O thread runs any more: ends the notifiers. A notification may wait for a kernel
 * lock of a caller that waits for our answer, so every request is refused until it has ended. */
void fs_stop_telling(struct fs *fs, struct fuse_port *port);
/* Undoes fs_connect(), if the threads are not to run after all. */
void fs_disconnect(struct fs *fs);
void fs_close(struct fs *fs);

void fs_set_features(struct fs *fs, const struct fs_features *features);

extern const struct fuse_ops fs_fuse_ops;
extern const struct session_events fs_session_events;

void fs_event(struct io_thread *thread, const struct event *ev);
void fs_tick(struct io_thread *thread, int64_t now);

/* In each turn while the mount is paused: pause.h. */
void fs_step_paused(struct io_thread *thread);

/* The mount is gone: no further requests come. Ends the remaining work, within limit_ms even if the
 * server does not answer. Called in each thread once; fs_stopped() is asked after every turn. */
void fs_stop(struct io_thread *thread, unsigned limit_ms);
bool fs_stopped(struct io_thread *thread);

#endif
