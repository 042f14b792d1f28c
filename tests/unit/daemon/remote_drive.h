/* remote_drive.h - the daemon's session without FUSE: the test drives a session's threads, and
 * calls count how often they were answered. */
#ifndef RMEMFS_TESTS_REMOTE_DRIVE_H
#define RMEMFS_TESTS_REMOTE_DRIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/remote/paths.h"
#include "daemon/remote/remote.h"

enum { DRIVE_THREADS = 2, DRIVE_MEMORY = 4 << 20, DRIVE_LIMIT_MS = 30000 };

struct drive {
	struct session *session;
	struct io_thread threads[DRIVE_THREADS];
	unsigned nthreads;
	uint8_t *memory;
	struct buffer *buffer;
	char why[256];
};

/* One turn of a thread's loop; sleeps a little when nothing happens. */
static inline void drive_turn(struct io_thread *thread, int idle_ms)
{
	struct event events[16];
	int n = evq_poll(thread->evq, events, ARRAY_SIZE(events));

	if (n == 0 && idle_ms) {
		struct pollfd pfd = {.fd = evq_fd(thread->evq), .events = POLLIN};

		assert_int_equal(evq_arm(thread->evq), 0);
		n = evq_poll(thread->evq, events, ARRAY_SIZE(events));
		if (n == 0)
			poll(&pfd, 1, idle_ms);
	}
	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		remote_event(thread, &events[i]);
	remote_tick(thread, now_ms());
}

/* Drives all threads until the condition holds; fails the test after DRIVE_LIMIT_MS. */
#define drive_until(d, condition)                                       \
	do {                                                            \
		int64_t limit_ = now_ms() + DRIVE_LIMIT_MS;             \
                                                                        \
		while (!(condition)) {                                  \
			assert_true(now_ms() < limit_);                 \
			for (unsigned t_ = 0; t_ < (d)->nthreads; t_++) \
				drive_turn(&(d)->threads[t_], 5);       \
		}                                                       \
	} while (0)

static inline void drive_news(struct io_thread *thread, const struct rpc_tail *recalls)
{
}

static inline void drive_connected(struct io_thread *thread)
{
}

static inline void drive_pages_wanted(struct io_thread *thread, uint64_t npages)
{
}

/* The session has no user above it. */
static const struct session_events drive_events = {drive_news, drive_connected, drive_pages_wanted};

/* Opens only our end of the session; drive_connect() does the rest. */
static inline int drive_open(struct drive *d, const struct session_options *options)
{
	int err;

	*d = (struct drive){.nthreads = options->io_threads};
	err = session_new(options, &drive_events, &d->session, d->why, sizeof(d->why));
	if (err)
		return err;
	d->memory = mmap(
		NULL, DRIVE_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(d->memory, MAP_FAILED);
	assert_int_equal(paths_register(d->session, d->memory, DRIVE_MEMORY, &d->buffer), 0);
	for (unsigned i = 0; i < d->nthreads; i++) {
		d->threads[i].index = i;
		assert_int_equal(remote_init(&d->threads[i], d->session), 0);
	}
	return 0;
}

static inline int drive_connect(struct drive *d)
{
	return remote_connect(&d->threads[0], d->why, sizeof(d->why));
}

static inline void drive_close(struct drive *d)
{
	for (unsigned i = 0; i < d->nthreads; i++)
		remote_fini(&d->threads[i]);
	paths_deregister(d->session, d->buffer);
	if (d->memory)
		munmap(d->memory, DRIVE_MEMORY);
	session_delete(d->session);
}

/* Ends the session in order. */
static inline void drive_stop(struct drive *d, unsigned limit_ms)
{
	for (unsigned i = 0; i < d->nthreads; i++)
		remote_stop(&d->threads[i], limit_ms);
	drive_until(d, remote_stopped(&d->threads[d->nthreads - 1]));
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct test_rpc {
	struct rpc_call call;
	char name[300];
	unsigned ndone;
	int status;
	struct rpc_reply rep; /* without pointers into the message */
};

static inline void test_rpc_done(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct test_rpc *t = container_of(call, struct test_rpc, call);

	t->ndone++;
	t->status = rep->status;
	t->rep = *rep;
}

static inline void test_rpc_create(struct test_rpc *t, const char *format, unsigned n)
{
	*t = (struct test_rpc){.call.done = test_rpc_done};
	snprintf(t->name, sizeof(t->name), "%s%u", format, n);
	t->call.req.op = RPC_CREATE;
	t->call.req.create = (struct rpc_create){
		.parent = ROOT_INO,
		.mode = 0100644,
		.exclusive = true,
		.name = {.s = t->name, .len = (uint16_t)strlen(t->name)},
	};
}

struct test_io {
	struct io_call call;
	struct io_thread *thread;
	unsigned ndone;
	int status;
};

static inline void test_io_done(struct io_call *call, int status)
{
	struct test_io *t = container_of(call, struct test_io, call);

	t->ndone++;
	t->status = status;
}

#define count_done(calls)                                         \
	({                                                        \
		unsigned n_ = 0;                                  \
		for (size_t i_ = 0; i_ < ARRAY_SIZE(calls); i_++) \
			n_ += (calls)[i_].ndone;                  \
		n_;                                               \
	})

#endif
