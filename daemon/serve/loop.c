/* loop.c - the loop of an I/O thread: requests in, transfers and replies, answers out.
 *
 * main starts the thread (threads.c), waits for it and owns its struct. A turn of the loop looks at
 * every source once without blocking. When turns find nothing the thread spins for a while, and
 * then sleeps on all its descriptors at once. The sleep also tells what there is to do, and may
 * last no time at all. A thread that does not spin sleeps after each turn that has left nothing to
 * do. So a lone request costs a wait, a read and a reply.
 */
#include "daemon/fuse/receive.h"
#include "daemon/serve/loop.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/serve/fs.h"
#include "daemon/fuse/port.h"
#include "daemon/remote/remote.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/threads.h"
#include "daemon/serve/readers.h"

enum {
	TICK_MS = 100,
	/* Messages read before events are looked at again. The kernel passes over FORGETs for 8
	 * requests at most. */
	RECEIVE_BATCH = 16,
	LUCK_MAX = 3,
	TRY_EVERY = 8,
	EVENT_BATCH = 32,
	LATE_LOG_MS = 10000,
	LATE_LOG_BURST = 8,
	SLOW_LOOK_MS = 1000,
	STOP_LIMIT_MS = 1500, /* for commits when the mount is gone */
};

/* Thread 0 reads these counters. */
static void count(uint64_t *n)
{
	__atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
}

/* ---- a turn ---------------------------------------------------------------------------------- */

static struct readers *readers_of(const struct io_thread *thread)
{
	return thread->priv->readers;
}

static bool is_reader(const struct io_thread *thread)
{
	return readers_has(readers_of(thread), thread->index);
}

static bool is_paused(const struct io_thread *thread)
{
	return atomic_load_explicit(&thread->shared->paused, memory_order_acquire);
}

/* Messages stay in the kernel, but those that it may wait for while it drops pages. */
static bool leaves_messages(const struct io_thread *thread)
{
	return is_paused(thread) && !fuse_receive_is_dropping(thread);
}

/* Only readers spin, and only while they leave CPUs to the programs that they serve. */
static int64_t spin_budget_ns(const struct io_thread *thread)
{
	const struct io_thread_private *priv = thread->priv;

	return is_reader(thread) && readers_now(readers_of(thread)) <= priv->spinning.readers
		       ? priv->spinning.us * INT64_C(1000)
		       : 0;
}

static bool spins(const struct io_thread *thread)
{
	return spin_hopes(&thread->priv->spin) && spin_budget_ns(thread);
}

static void wake_reader(const struct io_thread *thread, unsigned index)
{
	if (index)
		io_thread_wake(io_thread_sibling(thread, index));
}

static void call_stand_in(const struct io_thread *thread)
{
	wake_reader(thread, readers_stand_in(readers_of(thread), thread->priv->now));
}

/* A read that finds nothing costs as much as asking epoll, and one that finds something saves that.
 * So the thread reads on while its last tries were lucky, and tries now and then otherwise. */
static bool worth_a_try(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	return is_reader(thread) &&
	       (spins(thread) || priv->luck || ++priv->untried % TRY_EVERY == 0);
}

static void note_try(struct io_thread_private *priv, bool lucky)
{
	if (lucky && priv->luck < LUCK_MAX)
		priv->luck++;
	else if (!lucky && priv->luck)
		priv->luck--;
}

static unsigned receive_requests(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct list when_read;
	unsigned n = 0;

	/* Calls that want all to be read wait, too. */
	if (leaves_messages(thread))
		return 0;
	list_init(&when_read);
	list_splice_tail(&when_read, &priv->when_read);
	while (n < RECEIVE_BATCH && !fuse_port_gone(thread->port)) {
		bool told = priv->fuse_ready || !list_empty(&when_read);
		/* Others are on their way, or this one came without a wait. */
		bool behind = priv->nused || (!told && priv->luck);
		int got;

		if ((!told && !worth_a_try(thread)) || !fuse_receive_ready(thread))
			break;
		priv->fuse_ready = false;
		got = fuse_receive(thread);
		if (!told)
			note_try(priv, got == RECEIVE_ONE);
		if (got == RECEIVE_GONE)
			io_threads_stop(priv->group);
		if (got != RECEIVE_ONE)
			break;
		count(&priv->nreceived);
		if (behind)
			count(&priv->nbehind);
		if (!priv->polling_fuse && !is_reader(thread))
			call_stand_in(thread);
		n++;
	}
	io_thread_run_list(&when_read);
	return n;
}

static unsigned handle_events(struct io_thread *thread)
{
	struct event events[EVENT_BATCH];
	int n = evq_poll(thread->evq, events, EVENT_BATCH);

	if (n < 0) {
		static struct log_ratelimit limit;

		if (log_ratelimit_ok(&limit, 10000))
			log_error("transport: event queue of thread %u is broken: %s",
				thread->index, errno_text(n));
		return 0;
	}
	for (int i = 0; i < n; i++)
		fs_event(thread, &events[i]);
	return (unsigned)n;
}

/* The thread's requests stood still, and neither the server nor the connection tells why. The log
 * names the cause of a request's wait only if it still waits a second later. */
static void judge_late(struct io_thread *thread, int64_t late_ms)
{
	static struct log_ratelimit limit = {.burst = LATE_LOG_BURST};
	struct io_thread_private *priv = thread->priv;

	if (!cpu_wait_late(&priv->cpu, late_ms, priv->now))
		return;
	priv->slow_look_ms = priv->now + SLOW_LOOK_MS;
	if (log_ratelimit_ok(&limit, LATE_LOG_MS))
		log_warning(
			"thread %u did not run for %lld.%lld s: the process was stopped, or this "
			"machine was paused or gave it no CPU",
			thread->index, (long long)late_ms / 1000, (long long)late_ms % 1000 / 100);
}

static void sum_up(const struct io_thread *thread, uint64_t *received, uint64_t *behind)
{
	*received = *behind = 0;
	for (unsigned i = 0; i < io_thread_siblings(thread); i++) {
		const struct io_thread_private *priv = io_thread_sibling(thread, i)->priv;

		*received += __atomic_load_n(&priv->nreceived, __ATOMIC_RELAXED);
		*behind += __atomic_load_n(&priv->nbehind, __ATOMIC_RELAXED);
	}
}

/* Reviews whether there are enough readers, and not too many. */
static void review_readers(struct io_thread *thread)
{
	uint64_t received, behind;

	if (thread->index != 0 || !readers_review_due(readers_of(thread), thread->priv->now))
		return;
	sum_up(thread, &received, &behind);
	wake_reader(
		thread, readers_review(readers_of(thread), thread->priv->now, received, behind));
}

/* If the readers have read nothing since the last tick, there is nothing, or they stand still. So
 * this thread tries to read. */
static void look_after_readers(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	uint64_t received, behind;

	if (is_reader(thread))
		return;
	sum_up(thread, &received, &behind);
	priv->fuse_ready |= received == priv->received_before;
	priv->received_before = received;
}

static void tick(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	if (priv->now < priv->next_tick)
		return;
	if (priv->next_tick)
		judge_late(thread, priv->now - priv->next_tick);
	cpu_wait_tick(&priv->cpu, priv->now);
	priv->next_tick = priv->now + TICK_MS;
	look_after_readers(thread);
	fs_tick(thread, priv->now);
	request_trim(thread);
	/* Another process may have them. */
	if (is_paused(thread))
		return;
	fuse_receive_give_up_parked(thread);
	if (remote_gives_up(thread))
		fuse_receive_refuse_parked(thread);
}

/* Before a sleep the queue is not polled: the sleep tells of events. */
static unsigned take_events(struct io_thread *thread, bool sleepy)
{
	struct io_thread_private *priv = thread->priv;

	if (sleepy && !priv->events_ready && !evq_pending(thread->evq))
		return 0;
	priv->events_ready = false;
	return handle_events(thread);
}

/* True: there may be more to do at once. */
static bool turn(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	int64_t looked = spin_looks(&priv->spin);
	unsigned received, n;
	bool sleepy;

	priv->now_ns = clock_ns(CLOCK_BOOTTIME);
	priv->now = priv->now_ns / 1000000;
	__atomic_store_n(&priv->turned_ms, priv->now, __ATOMIC_RELAXED);
	received = receive_requests(thread);
	sleepy = received < RECEIVE_BATCH && !spins(thread);
	n = take_events(thread, sleepy);
	n += io_thread_run_calls(thread);
	n += io_thread_run_later(thread);
	n += request_serve_waiters(thread);
	n += fuse_receive_parked(thread);
	if (is_paused(thread))
		fs_step_paused(thread);
	review_readers(thread);
	tick(thread);
	if (received || n)
		spin_found(&priv->spin, looked, spin_budget_ns(thread));
	return n || (received && !sleepy);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* All threads' clones share the kernel's queue: EPOLLEXCLUSIVE wakes one for each message. It must
 * not be a thread that can't read. */
static void watch_fuse(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct epoll_event ev = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = priv->fuse_fd};
	bool ready = fuse_receive_ready(thread), reader = is_reader(thread);
	bool leaves = leaves_messages(thread);
	bool watch = !fuse_port_gone(thread->port) && ready && reader && !leaves;

	if (reader && !ready && !leaves)
		call_stand_in(thread);
	if (watch == priv->polling_fuse)
		return;
	if (epoll_ctl(priv->epoll_fd, watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, priv->fuse_fd, &ev) <
		0)
		log_error("epoll: cannot watch /dev/fuse: %s", errno_text(errno));
	else
		priv->polling_fuse = watch;
}

/* Called after the queue was armed: events from before would wake nobody. */
static bool found_events(struct io_thread *thread)
{
	struct spin *spin = &thread->priv->spin;
	int64_t looked = spin_looks(spin);

	if (!evq_pending(thread->evq) || !handle_events(thread))
		return false;
	spin_found(spin, looked, spin_budget_ns(thread));
	return true;
}

static void sleep_on_descriptors(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct epoll_event events[3];
	eventfd_t count;
	int64_t timeout;
	int n;

	watch_fuse(thread);
	if (evq_arm(thread->evq) != 0 || found_events(thread) ||
		__atomic_load_n(&priv->inbox_filled, __ATOMIC_ACQUIRE) ||
		(!list_empty(&priv->when_read) && !leaves_messages(thread)))
		return;
	timeout = io_thread_next_call(thread, priv->next_tick) - now_ms();
	n = epoll_wait(priv->epoll_fd, events, ARRAY_SIZE(events), timeout > 0 ? (int)timeout : 0);
	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == priv->wake_fd)
			eventfd_read(priv->wake_fd, &count);
		else if (events[i].data.fd == priv->fuse_fd)
			priv->fuse_ready = true;
		else
			priv->events_ready = true;
	}
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Once the mount is gone: whether the thread has nothing left to do. */
static bool loop_ended(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	if (!fuse_port_gone(thread->port))
		return false;
	if (!priv->stopping) {
		priv->stopping = true;
		fuse_receive_drop_parked(thread);
		fs_stop(thread, STOP_LIMIT_MS);
	}
	return fs_stopped(thread);
}

void loop_run(struct io_thread *thread)
{
	/* We clean pages for the kernel: reclaim within our allocations must not wait for us. */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	cpu_wait_init(&thread->priv->cpu);
	while (!loop_ended(thread)) {
		if (turn(thread))
			continue;
		if (!spin_again(&thread->priv->spin, spin_budget_ns(thread)))
			sleep_on_descriptors(thread);
		else
			sched_yield(); /* to programs that were woken on this CPU */
	}
	cpu_wait_fini(&thread->priv->cpu);
}
