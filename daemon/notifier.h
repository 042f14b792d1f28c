/* notifier.h - drops pages from the kernel's cache after they were written past it.
 *
 * The kernel's call waits for pages that are locked by reads, which are answered by our own I/O
 * threads, so a thread of its own makes it. Whoever waits for it holds nothing that a READ or WRITE
 * from the page cache needs: no data buffer, no gate, no place among the kernel's background
 * requests that others could be out of.
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
	int64_t off, len;
	struct thread_call call;
	void (*done)(struct notifier_job *job);
};

int notifier_start(struct notifier *n);
/* Ends the thread. Jobs that are left are not done. */
void notifier_stop(struct notifier *n);

void notifier_inval(struct notifier *n, struct notifier_job *job);

#endif
