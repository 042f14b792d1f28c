#include "daemon/metrics/html.h"
#include "daemon/metrics/page_parts.h"

static const struct draw_line bytes_lines[] = {
	{"read", "a", HISTORY_READ_BYTES},
	{"written", "b", HISTORY_WRITE_BYTES},
};

static const struct draw_line operation_lines[] = {
	{"operations", "a", HISTORY_OPERATIONS},
	{"with an error", "c", HISTORY_ERRORS},
};

static const struct draw_line time_lines[] = {
	{"read p50", "a", HISTORY_READ_P50},
	{"read p99", "a dash", HISTORY_READ_P99},
	{"write p50", "b", HISTORY_WRITE_P50},
	{"write p99", "b dash", HISTORY_WRITE_P99},
};

static const struct draw_chart mount_charts[] = {
	{.id = "throughput",
		.title = "Throughput of the mounts",
		.lines = bytes_lines,
		.nlines = 2,
		.figure = figure_byte_rate,
		.unit = 1024,
		.least = 1024},
	{.id = "operations",
		.title = "Operations of the mounts",
		.lines = operation_lines,
		.nlines = 2,
		.figure = figure_rate,
		.unit = 1000,
		.least = 10},
	{.id = "times",
		.title = "Times of reads and writes",
		.lines = time_lines,
		.nlines = 4,
		.figure = figure_time,
		.logarithmic = true},
};

static const struct draw_chart export_chart = {.id = "served",
	.title = "Throughput of the exports",
	.lines = bytes_lines,
	.nlines = 2,
	.figure = figure_byte_rate,
	.unit = 1024,
	.least = 1024};

/* Two moments make the first rate. */
static void put_span(FILE *out, const struct page *page)
{
	struct draw_time time = page_time(page);
	unsigned s = (unsigned)(time.span_ms / 1000);

	if (s % 60 == 0)
		html_put(out, "<h2 id=\"rates\">The last %u minutes</h2>\n", s / 60);
	else
		html_put(out, "<h2 id=\"rates\">The last %u seconds</h2>\n", s);
	if (page->last->history->n < 2)
		html_put(out, "<p>The first figures come in %u s.</p>\n", page->interval_s);
}

void page_charts(FILE *out, const struct page *page)
{
	const struct history *h = page->last->history;
	const struct history_track *mounts = history_find(h, SAMPLER_MOUNTS);
	const struct history_track *exports = history_find(h, SAMPLER_EXPORTS);
	const struct draw_time time = page_time(page);
	bool has_mounts = mounts || json_array_size(page->last->mounts);

	if (!has_mounts && !exports && !page->last->server)
		return;
	html_put(out, "<section aria-labelledby=\"rates\">\n");
	put_span(out, page);
	html_put(out, "<div class=\"charts\">\n");
	for (unsigned i = 0; has_mounts && i < 3; i++)
		draw_chart(out, &mount_charts[i], &time, h, mounts);
	if (exports || page->last->server)
		draw_chart(out, &export_chart, &time, h, exports);
	html_put(out, "</div>\n</section>\n");
}
