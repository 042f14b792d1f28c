#include "daemon/metrics/draw.h"

#include <math.h>

#include "common/base/util.h"
#include "daemon/metrics/html.h"

/* Of the drawings' own coordinates. */
enum { WIDTH = 600, HEIGHT = 120, BAR_WIDTH = 1000, SPARK_WIDTH = 120, SPARK_HEIGHT = 24 };

/* Between two moments that are further apart, a line has a gap. */
enum { GAP_MOMENTS = 3 };

/* ---- bars ------------------------------------------------------------------------------------ */

static double clip(double value, double least, double most)
{
	return value > least ? (value < most ? value : most) : least;
}

static void put_parts(FILE *out, const struct draw_part *parts, unsigned nparts, double whole,
	draw_figure *figure)
{
	char text[FIGURE_CHARS];
	double x = 0;

	for (unsigned i = 0; i < nparts; i++) {
		double width = whole > 0 ? parts[i].value / whole * BAR_WIDTH : 0;

		width = clip(width, 0, BAR_WIDTH - x);
		if (!(width > 0))
			continue;
		html_put(out, "<rect class=\"%s\" height=\"10\"", parts[i].style);
		fprintf(out, " x=\"%.2f\" width=\"%.2f\">", x, width);
		html_put(out, "<title>%s: %s</title></rect>", parts[i].name,
			figure(parts[i].value, text));
		x += width;
	}
}

void draw_bar(FILE *out, const char *title, const struct draw_part *parts, unsigned nparts,
	double whole, draw_figure *figure)
{
	char text[FIGURE_CHARS], share[FIGURE_CHARS];

	html_put(out,
		"<svg class=\"bar\" viewBox=\"0 0 %u 10\" preserveAspectRatio=\"none\""
		" role=\"img\" aria-label=\"%s\"><title>%s</title>",
		(unsigned)BAR_WIDTH, title, title);
	put_parts(out, parts, nparts, whole, figure);
	html_put(out, "</svg>\n<dl class=\"parts\">");
	for (unsigned i = 0; i < nparts; i++)
		html_put(out,
			"<div><dt><span class=\"swatch %s\"></span>%s</dt>"
			"<dd>%s <small>%s</small></dd></div>",
			parts[i].style, parts[i].name, figure(parts[i].value, text),
			figure_share(parts[i].value, whole, share));
	html_put(out, "</dl>\n");
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Where a value stands: 0 is the axis' lower end, 1 the upper one. */
struct axis {
	double low, high;
	bool logarithmic;
};

struct field {
	unsigned width, height;
	struct axis axis;
	const struct draw_time *time;
	const struct history *h;
};

static double axis_at(const struct axis *axis, double value)
{
	if (axis->logarithmic)
		return clip(log10(value / axis->low) / log10(axis->high / axis->low), 0, 1);
	return clip((value - axis->low) / (axis->high - axis->low), 0, 1);
}

/* A value of one series, or the sum of two; NAN: it is not known, or can't be drawn. */
static double value_at(const struct field *f, const struct history_track *track,
	const enum history_series series[2], unsigned i)
{
	double value = history_value(f->h, track, series[0], i);

	if (series[1] != series[0])
		value += history_value(f->h, track, series[1], i);
	return f->axis.logarithmic && !(value > 0) ? (double)NAN : value;
}

/* The points of a line, as a path. Where a value is missing the line has a gap. area: down to the
 * axis. */
static void put_path(FILE *out, const struct field *f, const struct history_track *track,
	const enum history_series series[2], bool area)
{
	double begin = 0, x = 0;
	int64_t last_ms = 0;
	bool drawing = false;

	for (unsigned i = 0; track && i < f->h->n; i++) {
		int64_t at_ms = history_at_ms(f->h, i), age_ms = f->time->now_ms - at_ms;
		double value = value_at(f, track, series, i);
		bool far = at_ms - last_ms > GAP_MOMENTS * f->time->span_ms / HISTORY_MOMENTS;

		if (drawing && (far || isnan(value))) {
			if (area)
				fprintf(out, "V%u H%.1f Z", f->height, begin);
			else
				fprintf(out, "h0.01");
			drawing = false;
		}
		if (isnan(value) || age_ms > f->time->span_ms)
			continue;
		x = f->width * (1 - clip((double)age_ms / (double)f->time->span_ms, 0, 1));
		if (!drawing)
			begin = x;
		fprintf(out, "%s%.1f %.1f", drawing ? "L" : "M", x,
			f->height * (1 - axis_at(&f->axis, value)));
		drawing = true;
		last_ms = at_ms;
	}
	if (drawing && area)
		fprintf(out, "V%u H%.1f Z", f->height, begin);
	else if (drawing)
		fprintf(out, "h0.01"); /* a single point is seen, too */
}

static void put_line(FILE *out, const struct field *f, const struct history_track *track,
	const enum history_series series[2], const char *style, bool area)
{
	html_put(out, "<path class=\"%s %s\" d=\"", area ? "area" : "line", style);
	put_path(out, f, track, series, area);
	html_put(out, "\"/>");
}

/* ---- charts ---------------------------------------------------------------------------------- */

/* The values of a chart, and from when on they are drawn. */
struct drawn {
	const struct draw_chart *chart;
	const struct history *h;
	const struct history_track *track;
	int64_t since_ms;
};

static double chart_most(const struct drawn *d)
{
	double most = 0;

	for (unsigned i = 0; i < d->chart->nlines; i++)
		most = fmax(
			most, history_most(d->h, d->track, d->chart->lines[i].series, d->since_ms));
	return most;
}

/* The least value that is more than 0. */
static double chart_least(const struct drawn *d)
{
	double least = INFINITY;

	for (unsigned i = 0; i < d->chart->nlines; i++)
		for (unsigned k = 0; d->track && k < d->h->n; k++) {
			double value = history_value(d->h, d->track, d->chart->lines[i].series, k);

			if (value > 0 && history_at_ms(d->h, k) >= d->since_ms)
				least = fmin(least, value);
		}
	return least;
}

/* An upper end of which half and whole are short figures. */
static double round_up(double value, double unit)
{
	static const double steps[] = {1, 2, 4, 6, 10, 20, 40, 60, 100, 200, 400, 600, 1000};
	double power = 1;

	while (power * 1000 < value)
		power *= unit;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (power * steps[i] >= value)
			return power * steps[i];
	return power * unit;
}

/* The largest times are without a bound, and stand at the upper end. */
enum { DECADES_MAX = 12 };

static struct axis choose_axis(const struct drawn *d)
{
	double most = chart_most(d), low, high;
	struct axis axis = {.logarithmic = d->chart->logarithmic};

	if (!axis.logarithmic) {
		axis.high = round_up(fmax(most, d->chart->least), d->chart->unit);
		return axis;
	}
	/* Without values nothing is drawn. */
	low = most > 0 ? fmin(floor(log10(chart_least(d))), DECADES_MAX - 2) : 6;
	high = most > 0 ? fmin(ceil(log10(most)), DECADES_MAX) : 6;
	axis.low = pow(10, low);
	/* The middle is a decade, too. */
	axis.high = pow(10, low + 2 * ceil(fmax(high - low, 2) / 2));
	return axis;
}

/* Each line's name, its last value and its largest one. */
static void put_key(FILE *out, const struct drawn *d)
{
	char last[FIGURE_CHARS], most[FIGURE_CHARS];

	html_put(out, "<ul class=\"key\">");
	for (unsigned i = 0; i < d->chart->nlines; i++) {
		const struct draw_line *line = &d->chart->lines[i];

		html_put(out,
			"<li><span class=\"stroke %s\"></span>%s <b>%s</b>"
			" <small>max %s</small></li>",
			line->style, line->name,
			d->chart->figure(history_last(d->h, d->track, line->series), last),
			d->chart->figure(
				history_most(d->h, d->track, line->series, d->since_ms), most));
	}
	html_put(out, "</ul>\n");
}

/* A line at each fourth, or at each decade. The figures beside it are those of the axis' ends, and
 * of its middle. */
static void put_grid(FILE *out, const struct field *f)
{
	html_put(out, "<path class=\"grid\" d=\"");
	if (f->axis.logarithmic)
		for (double value = f->axis.low * 10; value < f->axis.high * 0.99; value *= 10)
			fprintf(out, "M0 %.1fH%u", f->height * (1 - axis_at(&f->axis, value)),
				f->width);
	else
		for (unsigned i = 1; i < 4; i++)
			fprintf(out, "M0 %uH%u", f->height / 4 * i, f->width);
	html_put(out, "\"/>");
}

static void put_figures(FILE *out, const struct draw_chart *chart, const struct axis *axis)
{
	double middle =
		axis->logarithmic ? sqrt(axis->low * axis->high) : (axis->low + axis->high) / 2;
	char high[FIGURE_CHARS], half[FIGURE_CHARS], low[FIGURE_CHARS];

	html_put(out, "<div class=\"y\"><span>%s</span><span>%s</span><span>%s</span></div>\n",
		chart->figure(axis->high, high), chart->figure(middle, half),
		chart->figure(axis->low, low));
}

/* "10 min ago" */
static void put_age(FILE *out, int64_t ms)
{
	unsigned s = (unsigned)(ms / 1000);

	if (s >= 60 && s % 60 == 0)
		html_put(out, "<span>%u min ago</span>", s / 60);
	else
		html_put(out, "<span>%u s ago</span>", s);
}

static void put_plot(FILE *out, const struct drawn *d, const struct field *f)
{
	html_put(out,
		"<svg viewBox=\"0 0 %u %u\" preserveAspectRatio=\"none\" role=\"img\""
		" aria-labelledby=\"%s\"><title>%s</title>",
		f->width, f->height, d->chart->id, d->chart->title);
	put_grid(out, f);
	for (unsigned i = 0; i < d->chart->nlines; i++) {
		const struct draw_line *line = &d->chart->lines[i];
		const enum history_series series[2] = {line->series, line->series};

		if (!f->axis.logarithmic)
			put_line(out, f, d->track, series, line->style, true);
		put_line(out, f, d->track, series, line->style, false);
	}
	html_put(out, "</svg>\n");
}

void draw_chart(FILE *out, const struct draw_chart *chart, const struct draw_time *time,
	const struct history *h, const struct history_track *track)
{
	const struct drawn d = {chart, h, track, time->now_ms - time->span_ms};
	const struct field f = {WIDTH, HEIGHT, choose_axis(&d), time, h};

	html_put(out, "<figure class=\"chart\">\n<figcaption><h3 id=\"%s\">%s</h3>\n", chart->id,
		chart->title);
	put_key(out, &d);
	html_put(out, "</figcaption>\n<div class=\"plot\">");
	put_figures(out, chart, &f.axis);
	put_plot(out, &d, &f);
	html_put(out, "<div class=\"x\">");
	put_age(out, time->span_ms);
	put_age(out, time->span_ms / 2);
	html_put(out, "<span>now</span></div></div>\n</figure>\n");
}

void draw_spark(FILE *out, const char *title, const struct draw_time *time, const struct history *h,
	const struct history_track *track, enum history_series a, enum history_series b)
{
	const enum history_series series[2] = {a, b};
	struct field f = {SPARK_WIDTH, SPARK_HEIGHT, {0, 1, false}, time, h};

	for (unsigned i = 0; track && i < h->n; i++)
		f.axis.high = fmax(f.axis.high, value_at(&f, track, series, i));
	html_put(out,
		"<svg class=\"spark\" viewBox=\"0 0 %u %u\" preserveAspectRatio=\"none\""
		" role=\"img\" aria-label=\"%s\"><title>%s</title>",
		f.width, f.height, title, title);
	put_line(out, &f, track, series, "a", true);
	put_line(out, &f, track, series, "a", false);
	html_put(out, "</svg>");
}
