/* notifier.h - tells the kernel to ask anew for attributes that an answer can't carry.
 *
 * The kernel's call may wait for an inode that it is just letting go of, which takes our answers:
 * so a thread of its own makes it. Attributes only: dropping pages waits for I/O on them, which is
 * ours to answer, and can't be ended by a signal.
 *
 * OWNERSHIP  fs starts and ends the notifier. A job is embedded in the request's state and stays
 *            in place until done() is called, in the request's own thread.
 */
#ifndef RMEMFS_DAEMON_NOTIFIER_H
#define RMEMFS_DAEMON_NOTIFIER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "daemon/io_thread.h"

struct notifier {
	pthread_t pthread;
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct list jobs;
	bool stop;
};

struct notifier_job {
	struct list link;
	struct io_thread *thread; /* that the job is of */
	uint64_t node;
	struct thread_call call;
	void (*done)(struct notifier_job *job);
};

int notifier_start(struct notifier *n);
/* Ends the thread. Jobs that are left are not done. */
void notifier_stop(struct notifier *n);

void notifier_expire(struct notifier *n, struct notifier_job *job);

#endif
