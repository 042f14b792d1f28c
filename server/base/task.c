/* task.c - see task.h. */
#include "server/base/task.h"

#include <stdio.h>

#include "common/base/log.h"

static _Thread_local struct task *current;

static void see_line(enum log_level level, const char *text)
{
	if (!current || level != LOG_LEVEL_ERROR)
		return;
	pthread_mutex_lock(&current->lock);
	if (!current->why[0])
		snprintf(current->why, sizeof(current->why), "%s", text);
	pthread_mutex_unlock(&current->lock);
}

void task_begin(struct task *task)
{
	pthread_mutex_init(&task->lock, NULL);
	task->why[0] = '\0';
	atomic_init(&task->cancelled, false);
	log_set_watcher(see_line);
}

void task_end(struct task *task)
{
	log_set_watcher(NULL);
	pthread_mutex_destroy(&task->lock);
}

void task_enter(struct task *task)
{
	current = task;
}

struct task *task_current(void)
{
	return current;
}

void task_cancel(struct task *task)
{
	atomic_store(&task->cancelled, true);
}

bool task_is_cancelled(void)
{
	return current && atomic_load(&current->cancelled);
}

void task_why(struct task *task, int err, char *why, size_t whylen)
{
	pthread_mutex_lock(&task->lock);
	snprintf(why, whylen, "%s", task->why[0] ? task->why : errno_text(err));
	pthread_mutex_unlock(&task->lock);
}
