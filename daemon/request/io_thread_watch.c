/* io_thread_watch.c - see io_thread_watch.h. */
#include "daemon/request/io_thread_watch.h"

#include <errno.h>
#include <sys/epoll.h>

#include "daemon/request/io_thread_private.h"

/* With its port a thread gets the watch of its first queue (serve/threads.c). Threads that a test
 * drives have no private part. */
static bool is_running(const struct io_thread *thread)
{
	return thread->priv && thread->port;
}

int io_thread_watch(struct io_thread *thread, struct evq *q)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = evq_fd(q)};

	if (!is_running(thread))
		return 0;
	thread->priv->events_ready = true;
	return epoll_ctl(thread->priv->epoll_fd, EPOLL_CTL_ADD, evq_fd(q), &ev) < 0 ? -errno : 0;
}

void io_thread_unwatch(struct io_thread *thread, struct evq *q)
{
	if (is_running(thread))
		epoll_ctl(thread->priv->epoll_fd, EPOLL_CTL_DEL, evq_fd(q), NULL);
}
