/* scrub.h - a thread that zeroes pages which nobody can reach.
 *
 * OWNERSHIP  scrub_new() starts the thread. scrub_delete() waits for its current job and ends it;
 *            queued jobs are dropped.
 * THREADS    The metadata thread calls these. The thread touches the memory of its jobs only.
 */
#ifndef RMEMFS_SERVER_SPACE_SCRUB_H
#define RMEMFS_SERVER_SPACE_SCRUB_H

#include <stdbool.h>
#include <stddef.h>

#include "server/space/space.h"

struct protect;
struct scrub;

enum {
	SCRUB_JOBS = 64,        /* queued, at work, or finished and not taken */
	SCRUB_JOB_PAGES = 4096, /* at most: a few milliseconds of work */
};

struct scrub_job {
	struct protect *protect; /* the pages are given up before they are zeroed */
	bool refused;   /* once finished: they could not be given up now, and nothing is zeroed */
	bool forgotten; /* by scrub_forget() */
	unsigned export_index;
	struct page_run run;
	void *addr;
	size_t len;
};

int scrub_new(struct scrub **out);
void scrub_delete(struct scrub *s);

/* Readable when a job has finished, or after scrub_kick(), until scrub_clear(). */
int scrub_fd(const struct scrub *s);
void scrub_kick(struct scrub *s);
void scrub_clear(struct scrub *s);

unsigned scrub_room(struct scrub *s);
void scrub_post(struct scrub *s, const struct scrub_job *job); /* there must be room */
bool scrub_has_finished(struct scrub *s);
/* Takes the oldest finished job; false: none. */
bool scrub_take(struct scrub *s, struct scrub_job *job);

/* Drops all jobs of an export: scrub_take() never gives them. Waits for the current job, if it is
 * of that export: then the thread touches neither its memory nor its protect any more. */
void scrub_forget(struct scrub *s, unsigned export_index);

#endif
