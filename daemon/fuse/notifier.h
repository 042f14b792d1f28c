/* notifier.h - tells the kernel what of its own it is to drop: attributes that an answer can't
 * carry, pages, and names.
 *
 * The kernel's call may wait for an inode that it is just letting go of, or for I/O on the pages,
 * which takes our answers: so a thread of its own makes it. Attributes alone wait for no I/O; pages
 * may wait for as long as the server is away, so their jobs have a notifier of their own, and only
 * few wait for them (stale_pages.h). So have names, which wait for whoever has locked the
 * directory, and nobody waits for them.
 *
 * OWNERSHIP  fs starts and ends the notifiers. A job is embedded in the state of whoever made it
 * and stays in place until done() is called: in job.thread, or in the notifier's own.
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
	bool stop;
	int ended_fd; /* see notifier_end() */
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
/* Has the thread end after the job that it is at, which may wait for answers of ours; the others
 * are not done. The descriptor, the notifier's own, becomes readable when it has. */
int notifier_end(struct notifier *n);
/* The same, and waits for it. */
void notifier_stop(struct notifier *n);

void notifier_add(struct notifier *n, struct notifier_job *job);

#endif
