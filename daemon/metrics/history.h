/* history.h - what mounts and exports did in the last minutes: rates and times of each interval, in
 * memory of a fixed size.
 *
 * A track is one subject: all mounts together, one mount, one export. Each moment has a value of
 * each series of each track, or NAN: it is not known. A track whose values have all become too old
 * gives its place to a new subject; if all places are taken, the new one is not kept.
 *
 * THREADS    The caller keeps readers and writers apart.
 */
#ifndef RMEMFS_DAEMON_METRICS_HISTORY_H
#define RMEMFS_DAEMON_METRICS_HISTORY_H

#include <stdint.h>

enum { HISTORY_MOMENTS = 120, HISTORY_TRACKS = 128, HISTORY_NAME_BYTES = 80 };

/* Per second, or ns. */
enum history_series {
	HISTORY_READ_BYTES,
	HISTORY_WRITE_BYTES,
	HISTORY_OPERATIONS,
	HISTORY_ERRORS,
	HISTORY_P50,
	HISTORY_P99,
	HISTORY_READ_P50,
	HISTORY_READ_P99,
	HISTORY_WRITE_P50,
	HISTORY_WRITE_P99,
	HISTORY_SERIES
};

struct history_track {
	char name[HISTORY_NAME_BYTES];
	float v[HISTORY_SERIES][HISTORY_MOMENTS];
};

/* history_new() has no moment. */
struct history {
	unsigned n, next; /* moments that there are, and the place of the next one */
	int64_t at_ms[HISTORY_MOMENTS];
	struct history_track tracks[HISTORY_TRACKS];
};

/* NULL: no memory. free() frees it. */
struct history *history_new(void);

/* Begins a moment, which is later than all others. The oldest one is forgotten. */
void history_begin(struct history *h, int64_t at_ms);
/* A value of the last moment. Other values than those of 0 and more are not kept. */
void history_put(struct history *h, const char *name, enum history_series series, double value);

/* NULL: there is none. */
const struct history_track *history_find(const struct history *h, const char *name);
/* The moments from the oldest, 0, to the last, n - 1. */
int64_t history_at_ms(const struct history *h, unsigned i);
double history_value(const struct history *h, const struct history_track *track,
	enum history_series series, unsigned i);
/* The value of the last moment. track NULL: NAN. */
double history_last(
	const struct history *h, const struct history_track *track, enum history_series series);
/* The largest value since then; NAN: there is none. */
double history_most(const struct history *h, const struct history_track *track,
	enum history_series series, int64_t since_ms);

#endif
