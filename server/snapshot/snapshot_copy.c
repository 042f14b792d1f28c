/* snapshot_copy.c - see snapshot_copy.h. */
#include "server/snapshot/snapshot_copy.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/nodump.h"
#include "common/base/util.h"
#include "server/snapshot/image.h"
#include "server/space/protect.h"
#include "server/snapshot/snapshot_sets.h"

enum { WHY_BYTES = 400, RECORDS_BETWEEN = 64 };

struct snapshot_copy {
	pthread_t thread;
	char *dir, *clear; /* clear: or NULL */
	int wake_fd;
	atomic_bool cancelled;
	atomic_ullong steps;

	pthread_mutex_t lock; /* guards phase, publishing, marker */
	pthread_cond_t go;
	enum copy_phase phase;
	bool publishing; /* it is too late to cancel */
	struct marker *marker;

	/* Used by the thread alone. */
	int err;
	char why[WHY_BYTES];
	struct image_writer *image;
	uint8_t buf[PROTECT_TAKE_PAGES * PAGE_BYTES];
};

static void set_phase(struct snapshot_copy *c, enum copy_phase phase)
{
	pthread_mutex_lock(&c->lock);
	c->phase = phase;
	pthread_mutex_unlock(&c->lock);
	eventfd_write(c->wake_fd, 1);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int stopped(struct snapshot_copy *c, const struct image_why *why)
{
	if (atomic_load(&c->cancelled))
		return image_fail(why, -ECANCELED, "it was cancelled");
	if (marker_memory_is_lost(c->marker))
		return image_fail(
			why, -EIO, "memory of the export is lost; the log names the region");
	if (protect_lost(marker_pages(c->marker)))
		return image_fail(why, -ENOMEM, "the server is out of memory");
	return 0;
}

static int add_pages(struct snapshot_copy *c, struct page_run run, const struct image_why *why)
{
	uint64_t first = run.region * marker_facts(c->marker)->region_pages + run.page;
	int err = stopped(c, why);

	if (!err)
		err = image_add_pages(c->image, first, run.npages, c->buf, why);
	atomic_fetch_add(&c->steps, 1);
	return err;
}

/* Pages that clients wait to change come first. */
static int write_aside(struct snapshot_copy *c, const struct image_why *why)
{
	struct page_run run;
	int err = 0;

	while (!err && protect_take_aside(marker_pages(c->marker), c->buf, &run))
		err = add_pages(c, run, why);
	return err;
}

static int fail_records(int err, const struct image_why *why)
{
	if (err == -ESTALE)
		return image_fail(why, err,
			"the memory for metadata ran short meanwhile: make metadata_reserve larger");
	return image_fail(why, err, "the store can't be read: %s", errno_text(err));
}

static int write_records(struct snapshot_copy *c, const struct image_why *why)
{
	struct marker_record rec;
	int err = 0;

	for (unsigned n = 0; !err; n++) {
		err = n % RECORDS_BETWEEN ? 0 : write_aside(c, why);
		if (!err)
			err = stopped(c, why);
		if (err)
			return err;
		err = marker_next(c->marker, &rec);
		if (err && err != -ENOENT)
			return fail_records(err, why);
		if (!err)
			err = image_add_record(c->image, &rec, why);
		atomic_fetch_add(&c->steps, 1);
	}
	marker_records_done(c->marker);
	return err == -ENOENT ? 0 : err;
}

static int write_pages(struct snapshot_copy *c, const struct image_why *why)
{
	struct page_run run;
	int err;

	do {
		err = write_aside(c, why);
		if (!err && !protect_take_next(marker_pages(c->marker), c->buf, &run))
			break;
		if (!err)
			err = add_pages(c, run, why);
	} while (!err);
	/* The last pages may have been put aside meanwhile. */
	return err ? err : write_aside(c, why);
}

/* Either this or a cancellation comes first. */
static int begin_publishing(struct snapshot_copy *c, const struct image_why *why)
{
	bool cancelled;

	pthread_mutex_lock(&c->lock);
	cancelled = atomic_load(&c->cancelled);
	c->publishing = !cancelled;
	pthread_mutex_unlock(&c->lock);
	return cancelled ? image_fail(why, -ECANCELED, "it was cancelled") : 0;
}

static int copy(struct snapshot_copy *c, const struct image_why *why)
{
	int err = write_records(c, why);

	CRASH_POINT("snapshot.half");
	if (!err)
		err = write_pages(c, why);
	if (!err)
		err = stopped(c, why);
	if (!err)
		err = image_finish(c->image, marker_facts(c->marker), why);
	CRASH_POINT("snapshot.written");
	if (!err)
		err = begin_publishing(c, why);
	return err ? err : image_publish(c->image, why);
}

/* False: it was cancelled. */
static bool wait_for_go(struct snapshot_copy *c)
{
	bool go;

	set_phase(c, COPY_READY);
	pthread_mutex_lock(&c->lock);
	while (!c->marker && !atomic_load(&c->cancelled))
		pthread_cond_wait(&c->go, &c->lock);
	go = c->marker;
	if (go)
		c->phase = COPY_COPYING;
	pthread_mutex_unlock(&c->lock);
	return go;
}

static void *copy_main(void *arg)
{
	struct snapshot_copy *c = arg;
	const struct image_why why = {c->why, sizeof(c->why)};

	c->err = c->clear ? snapshot_set_clear(c->clear, &why) : 0;
	if (!c->err)
		c->err = image_create(c->dir, &c->image, &why);
	if (!c->err)
		c->err = wait_for_go(c) ? copy(c, &why)
					: image_fail(&why, -ECANCELED, "it was cancelled");
	image_writer_delete(c->image);
	set_phase(c, COPY_ENDED);
	return NULL;
}

/* ---- the metadata thread --------------------------------------------------------------------- */

int snapshot_copy_new(const char *dir, const char *clear, int wake_fd, struct snapshot_copy **out)
{
	struct snapshot_copy *c = nodump_zalloc(sizeof(*c));
	int err = -ENOMEM;

	if (!c)
		return -ENOMEM;
	c->wake_fd = wake_fd;
	c->dir = strdup(dir);
	c->clear = clear ? strdup(clear) : NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->go, NULL);
	if (c->dir && (c->clear || !clear))
		err = -pthread_create(&c->thread, NULL, copy_main, c);
	if (!err) {
		*out = c;
		return 0;
	}
	pthread_cond_destroy(&c->go);
	pthread_mutex_destroy(&c->lock);
	free(c->dir);
	free(c->clear);
	nodump_free(c);
	return err;
}

void snapshot_copy_go(struct snapshot_copy *c, struct marker *marker)
{
	pthread_mutex_lock(&c->lock);
	c->marker = marker;
	pthread_cond_signal(&c->go);
	pthread_mutex_unlock(&c->lock);
}

bool snapshot_copy_cancel(struct snapshot_copy *c)
{
	bool in_time;

	pthread_mutex_lock(&c->lock);
	in_time = !c->publishing && c->phase != COPY_ENDED;
	atomic_store(&c->cancelled, true);
	pthread_cond_signal(&c->go);
	pthread_mutex_unlock(&c->lock);
	return in_time;
}

enum copy_phase snapshot_copy_phase(struct snapshot_copy *c)
{
	enum copy_phase phase;

	pthread_mutex_lock(&c->lock);
	phase = c->phase;
	pthread_mutex_unlock(&c->lock);
	return phase;
}

uint64_t snapshot_copy_steps(struct snapshot_copy *c)
{
	return atomic_load(&c->steps);
}

int snapshot_copy_end(struct snapshot_copy *c, char *why, size_t len)
{
	int err;

	snapshot_copy_cancel(c);
	pthread_join(c->thread, NULL);
	err = c->err;
	snprintf(why, len, "%s", c->why);
	pthread_cond_destroy(&c->go);
	pthread_mutex_destroy(&c->lock);
	free(c->dir);
	free(c->clear);
	nodump_free(c);
	return err;
}
