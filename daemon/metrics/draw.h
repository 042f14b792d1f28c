/* draw.h - bars and charts of the status page, as HTML with SVG in it.
 *
 * A drawing is stretched to the width that there is. So lines have a width of their own, and all
 * text is HTML beside it. Each one has a title, and its figures as text, for readers who do not see
 * it. Colours are classes of page_style.c.
 */
#ifndef RMEMFS_DAEMON_METRICS_DRAW_H
#define RMEMFS_DAEMON_METRICS_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/metrics/figure.h"
#include "daemon/metrics/history.h"

/* Writes a value as a figure (figure.h). */
typedef const char *draw_figure(double value, char buf[FIGURE_CHARS]);

/* ---- bars: the parts of a whole -------------------------------------------------------------- */

struct draw_part {
	const char *name, *style; /* style: the class of its colour */
	double value;
};

/* A bar, and below it each part with its figure. Parts that exceed the whole are cut. */
void draw_bar(FILE *out, const char *title, const struct draw_part *parts, unsigned nparts,
	double whole, draw_figure *figure);

/* ---- charts: values over time ---------------------------------------------------------------- */

struct draw_line {
	const char *name, *style;
	enum history_series series;
};

struct draw_chart {
	const char *id, *title; /* id: unique in the page */
	const struct draw_line *lines;
	unsigned nlines;
	draw_figure *figure;
	bool logarithmic; /* the axis has decades; otherwise: */
	double unit;      /* its steps are multiples of powers of this: 1000, 1024 */
	double least;     /* its upper end is this or more */
};

/* The time that a chart shows. */
struct draw_time {
	int64_t now_ms, span_ms;
};

/* track: NULL is one without values. */
void draw_chart(FILE *out, const struct draw_chart *chart, const struct draw_time *time,
	const struct history *h, const struct history_track *track);

/* A chart as small as a word, of the sum of two series, without axes. */
void draw_spark(FILE *out, const char *title, const struct draw_time *time, const struct history *h,
	const struct history_track *track, enum history_series a, enum history_series b);

#endif
