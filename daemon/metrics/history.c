#include "daemon/metrics/history.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void forget(struct history_track *track)
{
	track->name[0] = '\0';
	for (unsigned s = 0; s < HISTORY_SERIES; s++)
		for (unsigned i = 0; i < HISTORY_MOMENTS; i++)
			track->v[s][i] = NAN;
}

struct history *history_new(void)
{
	struct history *h = calloc(1, sizeof(*h));

	for (unsigned i = 0; h && i < HISTORY_TRACKS; i++)
		forget(&h->tracks[i]);
	return h;
}

static unsigned place_of(const struct history *h, unsigned i)
{
	return (h->next + HISTORY_MOMENTS - h->n + i) % HISTORY_MOMENTS;
}

void history_begin(struct history *h, int64_t at_ms)
{
	h->at_ms[h->next] = at_ms;
	for (unsigned i = 0; i < HISTORY_TRACKS; i++)
		for (unsigned s = 0; s < HISTORY_SERIES; s++)
			h->tracks[i].v[s][h->next] = NAN;
	h->next = (h->next + 1) % HISTORY_MOMENTS;
	if (h->n < HISTORY_MOMENTS)
		h->n++;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

const struct history_track *history_find(const struct history *h, const char *name)
{
	for (unsigned i = 0; i < HISTORY_TRACKS; i++)
		if (strcmp(h->tracks[i].name, name) == 0)
			return &h->tracks[i];
	return NULL;
}

static bool is_empty(const struct history_track *track)
{
	for (unsigned s = 0; s < HISTORY_SERIES; s++)
		for (unsigned i = 0; i < HISTORY_MOMENTS; i++)
			if (!isnan(track->v[s][i]))
				return false;
	return true;
}

static struct history_track *take(struct history *h, const char *name)
{
	struct history_track *track = (struct history_track *)history_find(h, name);

	for (unsigned i = 0; !track && i < HISTORY_TRACKS; i++)
		if (is_empty(&h->tracks[i]))
			track = &h->tracks[i];
	if (track)
		snprintf(track->name, sizeof(track->name), "%s", name);
	return track;
}

void history_put(struct history *h, const char *name, enum history_series series, double value)
{
	struct history_track *track;

	if (!h->n || !(value >= 0) || !*name || strlen(name) >= HISTORY_NAME_BYTES)
		return;
	track = take(h, name);
	if (track)
		track->v[series][place_of(h, h->n - 1)] = (float)value;
}

/* ---- reading --------------------------------------------------------------------------------- */

int64_t history_at_ms(const struct history *h, unsigned i)
{
	return h->at_ms[place_of(h, i)];
}

double history_value(const struct history *h, const struct history_track *track,
	enum history_series series, unsigned i)
{
	return (double)track->v[series][place_of(h, i)];
}

double history_last(
	const struct history *h, const struct history_track *track, enum history_series series)
{
	return track && h->n ? history_value(h, track, series, h->n - 1) : (double)NAN;
}

double history_most(const struct history *h, const struct history_track *track,
	enum history_series series, int64_t since_ms)
{
	double most = (double)NAN;

	for (unsigned i = 0; track && i < h->n; i++) {
		double value = history_value(h, track, series, i);

		if (history_at_ms(h, i) >= since_ms && !isnan(value) && !(most >= value))
			most = value;
	}
	return most;
}
