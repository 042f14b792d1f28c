/* sampler.c - a lock protects the sample; it is held while the sample changes or is shown, and never
 * while a daemon is asked. The observer's lock is taken before it, or without it. */
#include "daemon/metrics/sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/survey/top_rates.h"
#include "daemon/metrics/nameless.h"

enum { STOP_S = 2 };

struct sampler {
	struct observer *observer;
	unsigned interval_s;
	bool details;

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stops;
	struct sample last;
};

/* ---- one look -------------------------------------------------------------------------------- */

/* A copy of an observation, as it may be shown. */
struct shown {
	bool details;
	json_t *mounts, *server, *missing;
	bool server_there;
	int mounts_err, server_err, missing_err;
	char server_why[256];
};

static json_t *copy(const json_t *answer, bool details)
{
	json_t *shown = details ? json_deep_copy(answer) : nameless_copy(answer);

	ctl_json_clean(shown);
	return shown;
}

static void show(const struct observation *seen, void *arg)
{
	struct shown *shown = arg;

	shown->mounts = copy(seen->mounts, shown->details);
	shown->server = copy(seen->server, shown->details);
	shown->missing = copy(seen->missing, shown->details);
	shown->missing_err = seen->missing_err;
	shown->server_there = seen->server_there;
	shown->mounts_err = seen->mounts_err;
	shown->server_err = seen->server_err;
	snprintf(shown->server_why, sizeof(shown->server_why), "%s",
		shown->details ? seen->server_why : errno_text(seen->server_err));
}

/* The way of verbs is not looked at, since that takes a process and rights of its own. */
static void judge(struct health_findings *f, const struct shown *shown, int64_t now_s)
{
	const struct health_terms terms = {.now_s = now_s};
	const json_t *mount;
	size_t i;

	memset(f, 0, sizeof(*f));
	if (shown->mounts_err)
		health_findings_unlisted(f, shown->mounts_err);
	json_array_foreach(shown->mounts, i, mount) health_findings_mount(f, mount, NULL);
	if (shown->server_there && shown->server_err)
		health_findings_unanswered(f, NULL,
			shown->server_err == -EACCES || shown->server_err == -EPERM,
			shown->server_why);
	else if (shown->server_there)
		health_findings_server(f, NULL, shown->server, &terms);
	health_findings_configured(f, shown->missing, shown->missing_err);
	health_findings_complete(f);
	health_findings_sort(f);
}

/* ---- rates ----------------------------------------------------------------------------------- */

const char *sampler_mount_track(const json_t *mount, char name[HISTORY_NAME_BYTES])
{
	snprintf(name, HISTORY_NAME_BYTES, "mount %" PRIu64 " %" PRIu64,
		ctl_json_number(mount, "connection"),
		ctl_json_number(json_object_get(mount, "answer"), "pid"));
	return name;
}

const char *sampler_export_track(const json_t *export, char name[HISTORY_NAME_BYTES])
{
	snprintf(name, HISTORY_NAME_BYTES, "export %s", ctl_json_text(export, "name"));
	return name;
}

/* Null is not known. */
static void put(struct history *h, const char *track, enum history_series series,
	const json_t *rates, const char *key)
{
	const json_t *value = json_object_get(rates, key);

	if (json_is_integer(value))
		history_put(h, track, series, (double)json_integer_value(value));
}

static void put_rates(struct history *h, const char *track, const json_t *rates)
{
	put(h, track, HISTORY_READ_BYTES, rates, "read_bytes");
	put(h, track, HISTORY_WRITE_BYTES, rates, "write_bytes");
	put(h, track, HISTORY_OPERATIONS, rates, "operations");
	put(h, track, HISTORY_ERRORS, rates, "errors");
	put(h, track, HISTORY_P50, rates, "p50_ns");
	put(h, track, HISTORY_P99, rates, "p99_ns");
}

static void keep_mounts(struct history *h, const json_t *before, const json_t *now, int64_t ms)
{
	json_t *all = top_rates_all(before, now, ms), *each = top_rates_mounts(before, now, ms);
	const json_t *rates;
	size_t i;

	put_rates(h, SAMPLER_MOUNTS, all);
	put(h, SAMPLER_MOUNTS, HISTORY_READ_P50, json_object_get(all, "reads"), "p50_ns");
	put(h, SAMPLER_MOUNTS, HISTORY_READ_P99, json_object_get(all, "reads"), "p99_ns");
	put(h, SAMPLER_MOUNTS, HISTORY_WRITE_P50, json_object_get(all, "writes"), "p50_ns");
	put(h, SAMPLER_MOUNTS, HISTORY_WRITE_P99, json_object_get(all, "writes"), "p99_ns");
	json_array_foreach(each, i, rates)
	{
		char track[HISTORY_NAME_BYTES];

		put_rates(h, sampler_mount_track(json_array_get(now, i), track), rates);
	}
	json_decref(all);
	json_decref(each);
}

static void keep_exports(struct history *h, const json_t *before, const json_t *now, int64_t ms)
{
	json_t *each = top_rates_exports(before, now, ms);
	double read_bytes = 0, write_bytes = 0;
	bool known = false;
	const json_t *rates;
	size_t i;

	json_array_foreach(each, i, rates)
	{
		char track[HISTORY_NAME_BYTES];

		if (!json_is_integer(json_object_get(rates, "read_bytes")))
			continue;
		known = true;
		read_bytes += (double)ctl_json_number(rates, "read_bytes");
		write_bytes += (double)ctl_json_number(rates, "write_bytes");
		put_rates(h, sampler_export_track(rates, track), rates);
	}
	if (known) {
		history_put(h, SAMPLER_EXPORTS, HISTORY_READ_BYTES, read_bytes);
		history_put(h, SAMPLER_EXPORTS, HISTORY_WRITE_BYTES, write_bytes);
	}
	json_decref(each);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void replace(json_t **old, json_t *new)
{
	json_decref(*old);
	*old = new;
}

static void keep(struct sample *last, const struct shown *shown)
{
	int64_t now = now_ms(), ms = now - last->at_ms;

	history_begin(last->history, now);
	if (last->at_ms) {
		keep_mounts(last->history, last->mounts, shown->mounts, ms);
		if (shown->server)
			keep_exports(last->history, last->server, shown->server, ms);
	}
	last->at_ms = now;
	last->at_s = realtime_ns() / 1000000000;
	replace(&last->mounts, shown->mounts);
	replace(&last->server, shown->server);
	last->server_there = shown->server_there;
	judge(last->findings, shown, last->at_s);
	json_decref(shown->missing);
}

static void look(struct sampler *s)
{
	struct shown shown = {.details = s->details};

	observe(s->observer, 0, show, &shown);
	pthread_mutex_lock(&s->lock);
	keep(&s->last, &shown);
	pthread_mutex_unlock(&s->lock);
}

/* False: the thread is to end. */
static bool pause_until(struct sampler *s, int64_t at_ms)
{
	struct timespec until = {at_ms / 1000, at_ms % 1000 * 1000000};
	bool stops;

	pthread_mutex_lock(&s->lock);
	while (!s->stops && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
		continue;
	stops = s->stops;
	pthread_mutex_unlock(&s->lock);
	return !stops;
}

static int64_t monotonic_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static void *run(void *arg)
{
	struct sampler *s = arg;
	int64_t next_ms;

	do {
		next_ms = monotonic_ms() + s->interval_s * INT64_C(1000);
		look(s);
	} while (pause_until(s, next_ms));
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(struct sampler *s)
{
	json_decref(s->last.mounts);
	json_decref(s->last.server);
	free(s->last.findings);
	free(s->last.history);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

struct sampler *sampler_start(struct observer *observer, unsigned interval_s, bool details)
{
	struct sampler *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	s->observer = observer;
	s->interval_s = interval_s;
	s->details = details;
	s->last.findings = calloc(1, sizeof(*s->last.findings));
	s->last.history = history_new();
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (s->last.findings && s->last.history && pthread_create(&s->thread, NULL, run, s) == 0)
		return s;
	release(s);
	return NULL;
}

bool sampler_stop(struct sampler *s)
{
	struct timespec until;

	pthread_mutex_lock(&s->lock);
	s->stops = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_S;
	if (pthread_timedjoin_np(s->thread, NULL, &until) != 0)
		return false;
	release(s);
	return true;
}

void sampler_look(struct sampler *s, void (*use)(const struct sample *last, void *arg), void *arg)
{
	pthread_mutex_lock(&s->lock);
	use(&s->last, arg);
	pthread_mutex_unlock(&s->lock);
}
