/* protect.c - see protect.h. One bitmap over all regions, one list of runs that were put aside. */
#include "server/space/protect.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/nodump.h"
#include "common/base/util.h"
#include "server/base/bits.h"

struct aside {
	struct list link;
	struct page_run run; /* at most PROTECT_TAKE_PAGES */
	uint8_t data[];
};

struct protect {
	const struct space *space;
	void *const *bases;
	atomic_bool active;

	pthread_mutex_t lock; /* guards all below */
	uint64_t *bits;       /* by region * region_pages + page */
	struct list aside;
	uint64_t aside_pages, aside_max;
	uint64_t next; /* where protect_take_next() goes on */
	uint64_t left, total;
	int wake_fd;
	bool lost;
	int64_t refused_ms; /* when a caller was first refused since there was room; 0: none was */
};

struct protect *protect_new(const struct space *space, void *const *bases)
{
	struct protect *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->space = space;
	p->bases = bases;
	pthread_mutex_init(&p->lock, NULL);
	list_init(&p->aside);
	return p;
}

void protect_set_bases(struct protect *p, void *const *bases)
{
	pthread_mutex_lock(&p->lock);
	assert(!p->bits);
	p->bases = bases;
	pthread_mutex_unlock(&p->lock);
}

void protect_delete(struct protect *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- bits ------------------------------------------------------------------------------------ */

static uint64_t index_of(const struct protect *p, struct page_run run)
{
	return run.region * p->space->region_pages + run.page;
}

static void clear_bits(struct protect *p, struct page_run run)
{
	bits_assign(p->bits, index_of(p, run), run.npages, false);
}

/* The first protected run within `in`, of at most PROTECT_TAKE_PAGES. False: none. */
static bool first_run(const struct protect *p, struct page_run in, struct page_run *out)
{
	uint64_t i = index_of(p, in);
	uint32_t n = 0, len = 0;

	while (n < in.npages && !bits_get(p->bits, i + n))
		n++;
	while (len < PROTECT_TAKE_PAGES && n + len < in.npages && bits_get(p->bits, i + n + len))
		len++;
	*out = (struct page_run){in.region, in.page + n, len};
	return len > 0;
}

static const void *address_of(const struct protect *p, struct page_run run)
{
	return (const char *)p->bases[run.region] + (size_t)run.page * PAGE_BYTES;
}

/* ---- begin and end --------------------------------------------------------------------------- */

int protect_begin(struct protect *p, uint64_t aside_bytes, int wake_fd)
{
	size_t len = bits_bytes(p->space->npages);
	uint64_t *bits = malloc(len);

	if (!bits)
		return -ENOMEM;
	memcpy(bits, p->space->in_file, len);
	pthread_mutex_lock(&p->lock);
	p->bits = bits;
	p->aside_max = aside_bytes / PAGE_BYTES;
	p->aside_pages = p->next = 0;
	p->left = p->total = space_in_file(p->space);
	p->wake_fd = wake_fd;
	p->refused_ms = 0;
	p->lost = false;
	pthread_mutex_unlock(&p->lock);
	atomic_store(&p->active, true);
	return 0;
}

void protect_end(struct protect *p)
{
	struct list *pos;

	if (!p)
		return;
	atomic_store(&p->active, false);
	pthread_mutex_lock(&p->lock);
	free(steal_ptr(&p->bits));
	while ((pos = list_pop(&p->aside)))
		nodump_free(list_entry(pos, struct aside, link));
	p->lost |= p->left > 0;
	p->left = 0;
	pthread_mutex_unlock(&p->lock);
}

/* ---- giving up ------------------------------------------------------------------------------- */

static int put_aside(struct protect *p, struct page_run run, uint64_t max)
{
	size_t len = (size_t)run.npages * PAGE_BYTES;
	struct aside *a;

	if (p->aside_pages + run.npages > max)
		return -EAGAIN;
	a = nodump_alloc(sizeof(*a) + len);
	if (!a)
		return -EAGAIN;
	a->run = run;
	memcpy(a->data, address_of(p, run), len);
	list_add_tail(&p->aside, &a->link);
	p->aside_pages += run.npages;
	clear_bits(p, run);
	return 0;
}

static void note_refused(struct protect *p)
{
	if (!p->refused_ms)
		p->refused_ms = now_ms();
}

/* Gives up one piece of *in and takes it off. *in is empty when that was all. */
static int give_up_locked(struct protect *p, struct page_run *in, uint64_t max)
{
	struct page_run run;
	int err;

	if (!p->bits || !first_run(p, *in, &run)) {
		in->npages = 0;
		return 0;
	}
	err = put_aside(p, run, max);
	if (err) {
		note_refused(p);
		return err;
	}
	in->npages -= run.page + run.npages - in->page;
	in->page = run.page + run.npages;
	return 0;
}

/* Other threads have their turn between two pieces. */
static int protect_give_up_piece(struct protect *p, struct page_run run, uint64_t max)
{
	int err = 0;

	while (!err && run.npages) {
		pthread_mutex_lock(&p->lock);
		err = give_up_locked(p, &run, max);
		pthread_mutex_unlock(&p->lock);
	}
	return err;
}

int protect_give_up(struct protect *p, struct page_run run)
{
	return atomic_load(&p->active) ? protect_give_up_piece(p, run, p->aside_max) : 0;
}

bool protect_has_room(struct protect *p)
{
	bool room;

	if (!atomic_load(&p->active))
		return true;
	pthread_mutex_lock(&p->lock);
	room = p->aside_pages + PROTECT_TAKE_PAGES <= p->aside_max;
	if (!room)
		note_refused(p);
	pthread_mutex_unlock(&p->lock);
	return room;
}

void protect_give_up_now(struct protect *p, struct page_run run)
{
	if (!atomic_load(&p->active) || protect_give_up_piece(p, run, UINT64_MAX) == 0)
		return;
	pthread_mutex_lock(&p->lock);
	p->lost = true;
	pthread_mutex_unlock(&p->lock);
}

int64_t protect_refused_ms(struct protect *p)
{
	int64_t ms;

	pthread_mutex_lock(&p->lock);
	ms = p->refused_ms;
	pthread_mutex_unlock(&p->lock);
	return ms;
}

bool protect_lost(struct protect *p)
{
	bool lost;

	pthread_mutex_lock(&p->lock);
	lost = p->lost;
	pthread_mutex_unlock(&p->lock);
	return lost;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Wakes refused callers when half of the room is empty: then they may find room for what they
 * want. */
static void tell_room(struct protect *p)
{
	if (!p->refused_ms || p->aside_pages > p->aside_max / 2)
		return;
	p->refused_ms = 0;
	eventfd_write(p->wake_fd, 1);
}

bool protect_take_aside(struct protect *p, void *buf, struct page_run *run)
{
	struct list *pos;
	struct aside *a;

	pthread_mutex_lock(&p->lock);
	pos = list_pop(&p->aside);
	if (pos) {
		a = list_entry(pos, struct aside, link);
		*run = a->run;
		p->aside_pages -= run->npages;
		p->left -= run->npages;
		tell_room(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (!pos)
		return false;
	memcpy(buf, a->data, (size_t)run->npages * PAGE_BYTES);
	nodump_free(a);
	return true;
}

/* Passes empty stretches a word at a time. */
static bool next_run(struct protect *p, struct page_run *run)
{
	while (p->next < p->space->npages) {
		uint64_t region_end =
			(p->next / p->space->region_pages + 1) * p->space->region_pages;
		uint64_t end = min_u64(p->space->npages, region_end);
		struct page_run in = {
			.region = (uint16_t)(p->next / p->space->region_pages),
			.page = (uint32_t)(p->next % p->space->region_pages),
			.npages = (uint32_t)min_u64(end - p->next, PROTECT_TAKE_PAGES),
		};

		if (p->next % BITS_WORD == 0 && !p->bits[p->next / BITS_WORD]) {
			p->next += BITS_WORD;
			continue;
		}
		if (first_run(p, in, run)) {
			p->next = index_of(p, *run) + run->npages;
			return true;
		}
		p->next += in.npages;
	}
	return false;
}

bool protect_take_next(struct protect *p, void *buf, struct page_run *run)
{
	bool any;

	pthread_mutex_lock(&p->lock);
	any = p->bits && next_run(p, run);
	if (any) {
		memcpy(buf, address_of(p, *run), (size_t)run->npages * PAGE_BYTES);
		clear_bits(p, *run);
		p->left -= run->npages;
	}
	pthread_mutex_unlock(&p->lock);
	return any;
}

void protect_progress(struct protect *p, uint64_t *done, uint64_t *total)
{
	pthread_mutex_lock(&p->lock);
	*total = p->total;
	*done = p->total - p->left;
	pthread_mutex_unlock(&p->lock);
}
