/* evq.c - event queues: an epoll descriptor over the connection manager's events and the completion
 * queues' notifications.
 *
 * Each channel has a completion queue of its own. The queue is hot while it is worth polling: from
 * a notification on, until it is found empty after it was armed again. So a busy queue is polled
 * without a system call, and a thousand silent channels cost nothing.
 *
 * An event queue that shares receives also listens to the device's asynchronous events, since they
 * announce a dying channel's last receive. All event queues of a device read them from one
 * descriptor, so any of them may take an event. Each finds out by its timer at the latest. */
#include "common/transport/verbs/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "common/base/clock.h"
#include "common/base/util.h"

enum {
	BUSY_POLLS = 64, /* polls of a busy queue between two looks at the descriptors */
	ACK_BATCH = 64,  /* acknowledging takes a lock: not for each event */
};

/* By default the verbs library blocks in its reads. */
static int verbs_evq_watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	return 0;
}

static int watch_all(struct verbs_evq *q)
{
	int err = verbs_evq_watch(q->epoll, q->cm->fd);

	if (!err)
		err = verbs_evq_watch(q->epoll, q->comp->fd);
	return err ? err : verbs_evq_watch(q->epoll, q->timer);
}

int verbs_evq_watch_device(struct verbs_evq *q)
{
	return verbs_evq_watch(q->epoll, verbs_transport(q->base.transport)->context->async_fd);
}

int verbs_evq_new(struct transport *t, struct evq **out)
{
	struct verbs_evq *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	list_init(&q->ready);
	list_init(&q->hot);
	list_init(&q->dying);
	q->idle = true;
	q->cm = rdma_create_event_channel();
	if (!q->cm) {
		err = -errno;
		goto err_free;
	}
	q->comp = ibv_create_comp_channel(verbs_transport(t)->context);
	if (!q->comp) {
		err = -errno;
		goto err_cm;
	}
	q->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (q->timer < 0) {
		err = -errno;
		goto err_comp;
	}
	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (q->epoll < 0) {
		err = -errno;
		goto err_timer;
	}
	err = watch_all(q);
	if (err)
		goto err_epoll;
	*out = &q->base;
	return 0;

err_epoll:
	close(q->epoll);
err_timer:
	close(q->timer);
err_comp:
	ibv_destroy_comp_channel(q->comp);
err_cm:
	rdma_destroy_event_channel(q->cm);
err_free:
	free(q);
	return err;
}

void verbs_evq_delete(struct evq *base)
{
	struct verbs_evq *q = verbs_evq(base);

	verbs_srq_delete(q->srq);
	close(q->epoll);
	close(q->timer);
	ibv_destroy_comp_channel(q->comp);
	rdma_destroy_event_channel(q->cm);
	free(q);
}

int verbs_evq_fd(const struct evq *base)
{
	return verbs_evq(base)->epoll;
}

/* Returns how many completion queues it armed, or -errno. */
static int arm_hot(struct verbs_evq *q)
{
	int n = 0;

	list_for_each (node, &q->hot) {
		struct verbs_channel *ch = list_entry(node, struct verbs_channel, hot_node);
		int err;

		if (ch->armed)
			continue;
		err = ibv_req_notify_cq(ch->cq, 0);
		if (err)
			return -err;
		ch->armed = true;
		n++;
	}
	return n;
}

int verbs_evq_arm(struct evq *base)
{
	struct verbs_evq *q = verbs_evq(base);
	int n = arm_hot(q);

	if (n < 0)
		return n;
	q->armed = true;
	return 0;
}

void verbs_evq_ready(struct verbs_channel *ch)
{
	if (list_empty(&ch->ready_node))
		list_add_tail(&verbs_evq(ch->base.q)->ready, &ch->ready_node);
}

/* A late notification of a dead channel must not revive it. */
void verbs_evq_hot(struct verbs_channel *ch)
{
	if (ch->phase != PHASE_DEAD && list_empty(&ch->hot_node))
		list_add_tail(&verbs_evq(ch->base.q)->hot, &ch->hot_node);
}

void verbs_evq_forget(struct verbs_channel *ch)
{
	list_del(&ch->ready_node);
	list_del(&ch->hot_node);
	list_del(&ch->dying_node);
}

/* ---- dying channels -------------------------------------------------------------------------- */

static void set_timer(const struct verbs_evq *q)
{
	const struct verbs_channel *first =
		list_entry(q->dying.next, struct verbs_channel, dying_node);
	struct itimerspec when = {.it_value = {.tv_sec = first->last_ms / 1000,
					  .tv_nsec = first->last_ms % 1000 * 1000000}};

	timerfd_settime(q->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void verbs_evq_await(struct verbs_channel *ch)
{
	struct verbs_evq *q = verbs_evq(ch->base.q);
	bool first = list_empty(&q->dying);

	list_add_tail(&q->dying, &ch->dying_node);
	if (first)
		set_timer(q);
}

/* Makes channels hot whose time is over or whose last receive was reported; they leave the list
 * when they are polled. */
static void look_at_dying(struct verbs_evq *q)
{
	list_for_each_safe (node, &q->dying) {
		struct verbs_channel *ch = list_entry(node, struct verbs_channel, dying_node);

		if (!verbs_channel_may_finish(ch))
			continue;
		list_del(&ch->dying_node);
		verbs_evq_hot(ch);
	}
	if (!list_empty(&q->dying))
		set_timer(q);
}

static void take_timer(struct verbs_evq *q)
{
	uint64_t times;

	(void)!read(q->timer, &times, sizeof(times));
}

/* Whether the event shows a queue pair in error. One with shared receives has no completion of its
 * own that would show it. */
static bool is_end(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_LAST_WQE_REACHED || type == IBV_EVENT_QP_FATAL ||
	       type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR;
}

/* Acknowledge the event before telling the channel, which may wait for that. The channel of another
 * queue may be gone afterwards. */
static void take_device_event(struct verbs_evq *q, struct ibv_async_event *event)
{
	struct verbs_channel *ch = NULL;

	if (is_end(event->event_type) && event->element.qp->srq)
		ch = event->element.qp->qp_context;
	if (ch && event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
		verbs_channel_last_receive(ch);
	if (ch && ch->base.q != &q->base)
		ch = NULL;
	ibv_ack_async_event(event);
	if (ch)
		verbs_channel_fail(ch, 0);
}

/* A removed device sends no more events here; its channels learn it from other events. */
static void take_device_events(struct verbs_evq *q)
{
	struct ibv_context *context = verbs_transport(q->base.transport)->context;
	struct ibv_async_event event;

	while (ibv_get_async_event(context, &event) == 0)
		take_device_event(q, &event);
	if (errno != EAGAIN && errno != EINTR)
		epoll_ctl(q->epoll, EPOLL_CTL_DEL, context->async_fd, NULL);
}

/* ---- polling --------------------------------------------------------------------------------- */

static int take_notifications(struct verbs_evq *q)
{
	struct verbs_channel *ch;
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(q->comp, &cq, &context) == 0) {
		ch = context;
		ch->armed = false;
		if (++ch->cq_events == ACK_BATCH) {
			ibv_ack_cq_events(cq, ch->cq_events);
			ch->cq_events = 0;
		}
		verbs_evq_hot(ch);
	}
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int take_from(struct verbs_evq *q, int fd)
{
	if (fd == q->cm->fd)
		return verbs_connect_poll(q);
	if (fd == q->comp->fd)
		return take_notifications(q);
	if (fd == q->timer)
		take_timer(q);
	else
		take_device_events(q);
	look_at_dying(q);
	return 0;
}

static int look_at_descriptors(struct verbs_evq *q)
{
	struct epoll_event events[4];
	int n = epoll_wait(q->epoll, events, ARRAY_SIZE(events), 0);
	int err = 0;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n && !err; i++)
		err = take_from(q, events[i].data.fd);
	return err;
}

static int take_ready(struct verbs_evq *q, struct event *events, int max)
{
	int n = 0;

	while (n < max && !list_empty(&q->ready)) {
		struct verbs_channel *ch =
			list_entry(q->ready.next, struct verbs_channel, ready_node);

		n += verbs_channel_events(ch, &events[n], max - n);
		if (n < max)
			list_del(&ch->ready_node);
	}
	return n;
}

/* Channels that were not polled for lack of room come first the next time. */
static int poll_hot(struct verbs_evq *q, struct event *events, int max)
{
	struct list asked;
	int n = 0;

	list_init(&asked);
	while (n < max && !list_empty(&q->hot)) {
		struct verbs_channel *ch =
			list_entry(list_pop(&q->hot), struct verbs_channel, hot_node);
		int got = verbs_io_poll(ch, &events[n], max - n);

		n += got;
		/* A channel that began to die is hot again already: its drain continues at once. */
		if (ch->phase < PHASE_DEAD && (got || !ch->armed) && list_empty(&ch->hot_node))
			list_add_tail(&asked, &ch->hot_node);
	}
	list_splice_tail(&q->hot, &asked);
	return n;
}

static int poll_once(struct verbs_evq *q, struct event *events, int max)
{
	int n, err;

	if (q->idle || ++q->polls % BUSY_POLLS == 0) {
		err = look_at_descriptors(q);
		if (err)
			return err;
	}
	n = take_ready(q, events, max);
	n += poll_hot(q, events + n, max - n);
	/* A channel that died during the poll has its last events ready. */
	n += take_ready(q, events + n, max - n);
	q->idle = n == 0;
	return n;
}

/* A notification may come long after its completion was polled. If it is taken here, it uses up the
 * arming on which the caller is about to sleep: arm again then. */
int verbs_evq_poll(struct evq *base, struct event *events, int max)
{
	struct verbs_evq *q = verbs_evq(base);
	int n = poll_once(q, events, max), armed;

	while (n == 0 && q->armed) {
		armed = arm_hot(q);
		if (armed <= 0)
			return armed;
		n = poll_once(q, events, max);
	}
	if (n)
		q->armed = false;
	return n;
}
