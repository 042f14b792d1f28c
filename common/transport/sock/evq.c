/* evq.c - see evq.h.
 *
 * The epoll set is level-triggered, so epoll finds a source again that leaves something unread, and
 * evq_fd hands out the epoll descriptor itself. Only notifications from other threads need arming:
 * without a sleeper they cost no system call. The first one after arming makes the wake descriptor
 * readable, and only the next arming clears it. Else a poll in between, too early for the
 * notification, would clear it, and the next sleep would not end. */
#include "common/transport/sock/evq.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum {
	WAIT_BATCH = 64,
	WAIT_EVERY = 16, /* polls served from pending sources before the next epoll_wait */
};

static void wake_take(struct sock_evq *q)
{
	pthread_mutex_lock(&q->lock);
	while (!list_empty(&q->notified)) {
		struct list *node = list_pop(&q->notified);

		sock_source_pend(list_entry(node, struct sock_source, notified));
	}
	q->any_notified = false;
	pthread_mutex_unlock(&q->lock);
}

int sock_evq_new(struct transport *t, struct evq **out)
{
	struct epoll_event wake = {.events = EPOLLIN};
	struct sock_evq *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	list_init(&q->pending);
	list_init(&q->notified);
	q->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (q->epfd < 0) {
		err = -errno;
		goto err_free;
	}
	q->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->wakefd < 0) {
		err = -errno;
		goto err_epoll;
	}
	if (epoll_ctl(q->epfd, EPOLL_CTL_ADD, q->wakefd, &wake) < 0) {
		err = -errno;
		goto err_wake;
	}
	pthread_mutex_init(&q->lock, NULL);
	*out = &q->base;
	return 0;

err_wake:
	close(q->wakefd);
err_epoll:
	close(q->epfd);
err_free:
	free(q);
	return err;
}

void sock_evq_delete(struct evq *base)
{
	struct sock_evq *q = container_of(base, struct sock_evq, base);

	pthread_mutex_destroy(&q->lock);
	close(q->wakefd);
	close(q->epfd);
	free(q);
}

static int wait_ready(struct sock_evq *q)
{
	struct epoll_event ready[WAIT_BATCH];
	int n = epoll_wait(q->epfd, ready, WAIT_BATCH, 0);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct sock_source *s = ready[i].data.ptr;

		if (!s)
			continue; /* the wake descriptor: its sources are in notified */
		s->ready = true;
		sock_source_pend(s);
	}
	return 0;
}

/* One round over the sources that are pending now. */
static int poll_pending(struct sock_evq *q, struct event *events, int max)
{
	struct list round;
	int n = 0;

	list_init(&round);
	list_splice_tail(&round, &q->pending);
	while (n < max && !list_empty(&round)) {
		struct sock_source *s = list_entry(list_pop(&round), struct sock_source, pending);

		n += s->poll(s, events + n, max - n);
	}
	/* Sources not reached come first next time. */
	list_splice_tail(&round, &q->pending);
	list_splice_tail(&q->pending, &round);
	return n;
}

int sock_evq_poll(struct evq *base, struct event *events, int max)
{
	struct sock_evq *q = container_of(base, struct sock_evq, base);
	int n, err;

	if (q->any_notified)
		wake_take(q);
	if (!list_empty(&q->pending) && q->polls_since_wait++ < WAIT_EVERY) {
		n = poll_pending(q, events, max);
		if (n)
			return n;
	}
	q->polls_since_wait = 0;
	err = wait_ready(q);
	if (err)
		return err;
	return poll_pending(q, events, max);
}

/* The descriptor itself announces what epoll knows. */
bool sock_evq_pending(const struct evq *base)
{
	const struct sock_evq *q = container_of(base, struct sock_evq, base);

	return !list_empty(&q->pending) || q->any_notified;
}

int sock_evq_fd(const struct evq *base)
{
	return container_of(base, struct sock_evq, base)->epfd;
}

int sock_evq_arm(struct evq *base)
{
	struct sock_evq *q = container_of(base, struct sock_evq, base);
	eventfd_t count;

	pthread_mutex_lock(&q->lock);
	if (!q->armed)
		eventfd_read(q->wakefd, &count);
	q->armed = true;
	pthread_mutex_unlock(&q->lock);
	return 0;
}

/* ---- sources --------------------------------------------------------------------------------- */

void sock_source_init(struct sock_source *s, struct sock_evq *q,
	int (*poll)(struct sock_source *s, struct event *events, int max))
{
	s->q = q;
	s->poll = poll;
	s->fd = -1;
	list_init(&s->pending);
	list_init(&s->notified);
}

void sock_source_fini(struct sock_source *s)
{
	sock_source_unwatch(s);
	list_del(&s->pending);
	pthread_mutex_lock(&s->q->lock);
	list_del(&s->notified);
	pthread_mutex_unlock(&s->q->lock);
}

int sock_source_watch(struct sock_source *s, int fd, uint32_t interest)
{
	struct epoll_event event = {.events = interest, .data.ptr = s};

	if (s->fd == fd && s->interest == interest)
		return 0;
	if (epoll_ctl(s->q->epfd, s->fd < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) < 0)
		return -errno;
	s->fd = fd;
	s->interest = interest;
	return 0;
}

void sock_source_unwatch(struct sock_source *s)
{
	if (s->fd < 0)
		return;
	epoll_ctl(s->q->epfd, EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = -1;
}

void sock_source_pend(struct sock_source *s)
{
	if (list_empty(&s->pending))
		list_add_tail(&s->q->pending, &s->pending);
}

void sock_source_notify(struct sock_source *s)
{
	struct sock_evq *q = s->q;
	pthread_mutex_lock(&q->lock);
	if (list_empty(&s->notified))
		list_add_tail(&q->notified, &s->notified);
	q->any_notified = true;
	/* Within the lock: the queue may be deleted as soon as its thread can see the source. */
	if (q->armed)
		eventfd_write(q->wakefd, 1);
	q->armed = false;
	pthread_mutex_unlock(&q->lock);
}
