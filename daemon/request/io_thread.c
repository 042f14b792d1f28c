/* io_thread.c - a thread's mailbox and clock, and how it finds the others. serve/loop.c has its
 * loop. */
#include "daemon/request/io_thread.h"

#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/request/io_thread_private.h"

void io_thread_call(struct io_thread *thread, struct thread_call *call)
{
	struct io_thread_private *priv = thread->priv;
	bool first;

	pthread_mutex_lock(&priv->inbox_lock);
	first = list_empty(&priv->inbox);
	list_add_tail(&priv->inbox, &call->link);
	__atomic_store_n(&priv->inbox_filled, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&priv->inbox_lock);
	if (first)
		io_thread_wake(thread);
}

const struct counters *io_thread_counters(const struct io_thread *thread)
{
	return &thread->priv->counters;
}

void io_thread_wake(struct io_thread *thread)
{
	eventfd_write(thread->priv->wake_fd, 1);
}

void io_thread_call_when_read(struct io_thread *thread, struct thread_call *call)
{
	list_add_tail(&thread->priv->when_read, &call->link);
}

void io_thread_call_later(struct io_thread *thread, struct thread_call *call, unsigned ms)
{
	call->at_ms = now_ms() + ms;
	list_add_tail(&thread->priv->later, &call->link);
}

unsigned io_thread_run_list(struct list *calls)
{
	struct list *link;
	unsigned n = 0;

	while ((link = list_pop(calls))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
		n++;
	}
	return n;
}

unsigned io_thread_run_calls(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct list calls;

	if (!__atomic_load_n(&priv->inbox_filled, __ATOMIC_ACQUIRE))
		return 0;
	list_init(&calls);
	pthread_mutex_lock(&priv->inbox_lock);
	list_splice_tail(&calls, &priv->inbox);
	__atomic_store_n(&priv->inbox_filled, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&priv->inbox_lock);
	return io_thread_run_list(&calls);
}

unsigned io_thread_run_later(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	struct list due;

	list_init(&due);
	list_for_each_safe (pos, &priv->later) {
		if (list_entry(pos, struct thread_call, link)->at_ms > priv->now)
			continue;
		list_del(pos);
		list_add_tail(&due, pos);
	}
	return io_thread_run_list(&due);
}

int64_t io_thread_next_call(const struct io_thread *thread, int64_t next)
{
	list_for_each (pos, &thread->priv->later) {
		const struct thread_call *call = list_entry(pos, struct thread_call, link);

		if (call->at_ms < next)
			next = call->at_ms;
	}
	return next;
}

int64_t io_thread_now(const struct io_thread *thread)
{
	return thread->priv->now;
}

struct io_thread *io_thread_sibling(const struct io_thread *thread, unsigned index)
{
	const struct io_thread_private *priv = thread->priv;

	return &priv->siblings[index % priv->nsiblings];
}

unsigned io_thread_siblings(const struct io_thread *thread)
{
	return thread->priv->nsiblings;
}

void io_thread_cpu(const struct io_thread *thread, struct cpu_wait_view *view)
{
	cpu_wait_look(&thread->priv->cpu, now_ms(), view);
}
