/* notifier.h - tells the kernel what to drop of its own: attributes that an answer can't carry,
 * pages, and names.
 *
 * The kernel's call may wait for an inode that the kernel is just letting go of, or for I/O on the
 * pages, which takes our answers. So a thread of its own makes it. Attributes alone wait for no
 * I/O. Pages may wait for as long as the server is away. So their jobs have a notifier of their
 * own, and only few operations wait for them (stale_pages.h). Names, too, have one of their own:
 * they wait for the holder of the directory's lock, and nothing waits for them.
 *
 * OWNERSHIP  fs starts and ends the notifiers. A job is embedded in the state of its maker and
 *            stays in place until done() is called: in job.thread, or in the notifier's own.
 */
#ifndef RMEMFS_DAEMON_FUSE_NOTIFIER_H
#define RMEMFS_DAEMON_FUSE_NOTIFIER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/request/io_thread.h"

struct fuse_port;

struct notifier {
	pthread_t pthread;
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct list jobs;
	bool stop, busy; /* busy: at a job */
	int ended_fd;    /* see notifier_end() */
};

struct notifier_job {
	struct list link;
	struct fuse_port *port;
	uint64_t node;
	int64_t off, len;         /* as fuse_port_inval_inode() takes them */
	uint64_t size;            /* other than 0: as fuse_port_raise_size() does */
	const char *name;         /* NULL: the node itself; else the name in it */
	struct io_thread *thread; /* NULL: done() is called at once */
	struct thread_call call;
	void (*done)(struct notifier_job *job);
};

int notifier_start(struct notifier *n);
/* Has the thread end after its present job, which may wait for answers of ours; the other jobs are
 * not done. The descriptor, which is the notifier's, becomes readable at the thread's end. */
int notifier_end(struct notifier *n);
/* The same, and waits for it. */
void notifier_stop(struct notifier *n);

/* No job waits, and none is under way. */
bool notifier_is_idle(struct notifier *n);
void notifier_add(struct notifier *n, struct notifier_job *job);

#endif
