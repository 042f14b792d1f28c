#include "daemon/barrier/barrier.h"

#include "daemon/op/fs_parts.h"
#include "daemon/pages/landing.h"

/* The exchange makes this call see what was done before a barrier_wake() that found `called`
 * set. */
static void let_go(struct thread_call *call)
{
	struct barrier_thread *t = container_of(call, struct barrier_thread, call);
	const struct barrier *h = t->hold;
	struct list *link;

	atomic_exchange(&t->called, false);
	while (!h->lasts(h->fs) && (link = list_pop(&t->requests))) {
		struct waiter *w = list_entry(link, struct waiter, link);

		op_of(w->req)->wait = OP_RUNS;
		w->resume(w->req, 0);
	}
}

void barrier_init(
	struct barrier *h, struct fs *fs, enum op_wait wait, bool (*lasts)(const struct fs *fs))
{
	*h = (struct barrier){.fs = fs, .wait = wait, .lasts = lasts};
	for (unsigned i = 0; i < IO_THREADS_MAX; i++) {
		struct barrier_thread *t = &h->threads[i];

		t->hold = h;
		list_init(&t->requests);
		list_init(&t->call.link);
		t->call.run = let_go;
	}
}

static void keep_little(struct request *req)
{
	if (!request_may_set_aside(req->thread->shared))
		return;
	if (landing_holds(req))
		landing_fetch(req->thread);
	if (request_set_aside(req))
		request_stow(req);
}

void barrier_hold(
	struct barrier *h, struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	waiter_init(&op->waiter, req, then);
	op_watch_begin(req);
	op_waits(op, h->wait, NULL);
	list_add_tail(&h->threads[req->thread->index].requests, &op->waiter.link);
	keep_little(req);
}

void barrier_wake(struct barrier *h)
{
	for (unsigned i = 0; i < h->fs->options.session.io_threads; i++) {
		struct barrier_thread *t = &h->threads[i];

		if (!atomic_exchange(&t->called, true))
			io_thread_call(h->fs->threads[i].thread, &t->call);
	}
}
