#include "daemon/file/last_resort.h"

#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/file/inode_return.h"
#include "daemon/barrier/session_renewal.h"

void release_init(struct releases *r)
{
	*r = (struct releases){0};
	pthread_mutex_init(&r->lock, NULL);
	list_init(&r->waiters);
	list_init(&r->next);
}

void release_fini(struct releases *r)
{
	pthread_mutex_destroy(&r->lock);
}

static void round_begin(struct releases *r, struct io_thread *thread);

static void round_end(struct io_thread *thread)
{
	struct releases *r = thread->fs->releases;
	bool again;

	pthread_mutex_lock(&r->lock);
	waiters_wake(&r->waiters, 0);
	list_splice_tail(&r->waiters, &r->next);
	r->what = r->next_what;
	r->next_what = 0;
	again = r->running = !list_empty(&r->waiters);
	pthread_mutex_unlock(&r->lock);
	if (again)
		round_begin(r, thread);
}

static void round_returned(struct io_thread *thread)
{
	if (thread->fs->releases->what & RELEASE_ALLOWANCES)
		allowance_give_back(thread, round_end);
	else
		round_end(thread);
}

static void empty(struct inode *inode, void *arg)
{
	const unsigned *what = arg;

	pthread_mutex_lock(&inode->lock);
	if (*what & RELEASE_WINDOWS)
		window_return(&inode->window, inode->fs->grants);
	if (*what & RELEASE_SHARES)
		allowance_return_locked(inode->fs, &inode->share, &inode->attr);
	pthread_mutex_unlock(&inode->lock);
}

/* A thread that has nothing under way while the session is renewed begins nothing for the old one.
 */
static void round_passed(struct io_thread *thread)
{
	unsigned what = thread->fs->releases->what;

	if (renewal_is_running(thread->fs->renewal)) {
		round_end(thread);
		return;
	}
	if (what & (RELEASE_WINDOWS | RELEASE_SHARES))
		inode_each(thread->fs, empty, &what);
	returns_drain(thread, round_returned);
}

static void pass(struct thread_call *call)
{
	struct releases *r = container_of(call, struct releases, call);
	struct io_thread *here = r->at, *next = io_thread_sibling(here, here->index + 1);

	if (next == r->first) {
		round_passed(here);
	} else {
		r->at = next;
		io_thread_call(next, call);
	}
}

static void round_begin(struct releases *r, struct io_thread *thread)
{
	r->first = r->at = thread;
	r->call.run = pass;
	io_thread_call_when_read(thread, &r->call);
}

bool release_wait(struct request *req, unsigned what, void (*then)(struct request *req, int status))
{
	struct releases *r = req->thread->fs->releases;
	struct op *op = op_of(req);
	bool begin;

	if (!(what & ~op->released))
		return false;
	op->released |= what;
	waiter_init(&op->waiter, req, then);
	op_waits(op, OP_AT_RELEASE, &r->lock);
	pthread_mutex_lock(&r->lock);
	begin = !r->running;
	if (begin) {
		r->running = true;
		r->what = what;
	} else {
		r->next_what |= what;
	}
	list_add_tail(begin ? &r->waiters : &r->next, &op->waiter.link);
	pthread_mutex_unlock(&r->lock);
	if (begin)
		round_begin(r, req->thread);
	return true;
}
