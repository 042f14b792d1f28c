/* pause.c - see pause.h. */
#include "daemon/serve/pause.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/barrier/conversion.h"
#include "daemon/barrier/remount.h"
#include "daemon/file/access_time.h"
#include "daemon/file/commit.h"
#include "daemon/file/inode_return.h"
#include "daemon/fuse/notifier.h"
#include "daemon/fuse/receive.h"
#include "daemon/lease/keep.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/op/fs_parts.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/pages/quota_allowance.h"
#include "daemon/remote/remote.h"
#include "daemon/remote/session.h"
#include "daemon/request/io_thread_private.h"

int pause_init(struct pause *p)
{
	*p = (struct pause){.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (p->event_fd < 0)
		return -errno;
	pthread_mutex_init(&p->lock, NULL);
	return 0;
}

void pause_fini(struct pause *p)
{
	close(p->event_fd);
	pthread_mutex_destroy(&p->lock);
}

/* ---- a thread's part ------------------------------------------------------------------------- */

static void count_one(struct request *req, void *arg)
{
	unsigned *n = arg;

	++*n;
}

static unsigned pause_nrequests(struct io_thread *thread)
{
	unsigned n = 0;

	request_each(thread, count_one, &n);
	return n;
}

/* Whether nothing of the thread is under way. Starts what is due for that. */
static bool is_drained(struct io_thread *thread)
{
	struct fs_thread *ft = fs_thread_of(thread);
	struct io_thread_private *priv = thread->priv;
	bool committed = commit_tick(thread), told = access_time_tick(thread);

	inode_return_flush(thread);
	return committed && told && !pause_nrequests(thread) && fuse_receive_parked_stay(thread) &&
	       list_empty(&priv->when_read) && list_empty(&priv->later) &&
	       lock_waits_stand(thread) && !ft->nbackground && !ft->nacked &&
	       remote_connected(thread) && remote_has_no_calls(thread);
}

/* Whether nothing of the whole mount is under way, when all threads have drained. Thread 0 gives
 * back what is lent: the next RPC has it drain anew. The notifiers come first: their last work may
 * leave an inode to return. */
static bool has_nothing_left(struct io_thread *thread)
{
	struct fs *fs = thread->fs;

	return notifier_is_idle(&fs->notifier) && notifier_is_idle(&fs->dropper) &&
	       notifier_is_idle(&fs->expirer) && notifier_is_idle(&fs->giver) &&
	       !fuse_receive_is_dropping(thread) && lease_keep_give_all(thread) &&
	       grant_refill_give_all(thread) && quota_allowance_give_all(thread) &&
	       inode_return_is_idle(fs) && !session_snapshot(fs->session) &&
	       !session_lost(fs->session) && !fs_is_renewing(fs) && !conversion_is_under_way(fs);
}

static uint32_t all_bits(const struct fs *fs)
{
	return (UINT32_C(1) << fs->options.session.io_threads) - 1;
}

static void pause_wake(struct io_thread *first)
{
	for (unsigned i = 0; i < io_thread_siblings(first); i++)
		io_thread_wake(io_thread_sibling(first, i));
}

/* False: main has changed it meanwhile. */
static bool change_phase(struct pause *p, enum pause_phase from, enum pause_phase to)
{
	bool changes;

	pthread_mutex_lock(&p->lock);
	changes = p->phase == from;
	if (changes)
		p->phase = to;
	pthread_mutex_unlock(&p->lock);
	return changes;
}

/* Returns whether all threads have. */
static bool say_drained(struct io_thread *thread, bool drained)
{
	struct pause *p = thread->fs->pause;
	uint32_t bit = UINT32_C(1) << thread->index;
	bool all;

	pthread_mutex_lock(&p->lock);
	p->drained = drained ? p->drained | bit : p->drained & ~bit;
	p->sure &= drained;
	all = p->drained == all_bits(thread->fs);
	pthread_mutex_unlock(&p->lock);
	return all;
}

/* All threads have drained, and nothing was left. A notifier, or another thread, may have put
 * something into a thread's inbox before that. So all of them look twice in a row. */
static void rest_if_sure(struct io_thread *thread)
{
	struct pause *p = thread->fs->pause;

	pthread_mutex_lock(&p->lock);
	if (p->phase == PAUSE_DRAINS && p->drained == all_bits(thread->fs)) {
		if (p->sure)
			p->phase = PAUSE_RESTS;
		else
			p->drained = 0;
		p->sure = true;
	}
	pthread_mutex_unlock(&p->lock);
	pause_wake(thread);
}

static void drain(struct io_thread *thread)
{
	if (!say_drained(thread, is_drained(thread)))
		return;
	if (thread->index)
		io_thread_wake(io_thread_sibling(thread, 0));
	else if (has_nothing_left(thread))
		rest_if_sure(thread);
	else
		say_drained(thread, false);
}

bool pause_takes_news(struct io_thread *thread)
{
	struct pause *p = thread->fs->pause;
	bool takes = true;

	if (!fs_is_paused(thread->fs))
		return true;
	pthread_mutex_lock(&p->lock);
	if (p->phase == PAUSE_DRAINS) {
		p->drained &= ~(UINT32_C(1) << thread->index);
		p->sure = false;
	} else {
		takes = p->phase != PAUSE_RESTS && p->phase != PAUSE_STANDS;
	}
	pthread_mutex_unlock(&p->lock);
	return takes;
}

/* The channels go last: until then the server could still end or ask something. */
static void rest(struct io_thread *thread)
{
	struct pause *p = thread->fs->pause;
	uint32_t bit = UINT32_C(1) << thread->index;
	bool all;

	pthread_mutex_lock(&p->lock);
	if (p->phase == PAUSE_RESTS && !(p->resting & bit) && remote_has_no_calls(thread)) {
		remote_rest(thread);
		p->resting |= bit;
	}
	all = p->resting == all_bits(thread->fs);
	pthread_mutex_unlock(&p->lock);
	if (all && change_phase(p, PAUSE_RESTS, PAUSE_STANDS))
		eventfd_write(p->event_fd, 1);
}

static void go_on(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct pause *p = fs->pause;
	uint32_t bit = UINT32_C(1) << thread->index;
	bool none, rested;

	remote_resume(thread);
	pthread_mutex_lock(&p->lock);
	rested = p->resting & bit;
	p->resting &= ~bit;
	none = !p->resting && p->phase == PAUSE_RESUMES;
	if (none) {
		p->phase = PAUSE_RUNS;
		if (atomic_load(&fs->remount->phase) != REMOUNT_COMMITS)
			atomic_store(&fs->committing_all, false);
		atomic_store(&fs->requests.paused, false);
	}
	pthread_mutex_unlock(&p->lock);
	/* The server may have told of locks meanwhile, or was started again. */
	if (rested)
		lock_look_at_all(thread);
	if (none)
		pause_wake(thread);
}

bool pause_rests(const struct fs *fs)
{
	enum pause_phase phase = atomic_load(&fs->pause->phase);

	return phase == PAUSE_RESTS || phase == PAUSE_STANDS;
}

void pause_step(struct io_thread *thread)
{
	switch (atomic_load(&thread->fs->pause->phase)) {
	case PAUSE_RUNS:
	case PAUSE_STANDS:
		break;
	case PAUSE_DRAINS:
		drain(thread);
		break;
	case PAUSE_RESTS:
		rest(thread);
		break;
	case PAUSE_RESUMES:
		go_on(thread);
		break;
	}
}

/* ---- main's ---------------------------------------------------------------------------------- */

void pause_begin_standing(struct fs *fs)
{
	fs->pause->resting = all_bits(fs);
	atomic_store(&fs->pause->phase, PAUSE_STANDS);
	atomic_store(&fs->requests.paused, true);
}

static bool is_remounted(const struct fs *fs, char *why, size_t whylen)
{
	if (atomic_load(&fs->remount->phase) == REMOUNT_DONE)
		return false;
	snprintf(why, whylen, "the mount is just being remounted");
	return true;
}

/* A remount may have been read before the threads knew that they are paused. */
int pause_begin(struct fs *fs, struct io_thread *first, char *why, size_t whylen)
{
	struct pause *p = fs->pause;
	eventfd_t old;

	if (is_remounted(fs, why, whylen))
		return -EBUSY;
	/* The event of a pause that has ended just before it. */
	eventfd_read(p->event_fd, &old);
	if (!change_phase(p, PAUSE_RUNS, PAUSE_DRAINS)) {
		snprintf(why, whylen, "the mount is just going on after a hand-over that failed");
		return -EBUSY;
	}
	p->drained = 0;
	p->sure = false;
	atomic_store(&fs->committing_all, true);
	atomic_store(&fs->requests.paused, true);
	if (is_remounted(fs, why, whylen)) {
		pause_end(fs, first);
		return -EBUSY;
	}
	pause_wake(first);
	return 0;
}

int pause_await(struct fs *fs, int limit_ms, char *why, size_t whylen)
{
	struct pollfd pfd = {.fd = fs->pause->event_fd, .events = POLLIN};
	int64_t until = now_ms() + limit_ms, left;

	while ((left = until - now_ms()) > 0)
		if (poll(&pfd, 1, (int)left) == 1)
			return 0;
	snprintf(why, whylen,
		"operations, or a snapshot, have not ended within %d.%d s: rmemfsctl status shows "
		"what each of them waits for",
		limit_ms / 1000, limit_ms % 1000 / 100);
	return -ETIMEDOUT;
}

void pause_end(struct fs *fs, struct io_thread *first)
{
	struct pause *p = fs->pause;

	pthread_mutex_lock(&p->lock);
	if (p->phase != PAUSE_RUNS)
		p->phase = PAUSE_RESUMES;
	pthread_mutex_unlock(&p->lock);
	pause_wake(first);
}
