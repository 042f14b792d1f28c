/* scrub.c - see scrub.h. A ring of jobs: taken <= finished <= posted. */
#include "server/space/scrub.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/space/protect.h"

struct scrub {
	pthread_t thread;
	int fd;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake, done;
	bool stop;
	bool working; /* the thread has taken the job that is to be finished next */
	struct scrub_job ring[SCRUB_JOBS];
	unsigned taken, finished, posted;
};

static bool next_job(struct scrub *s, struct scrub_job *job)
{
	bool stop;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && s->finished == s->posted)
		pthread_cond_wait(&s->wake, &s->lock);
	*job = s->ring[s->finished % SCRUB_JOBS];
	stop = s->stop;
	s->working = true;
	pthread_mutex_unlock(&s->lock);
	return !stop;
}

static void zero(const struct scrub_job *job)
{
	CRASH_POINT("scrub.before");
	memset(job->addr, 0, job->len / 2);
	CRASH_POINT("scrub.half");
	memset((char *)job->addr + job->len / 2, 0, job->len - job->len / 2);
	CRASH_POINT("scrub.zeroed");
}

static void finish_job(struct scrub *s, bool refused)
{
	pthread_mutex_lock(&s->lock);
	s->ring[s->finished++ % SCRUB_JOBS].refused = refused;
	s->working = false;
	pthread_cond_broadcast(&s->done);
	scrub_kick(s); /* not after another thread can take the job */
	pthread_mutex_unlock(&s->lock);
}

static void *scrub_main(void *arg)
{
	struct scrub *s = arg;
	struct scrub_job job;

	while (next_job(s, &job)) {
		bool refused = job.forgotten || protect_give_up(job.protect, job.run) != 0;

		if (!refused)
			zero(&job);
		finish_job(s, refused);
	}
	return NULL;
}

int scrub_new(struct scrub **out)
{
	struct scrub *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->fd < 0) {
		err = -errno;
		goto err_free;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	pthread_cond_init(&s->done, NULL);
	err = -pthread_create(&s->thread, NULL, scrub_main, s);
	if (err)
		goto err_fd;
	*out = s;
	return 0;

err_fd:
	pthread_cond_destroy(&s->done);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
err_free:
	free(s);
	return err;
}

void scrub_delete(struct scrub *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->done);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
	free(s);
}

int scrub_fd(const struct scrub *s)
{
	return s->fd;
}

void scrub_kick(struct scrub *s)
{
	eventfd_write(s->fd, 1);
}

void scrub_clear(struct scrub *s)
{
	eventfd_t n;

	eventfd_read(s->fd, &n);
}

unsigned scrub_room(struct scrub *s)
{
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = SCRUB_JOBS - (s->posted - s->taken);
	pthread_mutex_unlock(&s->lock);
	return n;
}

void scrub_post(struct scrub *s, const struct scrub_job *job)
{
	pthread_mutex_lock(&s->lock);
	assert(s->posted - s->taken < SCRUB_JOBS);
	s->ring[s->posted++ % SCRUB_JOBS] = *job;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

bool scrub_has_finished(struct scrub *s)
{
	bool any;

	pthread_mutex_lock(&s->lock);
	any = s->taken != s->finished;
	pthread_mutex_unlock(&s->lock);
	return any;
}

bool scrub_take(struct scrub *s, struct scrub_job *job)
{
	bool any;

	pthread_mutex_lock(&s->lock);
	do {
		any = s->taken != s->finished;
		if (any)
			*job = s->ring[s->taken++ % SCRUB_JOBS];
	} while (any && job->forgotten);
	pthread_mutex_unlock(&s->lock);
	return any;
}

void scrub_forget(struct scrub *s, unsigned export_index)
{
	unsigned current;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = s->taken; i != s->posted; i++) {
		struct scrub_job *job = &s->ring[i % SCRUB_JOBS];

		job->forgotten |= job->export_index == export_index;
	}
	current = s->finished;
	while (s->working && s->finished == current &&
		s->ring[current % SCRUB_JOBS].export_index == export_index)
		pthread_cond_wait(&s->done, &s->lock);
	pthread_mutex_unlock(&s->lock);
}
