/* A notifier's thread is started by fs_open() and ended by fs_close(). */
#include "daemon/fuse/notifier.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "common/base/util.h"
#include "daemon/fuse/port.h"

static struct notifier_job *next_job(struct notifier *n)
{
	struct list *link;

	pthread_mutex_lock(&n->lock);
	n->busy = false;
	while (list_empty(&n->jobs) && !n->stop)
		pthread_cond_wait(&n->filled, &n->lock);
	link = n->stop ? NULL : list_pop(&n->jobs);
	n->busy = link;
	pthread_mutex_unlock(&n->lock);
	return link ? list_entry(link, struct notifier_job, link) : NULL;
}

static void notifier_job_done(struct thread_call *call)
{
	struct notifier_job *job = container_of(call, struct notifier_job, call);

	job->done(job);
}

/* The result does not matter: the kernel has nothing of an inode that it does not know. */
static void notifier_tell(const struct notifier_job *job)
{
	if (job->name)
		fuse_port_expire_entry(job->port, job->node, job->name);
	else if (job->size)
		fuse_port_raise_size(job->port, job->node, job->size);
	else
		fuse_port_inval_inode(job->port, job->node, job->off, job->len);
}

static void *notifier_run(void *arg)
{
	struct notifier *n = arg;
	struct notifier_job *job;

	while ((job = next_job(n))) {
		notifier_tell(job);
		job->call.run = notifier_job_done;
		if (job->thread)
			io_thread_call(job->thread, &job->call);
		else
			job->done(job);
	}
	eventfd_write(n->ended_fd, 1);
	return NULL;
}

int notifier_start(struct notifier *n)
{
	int r;

	*n = (struct notifier){.ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (n->ended_fd < 0)
		return -errno;
	list_init(&n->jobs);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->filled, NULL);
	r = pthread_create(&n->pthread, NULL, notifier_run, n);
	if (r) {
		pthread_cond_destroy(&n->filled);
		pthread_mutex_destroy(&n->lock);
		close(n->ended_fd);
	}
	return -r;
}

int notifier_end(struct notifier *n)
{
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->filled);
	pthread_mutex_unlock(&n->lock);
	return n->ended_fd;
}

void notifier_stop(struct notifier *n)
{
	notifier_end(n);
	pthread_join(n->pthread, NULL);
	pthread_cond_destroy(&n->filled);
	pthread_mutex_destroy(&n->lock);
	close(n->ended_fd);
}

bool notifier_is_idle(struct notifier *n)
{
	bool idle;

	pthread_mutex_lock(&n->lock);
	idle = list_empty(&n->jobs) && !n->busy;
	pthread_mutex_unlock(&n->lock);
	return idle;
}

void notifier_add(struct notifier *n, struct notifier_job *job)
{
	list_init(&job->link);
	list_init(&job->call.link);
	pthread_mutex_lock(&n->lock);
	list_add_tail(&n->jobs, &job->link);
	pthread_cond_signal(&n->filled);
	pthread_mutex_unlock(&n->lock);
}
