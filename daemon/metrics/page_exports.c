#include <string.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/ctl/json.h"
#include "daemon/metrics/html.h"
#include "daemon/metrics/page_parts.h"

/* A bar of regions has so many boxes at most. */
enum { REGIONS_MAX = 256 };

static double number(const json_t *object, const char *key)
{
	return (double)ctl_json_number(object, key);
}

static bool is_of(const json_t *object, const json_t *export)
{
	return strcmp(ctl_json_text(object, "export"), ctl_json_text(export, "name")) == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void put_memory(FILE *out, const json_t *export)
{
	const struct draw_part parts[] = {
		{"in files", "used", number(export, "used")},
		{"lent to mounts", "lent", number(export, "granted")},
		{"to be cleared", "dirty", number(export, "dirty")},
		{"free", "free", number(export, "free")},
	};
	char used[FIGURE_CHARS], all[FIGURE_CHARS];

	html_put(out, "<h4>Memory <b>%s of %s</b></h4>\n",
		figure_share(number(export, "used"), number(export, "bytes"), used),
		figure_bytes(number(export, "bytes"), all));
	draw_bar(out, "Memory of the export", parts, ARRAY_SIZE(parts), number(export, "bytes"),
		figure_bytes);
}

/* A part is kept for operations that give memory back. Exports without a share of their own have
 * the same part left. */
static void put_metadata(FILE *out, const json_t *export)
{
	const json_t *metadata = json_object_get(export, "metadata");
	double used = number(metadata, "used"), left = number(metadata, "left");
	const struct draw_part parts[] = {
		{"used", "used", used},
		{"left for new files", "free", left},
	};
	char share[FIGURE_CHARS], all[FIGURE_CHARS];

	html_put(out, "<h4>Metadata <b>%s of %s</b></h4>\n", figure_share(used, used + left, share),
		figure_bytes(used + left, all));
	draw_bar(
		out, "Metadata of the export", parts, ARRAY_SIZE(parts), used + left, figure_bytes);
}

/* ---- regions --------------------------------------------------------------------------------- */

static void put_region(FILE *out, const json_t *region, unsigned at)
{
	bool lost = json_is_true(json_object_get(region, "lost"));
	char bytes[FIGURE_CHARS];

	html_put(out,
		"<rect class=\"%s\" x=\"%u\" width=\"9\" height=\"10\"><title>region %u: %s%s"
		"</title></rect>",
		lost ? "lost" : "used", 10 * at, (unsigned)ctl_json_number(region, "index"),
		figure_bytes(number(region, "bytes"), bytes), lost ? ", has lost bytes" : "");
}

/* One box for each region, in the order of their pages. */
static void put_regions(FILE *out, const json_t *export, const json_t *server)
{
	unsigned all = (unsigned)ctl_json_number(export, "regions");
	unsigned n = (unsigned)min_u64(all, REGIONS_MAX), at = 0;
	const json_t *region;
	char lost[FIGURE_CHARS];
	size_t i;

	html_put(out, "<h4>Regions <b>%u</b> <small>%s with lost bytes</small></h4>\n", all,
		figure_count(number(export, "lost_regions"), lost));
	html_put(out,
		"<svg class=\"bar regions\" viewBox=\"0 0 %u 10\" preserveAspectRatio=\"none\""
		" role=\"img\" aria-label=\"%u regions, %s with lost bytes\">"
		"<title>Regions of the export</title>",
		n ? 10 * n - 1 : 1, all, lost);
	json_array_foreach(json_object_get(server, "regions"), i, region)
	{
		if (at < n && is_of(region, export))
			put_region(out, region, at++);
	}
	html_put(out, "</svg>\n");
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void put_fact(FILE *out, const char *name, const char *value)
{
	html_put(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, value);
}

static void put_inodes(FILE *out, const json_t *export)
{
	char files[FIGURE_CHARS], most[FIGURE_CHARS], text[2 * FIGURE_CHARS + 8];

	figure_count(number(export, "files"), files);
	if (ctl_json_number(export, "max_inodes"))
		snprintf(text, sizeof(text), "%s of %s", files,
			figure_count(number(export, "max_inodes"), most));
	else
		snprintf(text, sizeof(text), "%s", files);
	put_fact(out, "Inodes", text);
}

static void put_mount_count(FILE *out, const json_t *export, const json_t *server)
{
	const json_t *session;
	char text[FIGURE_CHARS];
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(server, "sessions"), i, session) n +=
		is_of(session, export);
	put_fact(out, "Mounts", figure_count(n, text));
}

static void put_snapshot(FILE *out, const json_t *export)
{
	const json_t *snapshot = json_object_get(export, "snapshot");
	const char *state = ctl_json_text(snapshot, "state");
	int64_t made =
		(int64_t)ctl_json_number(json_object_get(export, "last_snapshot"), "completed");
	char when[CLOCK_TEXT_BYTES], text[2 * CLOCK_TEXT_BYTES], share[FIGURE_CHARS];

	snprintf(
		text, sizeof(text), "%s", made ? clock_format(made, -1, when) : "none in this run");
	put_fact(out, "Last snapshot", text);
	if (!*state || strcmp(state, "done") == 0)
		return;
	snprintf(text, sizeof(text), "%s, %s", state,
		figure_share(number(snapshot, "done"), number(snapshot, "total"), share));
	put_fact(out, "Snapshot now", text);
}

static void put_waits(FILE *out, const json_t *export)
{
	const json_t *leases = json_object_get(export, "leases");
	char text[FIGURE_CHARS];

	put_fact(out, "Wait for leases", figure_count(number(leases, "waiting"), text));
	put_fact(out, "Wait for locks", figure_count(number(leases, "lock_waits"), text));
}

static void put_rates(FILE *out, const struct page *page, const json_t *export)
{
	const struct history *h = page->last->history;
	char name[HISTORY_NAME_BYTES], text[FIGURE_CHARS];
	const struct history_track *track = history_find(h, sampler_export_track(export, name));

	put_fact(out, "Read", figure_byte_rate(history_last(h, track, HISTORY_READ_BYTES), text));
	put_fact(out, "Written",
		figure_byte_rate(history_last(h, track, HISTORY_WRITE_BYTES), text));
}

static void put_export(FILE *out, const struct page *page, const json_t *export)
{
	html_put(out, "<article class=\"card\">\n<h3>%s</h3>\n", ctl_json_text(export, "name"));
	put_memory(out, export);
	put_regions(out, export, page->last->server);
	put_metadata(out, export);
	html_put(out, "<dl class=\"facts\">\n");
	put_inodes(out, export);
	put_mount_count(out, export, page->last->server);
	put_rates(out, page, export);
	put_waits(out, export);
	put_fact(out, "Protection", ctl_json_text(export, "protection"));
	put_snapshot(out, export);
	html_put(out, "</dl>\n</article>\n");
}

void page_exports(FILE *out, const struct page *page)
{
	const json_t *exports = json_object_get(page->last->server, "exports"), *export;
	size_t i;

	html_put(out, "<section aria-labelledby=\"exports\">\n<h2 id=\"exports\">Exports</h2>\n");
	if (!json_array_size(exports))
		html_put(out, "<p>The server has none.</p>\n");
	html_put(out, "<div class=\"cards\">\n");
	json_array_foreach(exports, i, export) put_export(out, page, export);
	html_put(out, "</div>\n</section>\n");
}
