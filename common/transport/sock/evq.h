/* evq.h - the event queue of the socket transports: an epoll set of sources.
 *
 * A source is a listener, a guest that has not said hello, or a channel. It has work when its
 * descriptor is ready, when its owner pends it, or when another thread notifies it. Then evq_poll
 * calls its poll function, which writes events straight into the caller's array.
 *
 * OWNERSHIP  Sources are embedded in their makers' structs; sock_source_fini before those go.
 * THREADS    The queue's own thread, but for sock_source_notify, which any thread may call.
 * ERRORS     0 or -errno.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_SOCK_EVQ_H
#define RMEMFS_COMMON_TRANSPORT_SOCK_EVQ_H

#include <pthread.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/transport/transport_ops.h"

struct sock_evq;

struct sock_source {
	struct sock_evq *q;
	struct list pending;  /* in q->pending */
	struct list notified; /* in q->notified, under q->lock */
	int fd;               /* watched; -1: none */
	uint32_t interest;    /* of epoll */
	bool ready;           /* epoll said so; poll reads and clears it */
	/* Makes up to max (at least 1) events and returns how many; pends the source itself if work
	 * remains. It may free the source. */
	int (*poll)(struct sock_source *s, struct event *events, int max);
};

struct sock_evq {
	struct evq base;
	int epfd;
	struct list pending;
	unsigned polls_since_wait;
	int wakefd;           /* an eventfd, written when a source is notified while armed */
	pthread_mutex_t lock; /* innermost: taken with a channel's lock held */
	struct list notified; /* under lock */
	bool armed;           /* under lock */
	_Atomic bool any_notified;
};

int sock_evq_new(struct transport *t, struct evq **out);
void sock_evq_delete(struct evq *base);
int sock_evq_poll(struct evq *base, struct event *events, int max);
bool sock_evq_pending(const struct evq *base);
int sock_evq_fd(const struct evq *base);
int sock_evq_arm(struct evq *base);

void sock_source_init(struct sock_source *s, struct sock_evq *q,
	int (*poll)(struct sock_source *s, struct event *events, int max));
/* Removes the source, whatever it waits for; its descriptor stays open. */
void sock_source_fini(struct sock_source *s);

/* Watches fd for interest (EPOLLIN, EPOLLOUT); a second call changes the interest. */
int sock_source_watch(struct sock_source *s, int fd, uint32_t interest);
void sock_source_unwatch(struct sock_source *s);

/* Makes the next evq_poll poll the source. */
void sock_source_pend(struct sock_source *s);
void sock_source_notify(struct sock_source *s);

#endif
