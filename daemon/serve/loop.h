/* loop.h - the loop of an I/O thread. */
#ifndef RMEMFS_DAEMON_SERVE_LOOP_H
#define RMEMFS_DAEMON_SERVE_LOOP_H

struct io_thread;

/* Runs the thread until the mount is gone and all is done. */
void loop_run(struct io_thread *thread);

#endif
