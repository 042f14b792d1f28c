#include <string.h>

#include "common/base/util.h"
#include "daemon/ctl/json.h"
#include "daemon/metrics/html.h"
#include "daemon/metrics/page_parts.h"

enum { MOUNTS_MAX = 64 };

static void put_cell(FILE *out, const char *name, const char *text)
{
	html_put(out, "<td role=\"cell\" class=\"n\" data-name=\"%s\">%s</td>", name, text);
}

static void put_rate(FILE *out, const struct page *page, const struct history_track *track,
	const char *name, enum history_series series, draw_figure *figure)
{
	char text[FIGURE_CHARS];

	put_cell(out, name, figure(history_last(page->last->history, track, series), text));
}

/* A badge, since a mount that is not connected is seen at once. */
static void put_state(FILE *out, const json_t *mount)
{
	const json_t *answer = json_object_get(mount, "answer");
	const char *state = ctl_json_text(answer, "state");
	bool asked = json_is_true(json_object_get(mount, "allowed"));

	if (!json_is_object(answer))
		state = asked ? "no answer" : "not asked";
	html_put(out,
		"<td role=\"cell\" data-name=\"State\"><span class=\"badge %s\">%s</span></td>",
		strcmp(state, "connected") == 0 ? "ok"
		: asked                         ? "critical"
						: "unknown",
		state);
}

/* Most requests wait for this. */
static const char *main_wait(const json_t *answer)
{
	const char *cause, *most = NULL;
	json_int_t largest = 0;
	json_t *n;

	json_object_foreach(json_object_get(answer, "waiting"), cause, n)
	{
		if (json_integer_value(n) > largest && strcmp(cause, "nothing") != 0) {
			largest = json_integer_value(n);
			most = cause;
		}
	}
	return most;
}

static void put_oldest(FILE *out, const json_t *answer)
{
	uint64_t ms = ctl_json_number(answer, "oldest_request_ms");
	const char *cause = main_wait(answer);
	char text[FIGURE_CHARS];

	html_put(out, "<td role=\"cell\" class=\"n\" data-name=\"Oldest request\"><span>%s",
		ms ? figure_time((double)ms * 1e6, text) : "–");
	if (ms && cause)
		html_put(out, " <small>%s</small>", cause);
	html_put(out, "</span></td>");
}

static void put_name(FILE *out, const struct page *page, const json_t *mount)
{
	html_put(out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\" class=\"name\"");
	if (page->details)
		html_put(out, ">%s <small>%s</small></th>", ctl_json_text(mount, "mountpoint"),
			ctl_json_text(mount, "source"));
	else
		html_put(out, " data-name=\"Mount\">%u</th>",
			(unsigned)ctl_json_number(mount, "connection"));
}

static void put_mount(FILE *out, const struct page *page, const json_t *mount)
{
	const json_t *answer = json_object_get(mount, "answer");
	const struct draw_time time = page_time(page);
	char name[HISTORY_NAME_BYTES];
	const struct history_track *track =
		history_find(page->last->history, sampler_mount_track(mount, name));

	put_name(out, page, mount);
	put_state(out, mount);
	html_put(out, "<td role=\"cell\" data-name=\"Transport\">%s</td>",
		json_is_object(answer) ? ctl_json_text(answer, "transport") : "–");
	put_oldest(out, answer);
	put_rate(out, page, track, "Operations", HISTORY_OPERATIONS, figure_rate);
	put_rate(out, page, track, "Read", HISTORY_READ_BYTES, figure_byte_rate);
	put_rate(out, page, track, "Written", HISTORY_WRITE_BYTES, figure_byte_rate);
	put_rate(out, page, track, "p50", HISTORY_P50, figure_time);
	put_rate(out, page, track, "p99", HISTORY_P99, figure_time);
	html_put(out, "<td role=\"cell\" data-name=\"Throughput\">");
	draw_spark(out, "Throughput of the mount", &time, page->last->history, track,
		HISTORY_READ_BYTES, HISTORY_WRITE_BYTES);
	html_put(out, "</td></tr>\n");
}

static void put_columns(FILE *out, const struct page *page)
{
	static const char *const columns[] = {
		"Oldest request", "Operations", "Read", "Written", "p50", "p99"};

	html_put(out,
		"<thead role=\"rowgroup\"><tr role=\"row\">"
		"<th role=\"columnheader\" scope=\"col\">%s</th>"
		"<th role=\"columnheader\" scope=\"col\">State</th>"
		"<th role=\"columnheader\" scope=\"col\">Transport</th>",
		page->details ? "Mount" : "Number");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		html_put(out, "<th role=\"columnheader\" scope=\"col\" class=\"n\">%s</th>",
			columns[i]);
	html_put(out, "<th role=\"columnheader\" scope=\"col\">Throughput</th></tr></thead>\n");
}

void page_mounts(FILE *out, const struct page *page)
{
	size_t n = json_array_size(page->last->mounts), i;
	const json_t *mount;

	html_put(out,
		"<section aria-labelledby=\"mounts\">\n<h2 id=\"mounts\">Mounts of this machine</h2>"
		"\n<table role=\"table\" class=\"card\">\n");
	put_columns(out, page);
	html_put(out, "<tbody role=\"rowgroup\">\n");
	json_array_foreach(page->last->mounts, i, mount)
	{
		if (i < MOUNTS_MAX)
			put_mount(out, page, mount);
	}
	html_put(out, "</tbody></table>\n");
	if (n > MOUNTS_MAX)
		html_put(out, "<p>%u more: <code>rmemfsctl mounts</code> has all.</p>\n",
			(unsigned)(n - MOUNTS_MAX));
	if (!page->details)
		html_put(out,
			"<p class=\"hint\">The number is the kernel's, of the FUSE connection: "
			"<code>rmemfsctl mounts --json</code> has it as <code>connection</code>."
			"</p>\n");
	html_put(out, "</section>\n");
}
