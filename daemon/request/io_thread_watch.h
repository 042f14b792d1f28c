/* io_thread_watch.h - the event queue that a running thread sleeps on, when it gets another one.
 *
 * THREADS    The thread's own.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_DAEMON_REQUEST_IO_THREAD_WATCH_H
#define RMEMFS_DAEMON_REQUEST_IO_THREAD_WATCH_H

#include "daemon/request/io_thread.h"

/* The thread wakes up for events of this queue, too. Does nothing before it runs. */
int io_thread_watch(struct io_thread *thread, struct evq *q);
/* Not any more; harmless if it never did. */
void io_thread_unwatch(struct io_thread *thread, struct evq *q);

#endif
