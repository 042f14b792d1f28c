/* threads.h - the I/O threads of a mount as main sees them: made, started, stopped, joined.
 *
 *     io_threads_new          structs and pools; no thread runs yet
 *     io_threads_attach       buffers registered, fs_thread_init() of each
 *     io_threads_start        once the kernel's INIT is answered
 *     io_threads_stop         or the mount's end, which the threads see themselves
 *     io_threads_join
 *     io_threads_detach       fs_thread_fini() of each, buffers deregistered; then fs_close()
 *     io_threads_delete
 *
 * THREADS    main.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_SERVE_THREADS_H
#define RMEMFS_DAEMON_SERVE_THREADS_H

#include <stddef.h>

#include "daemon/request/io_thread.h"

struct fs;
struct fuse_port;
struct io_threads;

int io_threads_new(unsigned nthreads, unsigned nbuffers, const struct spinning *spinning,
	struct io_threads **out);
int io_threads_attach(struct io_threads *group, struct fs *fs, char *why, size_t whylen);
int io_threads_start(struct io_threads *group, struct fuse_port *port, char *why, size_t whylen);
struct io_thread *io_threads_thread(struct io_threads *group, unsigned index);
/* The index of a thread that has not turned since the last call; -1: all have. A thread that has
 * nothing to do turns with each tick of 100 ms, too. Compares what the threads note; no clock is
 * asked. */
int io_threads_standing(struct io_threads *group);
/* The descriptors by which the threads read requests, one for each, once they were started. A
 * request is answered on the one that it was read from. It ends with the last such descriptor,
 * whatever process has it. So another process that goes on with callers who wait needs them. */
void io_threads_devices(const struct io_threads *group, int *fds);
/* Before io_threads_start(): the threads read by these of another process, which are theirs from
 * now on. */
int io_threads_take_devices(struct io_threads *group, int *fds);
/* Readable once every thread has ended. */
int io_threads_ended_fd(const struct io_threads *group);
/* No request is read any more; the threads finish their work and end. Any thread. */
void io_threads_stop(struct io_threads *group);
void io_threads_join(struct io_threads *group);
void io_threads_detach(struct io_threads *group);
void io_threads_delete(struct io_threads *group);

#endif
