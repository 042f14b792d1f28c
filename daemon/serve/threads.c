#include "daemon/serve/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/serve/fs.h"
#include "daemon/fuse/port.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/loop.h"
#include "daemon/serve/readers.h"

struct io_threads {
	struct io_thread *threads;
	struct buffer **mems; /* [n], registered; NULL: not */
	unsigned n;
	struct fuse_port *port;
	int ended_fd;    /* written by the last thread to end */
	unsigned nended; /* atomic */
	struct readers readers;
	int64_t seen_ms[IO_THREADS_MAX]; /* io_threads_standing() */
};

/* ---- making ---------------------------------------------------------------------------------- */

static void delete_thread(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;

	if (!priv)
		return;
	request_pools_fini(thread);
	if (priv->epoll_fd >= 0)
		close(priv->epoll_fd);
	if (priv->wake_fd >= 0)
		close(priv->wake_fd);
	pthread_mutex_destroy(&priv->inbox_lock);
	free(priv);
	thread->priv = NULL;
}

static void init_notes(struct io_thread_private *priv)
{
	list_init(&priv->free_notes);
	for (unsigned i = 0; i < THREAD_NOTES; i++)
		list_add_tail(&priv->free_notes, &priv->notes[i].link);
}

static int new_thread(struct io_threads *group, unsigned index, unsigned nbuffers,
	const struct spinning *spinning)
{
	struct io_thread *thread = &group->threads[index];
	struct io_thread_private *priv = calloc(1, sizeof(*priv));
	int err;

	if (!priv)
		return -ENOMEM;
	thread->index = index;
	thread->priv = priv;
	priv->group = group;
	priv->readers = &group->readers;
	priv->siblings = group->threads;
	priv->nsiblings = group->n;
	priv->fuse_fd = -1;
	priv->spinning = *spinning;
	priv->now = now_ms();
	pthread_mutex_init(&priv->inbox_lock, NULL);
	list_init(&priv->inbox);
	list_init(&priv->when_read);
	list_init(&priv->later);
	list_init(&priv->parked);
	list_init(&priv->free_requests);
	list_init(&priv->used_requests);
	init_notes(priv);
	priv->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	priv->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (priv->wake_fd < 0 || priv->epoll_fd < 0)
		err = -errno;
	else
		err = request_pools_init(thread, nbuffers);
	if (err)
		delete_thread(thread);
	return err;
}

int io_threads_new(unsigned nthreads, unsigned nbuffers, const struct spinning *spinning,
	struct io_threads **out)
{
	struct io_threads *group = calloc(1, sizeof(*group));
	int err = -ENOMEM;

	if (!group)
		return -ENOMEM;
	group->n = nthreads;
	readers_init(&group->readers, nthreads);
	group->threads = calloc(nthreads, sizeof(*group->threads));
	group->mems = calloc(nthreads, sizeof(*group->mems));
	group->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!group->threads || !group->mems || group->ended_fd < 0)
		goto err_group;
	for (unsigned i = 0; i < nthreads; i++) {
		err = new_thread(group, i, nbuffers, spinning);
		if (err)
			goto err_group;
	}
	*out = group;
	return 0;

err_group:
	io_threads_delete(group);
	return err;
}

void io_threads_delete(struct io_threads *group)
{
	if (!group)
		return;
	for (unsigned i = 0; group->threads && i < group->n; i++)
		delete_thread(&group->threads[i]);
	if (group->ended_fd >= 0)
		close(group->ended_fd);
	free(group->mems);
	free(group->threads);
	free(group);
}

/* ---- attaching to the filesystem ------------------------------------------------------------- */

static int attach_thread(struct io_threads *group, unsigned index, struct fs *fs)
{
	struct io_thread *thread = &group->threads[index];
	struct io_thread_private *priv = thread->priv;
	struct buffer *mem;
	int err;

	thread->fs = fs;
	err = fs_register_memory(fs, priv->arena, priv->arena_bytes, &mem);
	if (err)
		return err;
	group->mems[index] = mem;
	thread->mem = mem;
	for (unsigned i = 0; i < priv->nbuffers; i++)
		priv->buffers[i].mem = mem;
	err = fs_thread_init(fs, thread);
	if (err) {
		fs_deregister_memory(fs, mem);
		group->mems[index] = NULL;
	}
	return err;
}

int io_threads_attach(struct io_threads *group, struct fs *fs, char *why, size_t whylen)
{
	for (unsigned i = 0; i < group->n; i++) {
		int err = attach_thread(group, i, fs);

		if (err) {
			snprintf(why, whylen,
				"cannot set up I/O thread %u (%zu MiB of buffers): %s: make io_threads or "
				"buffers smaller",
				i, group->threads[i].priv->arena_bytes >> 20, errno_text(err));
			io_threads_detach(group);
			return err;
		}
	}
	return 0;
}

void io_threads_detach(struct io_threads *group)
{
	for (unsigned i = 0; i < group->n; i++) {
		if (!group->mems[i])
			continue;
		fs_thread_fini(&group->threads[i]);
		fs_deregister_memory(group->threads[i].fs, group->mems[i]);
		group->mems[i] = NULL;
	}
}

/* ---- running --------------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	struct io_thread *thread = arg;
	struct io_threads *group = thread->priv->group;

	loop_run(thread);
	if (__atomic_add_fetch(&group->nended, 1, __ATOMIC_ACQ_REL) == group->n)
		eventfd_write(group->ended_fd, 1);
	return NULL;
}

static int threads_watch(int epoll_fd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int open_descriptors(struct io_thread *thread, struct fuse_port *port)
{
	struct io_thread_private *priv = thread->priv;
	int err = 0;

	thread->port = port;
	if (priv->fuse_fd < 0)
		err = fuse_port_clone(port, &priv->fuse_fd);
	if (!err)
		err = threads_watch(priv->epoll_fd, priv->wake_fd);
	if (!err)
		err = threads_watch(priv->epoll_fd, evq_fd(thread->evq));
	return err;
}

/* Signals are main's: the threads block them all, but those of their own accesses to regions that
 * lost bytes (cut_guard.h). */
static int start_thread(struct io_thread *thread)
{
	struct io_thread_private *priv = thread->priv;
	char name[16];
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&priv->pthread, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	priv->started = true;
	snprintf(name, sizeof(name), "rmemfs-io/%u", thread->index);
	pthread_setname_np(priv->pthread, name);
	return 0;
}

int io_threads_start(struct io_threads *group, struct fuse_port *port, char *why, size_t whylen)
{
	int err = 0;

	group->port = port;
	/* The threads know each other from their first turn on, so all are ready before one runs.
	 */
	for (unsigned i = 0; !err && i < group->n; i++)
		err = open_descriptors(&group->threads[i], port);
	for (unsigned i = 0; !err && i < group->n; i++)
		err = start_thread(&group->threads[i]);
	if (err)
		snprintf(why, whylen, "cannot start the I/O threads: %s", errno_text(err));
	else
		fs_threads_started(group->threads[0].fs);
	return err;
}

void io_threads_devices(const struct io_threads *group, int *fds)
{
	for (unsigned i = 0; i < group->n; i++)
		fds[i] = group->threads[i].priv->fuse_fd;
}

int io_threads_take_devices(struct io_threads *group, int *fds)
{
	int err = 0;

	for (unsigned i = 0; i < group->n; i++) {
		int fd = group->threads[i].priv->fuse_fd = steal_fd(&fds[i]);

		if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
			err = -errno;
	}
	return err;
}

struct io_thread *io_threads_thread(struct io_threads *group, unsigned index)
{
	return &group->threads[index];
}

int io_threads_standing(struct io_threads *group)
{
	int standing = -1;

	for (unsigned i = 0; i < group->n; i++) {
		const struct io_thread *thread = &group->threads[i];
		int64_t turned = __atomic_load_n(&thread->priv->turned_ms, __ATOMIC_RELAXED);

		if (turned == group->seen_ms[i] && standing < 0)
			standing = (int)i;
		group->seen_ms[i] = turned;
	}
	return standing;
}

int io_threads_ended_fd(const struct io_threads *group)
{
	return group->ended_fd;
}

void io_threads_stop(struct io_threads *group)
{
	fuse_port_set_gone(group->port);
	for (unsigned i = 0; i < group->n; i++)
		io_thread_wake(&group->threads[i]);
}

void io_threads_join(struct io_threads *group)
{
	for (unsigned i = 0; i < group->n; i++) {
		struct io_thread_private *priv = group->threads[i].priv;

		if (priv->started)
			pthread_join(priv->pthread, NULL);
		priv->started = false;
	}
	fs_threads_ended(group->threads[0].fs);
	/* The last descriptor ends the connection, if the mount did not. */
	for (unsigned i = 0; i < group->n; i++)
		if (group->threads[i].priv->fuse_fd >= 0)
			close(steal_fd(&group->threads[i].priv->fuse_fd));
}
