/* task.h - work that other threads do for the metadata thread, which can cancel it, and learns why
 * it failed.
 *
 * Functions that a start calls, too, log the reason of a failure where it happens. A thread that
 * has entered a task leaves its error lines in there as well. The first one counts. Lines of all
 * other threads do not.
 *
 *     task_begin -> each thread that works for it: task_enter -> task_why -> task_end
 *
 * OWNERSHIP  The caller has the struct. All threads have left it, or ended, before task_end().
 * THREADS    The metadata thread begins and ends one task at a time, since the log has one watcher.
 *            task_cancel() and task_is_cancelled() are for any thread.
 */
#ifndef RMEMFS_SERVER_BASE_TASK_H
#define RMEMFS_SERVER_BASE_TASK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/rpc/rpc.h"

struct task {
	pthread_mutex_t lock;
	char why[RPC_TEXT_MAX]; /* "": no error line yet */
	atomic_bool cancelled;
};

void task_begin(struct task *task);
void task_end(struct task *task);

/* The calling thread works for the task from now on; NULL: for none. */
void task_enter(struct task *task);
/* The task of the calling thread: for others that are to work with it. NULL: none. */
struct task *task_current(void);

void task_cancel(struct task *task);
/* Whether the task of the calling thread is cancelled. Long work asks now and then, and ends with
 * -ECANCELED. */
bool task_is_cancelled(void);

/* The reason: the first error line, or the text of err. */
void task_why(struct task *task, int err, char *why, size_t whylen);

#endif
