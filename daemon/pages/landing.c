#include "daemon/pages/landing.h"

#include <errno.h>
#include <string.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/request/io_thread_private.h"

/* HOPE_MAX: messages of other kinds for which it is tried in vain. HOPE_MIN: where trying begins,
 * since one WRITE is no sign. */
enum { HOPE_MAX = 16, HOPE_MIN = 2 };

static struct landing *landing_of(const struct io_thread *thread)
{
	return thread->fs->threads[thread->index].landing;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void landing_give_back(struct io_thread *thread, struct landing *l)
{
	struct extent end = l->pages.rest;

	window_return(&l->pages, thread->fs->grants);
	grant_refill_lend_end(thread->fs);
	/* The next pages are to follow those that were taken. */
	end.npages = 0;
	l->pages = (struct window){.rest = end, .begun = true};
}

static bool borrow(struct io_thread *thread, struct landing *l)
{
	struct extent run;

	grant_refill_lend_begin(thread->fs);
	if (window_take(&l->pages, thread->fs->grants, IO_PAGES_MAX, &run)) {
		l->pages.rest = run;
		if (run.npages == IO_PAGES_MAX)
			return true;
	}
	landing_give_back(thread, l);
	l->pages.begun = false; /* the next pages may lie anywhere */
	return false;
}

static void *mapped(struct io_thread *thread, const struct extent *run)
{
	return io_mapped(
		thread, IO_WRITE, run->region, (uint64_t)run->page << PAGE_SHIFT, IO_BYTES_MAX);
}

/* ---- a message ------------------------------------------------------------------------------- */

void *landing_open(struct io_thread *thread)
{
	struct landing *l = landing_of(thread);

	if (l->hope < HOPE_MIN || !io_maps(thread) || !borrow(thread, l))
		return NULL;
	l->at = mapped(thread, &l->pages.rest);
	if (!l->at)
		landing_give_back(thread, l);
	return l->at;
}

/* The region's file was cut short, which our server never does. The pages beyond can't be zeroed.
 */
static void abandon(struct landing *l)
{
	log_error("region %u can't be written at page %u: was its file cut short?",
		l->pages.rest.region, l->pages.rest.page);
	l->pages = (struct window){0};
	l->hope = 0;
}

void landing_arrived(struct io_thread *thread, void *home, int64_t len, bool stays)
{
	struct landing *l = landing_of(thread);

	l->home = home;
	if (len >= 0) {
		l->len = (uint32_t)len;
		CRASH_POINT("landing.arrived");
		if (!stays)
			landing_fetch(thread);
	} else if (len == -EFAULT) {
		abandon(l);
	} else if (len != -EAGAIN) {
		memset(l->at, 0, IO_BYTES_MAX); /* nobody tells how much had come */
	}
}

static bool landing_is_full(const struct io_thread *thread)
{
	return landing_of(thread)->len;
}

bool landing_holds(const struct request *req)
{
	return landing_is_full(req->thread) && req->buf &&
	       req->buf->data == landing_of(req->thread)->home;
}

void landing_peek(const struct request *req, struct extent *run)
{
	const struct landing *l = landing_of(req->thread);

	*run = l->pages.rest;
	run->npages = (uint32_t)div_round_up(l->len, PAGE_BYTES);
}

void landing_take(struct request *req)
{
	struct landing *l = landing_of(req->thread);
	uint32_t npages = (uint32_t)div_round_up(l->len, PAGE_BYTES);

	io_count_mapped(req->thread, IO_WRITE, l->len);
	l->pages.rest.page += npages;
	l->pages.rest.npages -= npages;
	l->len = 0;
	l->hope = HOPE_MAX;
}

void landing_expect(struct io_thread *thread, bool could)
{
	struct landing *l = landing_of(thread);

	if (!could)
		l->hope = 0;
	else if (l->hope < HOPE_MIN)
		l->hope++;
}

void landing_fetch(struct io_thread *thread)
{
	struct landing *l = landing_of(thread);

	memcpy(l->home, l->at, l->len);
	memset(l->at, 0, l->len);
	l->len = 0;
	l->hope -= l->hope > 0;
}

static void close_landing(struct io_thread *thread)
{
	struct landing *l = landing_of(thread);

	memset(l->at, 0, l->len);
	l->len = 0;
	l->at = NULL;
	landing_give_back(thread, l);
}

void landing_done(struct io_thread *thread, uint64_t unique)
{
	struct request *req = landing_is_full(thread) ? request_find(thread, unique) : NULL;

	if (req && landing_holds(req)) /* it waits */
		landing_fetch(thread);
	close_landing(thread);
}
