/* io_thread_private.h - what the files that make up an I/O thread share: its mailbox (io_thread.c),
 * its pools (request.c), what it reads (fuse/receive.c), its loop (serve/loop.c).
 *
 * THREADS    All of it is the thread's own, except the inbox and the fields that are said to be
 *            atomic.
 */
#ifndef RMEMFS_DAEMON_REQUEST_IO_THREAD_PRIVATE_H
#define RMEMFS_DAEMON_REQUEST_IO_THREAD_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_wait.h"
#include "common/base/list.h"
#include "common/base/spin.h"
#include "daemon/request/counters.h"
#include "daemon/request/io_thread.h"
#include "daemon/request/request.h"

struct io_threads;
struct readers;

/* The requests that one thread works on at once, besides those set aside. Of these, the requests
 * that may wait for other clients (request.h). And the INTERRUPTs that the other threads look for
 * at once. */
enum { THREAD_REQUESTS = 256, UNRESERVED_REQUESTS = 224, THREAD_NOTES = 32 };
/* With so much memory set aside a thread reads on for a reason only. */
enum { ASIDE_BYTES = 224 << 20 };

/* "Has any of you this request?": goes round the threads and comes back to the one that asked. */
struct interrupt_note {
	struct thread_call call;
	struct list link; /* free_notes */
	uint64_t unique;
	struct io_thread *home, *at;
};

struct io_thread_private {
	struct io_threads *group;
	struct readers *readers;
	struct io_thread *siblings; /* all threads of the mount, [nsiblings] */
	unsigned nsiblings;
	pthread_t pthread;
	bool started;

	int fuse_fd, wake_fd, epoll_fd;
	bool polling_fuse;      /* fuse_fd is in epoll_fd */
	int64_t now, next_tick; /* now: of this turn, in ms, and in now_ns */
	int64_t now_ns;
	struct cpu_wait cpu;
	int64_t turned_ms;    /* atomic: the last turn's now, for main */
	int64_t slow_look_ms; /* when serve/slow.c looks next */
	struct spinning spinning;
	struct spin spin;
	bool fuse_ready, events_ready; /* so the last sleep has said */
	unsigned luck, untried;        /* of reads without being told: worth_a_try() */
	uint64_t nreceived, nbehind;   /* atomic: messages read; of these while behind */
	uint64_t received_before;      /* by all threads, at the last tick */
	bool stopping;                 /* fs_stop was called */

	/* Calls from other threads. The flag lets the loop pass without the lock. */
	pthread_mutex_t inbox_lock;
	struct list inbox;     /* under inbox_lock */
	bool inbox_filled;     /* atomic */
	struct list when_read; /* struct thread_call: io_thread_call_when_read() */
	struct list later;     /* likewise: io_thread_call_later() */

	/* Requests, by link; by `all` also those that are set aside. */
	struct list free_requests, used_requests;
	unsigned nused;     /* without those set aside; with the free ones THREAD_REQUESTS */
	size_t aside_bytes; /* memory of those set aside, and of their payloads */
	size_t stuck_bytes; /* of these, bytes that did not become less for a while */
	int64_t trim_ms;    /* when their memory goes back to the machine; 0: they had little */

	void *map; /* the arena lies within it */
	size_t map_bytes;
	uint8_t *arena;
	size_t arena_bytes;
	struct data_buffer *buffers;
	unsigned nbuffers;
	struct data_buffer *recv; /* the next message is read here; NULL: all are in use */
	struct list free_buffers;
	struct list buffer_waiters; /* requests, by link */

	struct counters counters; /* other threads read them */

	struct interrupt_note notes[THREAD_NOTES];
	struct list free_notes;

	/* Messages read while there was no request or buffer for them: see fuse/receive.c. */
	uint8_t *spare;
	bool spare_present; /* request_room() */
	struct list parked;
	size_t parked_bytes;
	bool any_parked;         /* atomic: other threads read it */
	bool reading;            /* atomic: there may be a message that was not looked at */
	bool parks;              /* the message that is being read is parked, if it can be */
	uint64_t looked_through; /* shared->ndrops when none of the parked messages was let in */
	int64_t starved_since;   /* 0: not */
};

/* ---- request.c ------------------------------------------------------------------------------- */

/* For a thread whose lists are empty. */
int request_pools_init(struct io_thread *thread, unsigned nbuffers);
void request_pools_fini(struct io_thread *thread);

/* A request of which only the thread is set; NULL: all are in use. */
struct request *request_new(struct io_thread *thread);
/* Gives back a request that was not used, and that nothing waits for. */
void request_unmake(struct request *req);
/* Sets recv if it is not set. False: no buffer is free. */
bool request_refill_recv(struct io_thread_private *priv);
/* Where the next message goes, so that its payload is recv's data; without recv it is the spare. If
 * the mount is revivable, all of that memory is there. Otherwise the kernel would have to get pages
 * while it copies, and in a process that was killed it does not: it then answers the message by
 * EIO, and no successor gets it. */
uint8_t *request_room(struct io_thread *thread);
/* Gives free buffers to those that wait. Returns how many got one. */
unsigned request_serve_waiters(struct io_thread *thread);
/* Whether so much is set aside that the thread waits until it is less. */
bool request_much_is_aside(const struct io_thread_private *priv);
/* About every 100 ms: gives memory of requests that were set aside back to the machine. */
void request_trim(struct io_thread *thread);
struct request *request_find(struct io_thread *thread, uint64_t unique);

/* ---- io_thread.c ----------------------------------------------------------------------------- */

/* Any thread may call it. */
void io_thread_wake(struct io_thread *thread);
/* Runs call->run(call) in the caller's own thread, as soon as two things are done. This thread or
 * others have read all that the kernel has for us now. And this thread has looked at its part of
 * that. */
void io_thread_call_when_read(struct io_thread *thread, struct thread_call *call);

/* For the loop. They run the calls of a list; those that other threads have left; those whose time
 * has come, of which there are few. They return how many. */
unsigned io_thread_run_list(struct list *calls);
unsigned io_thread_run_calls(struct io_thread *thread);
unsigned io_thread_run_later(struct io_thread *thread);
/* The time of the first of the later calls, if that is before `next`. */
int64_t io_thread_next_call(const struct io_thread *thread, int64_t next);

#endif
