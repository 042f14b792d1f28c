/* stop.c - see stop.h. */
#include "server/serve/stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/base/progress.h"
#include "server/snapshot/snapshot.h"
#include "server/snapshot/snapshot_sets.h"

struct stop {
	const char *cancelled; /* the reason; NULL: it is not */
	unsigned begun;        /* the snapshots of so many exports were begun */
	char set[SNAPSHOT_SET_PATH_BYTES];
	int64_t since_ms;
	struct progress progress;
	int err;
};

int stop_new(struct server *s)
{
	s->stop = calloc(1, sizeof(*s->stop));
	return s->stop ? 0 : -ENOMEM;
}

void stop_delete(struct server *s)
{
	free(s->stop);
	s->stop = NULL;
}

int stop_error(const struct server *s)
{
	return s->stop->err;
}

static void stop_end(struct server *s, int err, const char *why)
{
	s->stopping = true;
	s->stop->err = err;
	if (err)
		log_error(
			"no snapshot was taken at this stop: %s. The one before, if there is one, "
			"is as it was (%s/latest), and the files are in %s until this machine "
			"reboots: mend what is named, start the server and stop it again",
			why, s->sets->dir, s->dir.path);
}

static void take_next(struct server *s)
{
	bool first = !s->stop->begun;
	struct export *export = s->exports->v[s->stop->begun++];
	char dir[SNAPSHOT_DIR_BYTES];
	int err;

	snprintf(dir, sizeof(dir), "%s/%s", s->stop->set, export->name);
	err = snapshot_take_last(s, export, dir, first ? s->stop->set : NULL);
	if (err)
		stop_end(s, err, errno_text(err));
}

void stop_begin(struct server *s)
{
	snapshot_sets_next(s->sets, s->stop->set);
	s->leaving = true;
	s->stop->since_ms = now_ms();
	log_notice("writing snapshots of %u export%s to %s; another signal cancels that",
		s->exports->n, s->exports->n == 1 ? "" : "s", s->stop->set);
	/* Cancels another snapshot that is under way. Its thread may be long in a write to a disk.
	 * stop_step() waits for its end, so that clients are answered and systemd is told
	 * meanwhile. */
	snapshot_cancel(s, "the server is stopping");
}

static void stop_cancel_because(struct server *s, const char *why)
{
	s->stop->cancelled = why;
	snapshot_cancel(s, why);
}

void stop_cancel(struct server *s)
{
	stop_cancel_because(s, "it was cancelled by another signal");
}

static void stop_publish(struct server *s)
{
	char why[256];
	int err =
		snapshot_sets_publish(s->sets, s->stop->set, &(struct image_why){why, sizeof(why)});

	if (!err)
		log_notice("snapshots of %u export%s are in %s, after %lld s", s->exports->n,
			s->exports->n == 1 ? "" : "s", s->stop->set,
			(long long)(now_ms() - s->stop->since_ms) / 1000);
	stop_end(s, err, why);
	CRASH_POINT("stop.published");
}

/* If the disk hangs for good, so does the thread that writes to it. */
static void stop_give_up(struct server *s)
{
	log_error("the disk of %s has taken nothing for %d minutes: it is given up. The server "
		  "ends when the disk goes on; systemd is not asked for more time, and kills it. "
		  "The files are in %s until this machine reboots",
		s->stop->set, PROGRESS_HANG_MS / 60000, s->dir.path);
	stop_cancel_because(s, "the disk took nothing");
}

static void stop_tell(struct server *s)
{
	const struct export *export = s->exports->v[s->stop->begun ? s->stop->begun - 1 : 0];
	struct snapshot_view view;
	char what[128];

	/* From then on systemd is not asked for more time. So its limit ends the wait for a disk
	 * that hangs. */
	if (s->stop->cancelled)
		return;
	if (progress_hangs(&s->stop->progress, snapshot_steps(s), now_ms())) {
		stop_give_up(s);
		return;
	}
	snapshot_look(s, export, &view);
	snprintf(what, sizeof(what), "stopping: snapshot of export '%s'", export->name);
	progress_tell(&s->stop->progress, what, view.done, view.total);
}

int stop_step(struct server *s)
{
	const char *why;
	int err;

	if (s->stopping)
		return 0;
	stop_tell(s);
	if (!snapshot_has_ended(s, &err, &why))
		return PROGRESS_MS;
	if (err && s->stop->begun)
		stop_end(s, err, why);
	else if (s->stop->begun == s->exports->n)
		stop_publish(s);
	else if (s->stop->cancelled)
		stop_end(s, -ECANCELED, s->stop->cancelled);
	else
		take_next(s);
	return s->stopping ? 0 : PROGRESS_MS;
}
