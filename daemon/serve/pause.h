/* pause.h - a mount stands still for a moment: nothing of it is under way anywhere but in the
 * kernel, so that its state is small enough to be told to another daemon.
 *
 *     RUNS ──pause_begin──> DRAINS ──all has ended──> RESTS ──all channels are closed──> STANDS
 *      ^                      │                         │                                  │
 *      └─all are connected── RESUMES <────────────────pause_end────────────────────────────┘
 *
 * DRAINS: no message is read from the kernel, but while the kernel drops pages that a lease needs:
 * it may wait for a message behind. Others that were read for that stay parked. Requests that were
 * read before go on to their answers, and all that was written is committed. Recalls are served.
 * Then all that the server has lent goes back: pages and quota. Leases stay.
 * RESTS: no RPC begins. News from the server are left for later, as the server repeats them: in the
 * next PING's answer, to whoever asks then.
 * STANDS: no request, no RPC and no transfer is there, nothing is dirty, and each thread's channel
 * is closed in order. New messages wait in the kernel, as do their callers.
 * RESUMES: each thread has its channel connected again. Messages are read then.
 *
 * Something that can't end keeps the mount from standing: a server that is away, a snapshot, a
 * program that another client lets wait. The caller of pause_await() has a limit, and goes on by
 * pause_end().
 *
 * THREADS    main begins, awaits and ends. Each I/O thread calls pause_step() in its turns, while
 *            the mount is paused, and says for itself that it has drained.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_SERVE_PAUSE_H
#define RMEMFS_DAEMON_SERVE_PAUSE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/request/io_thread.h"

struct fs;

enum pause_phase { PAUSE_RUNS, PAUSE_DRAINS, PAUSE_RESTS, PAUSE_STANDS, PAUSE_RESUMES };

struct pause {
	_Atomic enum pause_phase phase; /* changed under the lock */
	pthread_mutex_t lock;
	/* A bit for each thread; under the lock. sure: since all had drained before, nothing came
	 * that could have made one busy again, but what each finds in its inbox. */
	uint32_t drained, resting;
	bool sure;
	int event_fd; /* readable once the mount stands */
};

/* -errno: no descriptor. */
int pause_init(struct pause *p);
void pause_fini(struct pause *p);

/* Before the I/O threads run: the mount begins standing, and another daemon has all that it would
 * answer. In pause_end() each thread asks again for what it was told meanwhile. */
void pause_begin_standing(struct fs *fs);

/* -EBUSY: a remount is under way. */
int pause_begin(struct fs *fs, struct io_thread *first, char *why, size_t whylen);
/* -ETIMEDOUT: something has not ended within limit_ms. */
int pause_await(struct fs *fs, int limit_ms, char *why, size_t whylen);
/* Requests are read again, and channels connected. Harmless while the mount runs. */
void pause_end(struct fs *fs, struct io_thread *first);

/* Whether no RPC may begin any more: from RESTS to the end of STANDS. Any thread. */
bool pause_rests(const struct fs *fs);
/* The server tells the thread of something that it is to do. False: that is left until the mount
 * goes on. True: the mount does not rest before the thread has done it. */
bool pause_takes_news(struct io_thread *thread);

/* For the loop, while fs_is_paused(). */
void pause_step(struct io_thread *thread);

#endif
