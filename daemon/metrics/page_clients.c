#include "daemon/ctl/json.h"
#include "daemon/metrics/html.h"
#include "daemon/metrics/page_parts.h"

/* The table has so many rows at most. */
enum { CLIENTS_MAX = 64 };

static void put_client(FILE *out, const struct page *page, const json_t *session)
{
	const json_t *channel = json_array_get(json_object_get(session, "channels"), 0);
	char silent[FIGURE_CHARS], recalls[FIGURE_CHARS];

	html_put(out,
		"<tr role=\"row\"><th role=\"rowheader\" scope=\"row\" data-name=\"Session\">%u</th>",
		(unsigned)ctl_json_number(session, "id"));
	if (page->details)
		html_put(out, "<td role=\"cell\" class=\"name\" data-name=\"Client\">%s</td>",
			ctl_json_text(session, "client"));
	html_put(out,
		"<td role=\"cell\" class=\"name\" data-name=\"Export\">%s</td>"
		"<td role=\"cell\" data-name=\"State\">%s</td>"
		"<td role=\"cell\" data-name=\"Transport\">%s</td>"
		"<td role=\"cell\" class=\"n\" data-name=\"Silent for\">%s</td>"
		"<td role=\"cell\" class=\"n\" data-name=\"Recalls\">%s</td></tr>\n",
		ctl_json_text(session, "export"), ctl_json_text(session, "state"),
		ctl_json_text(channel, "transport"),
		figure_time((double)ctl_json_number(session, "silent_ms") * 1e6, silent),
		figure_count((double)ctl_json_number(session, "recalls"), recalls));
}

void page_clients(FILE *out, const struct page *page)
{
	const json_t *sessions = json_object_get(page->last->server, "sessions"), *session;
	size_t n = json_array_size(sessions), i;

	if (!n)
		return;
	html_put(out,
		"<section aria-labelledby=\"clients\">\n<h2 id=\"clients\">Mounts of these exports"
		"</h2>\n<table role=\"table\" class=\"card\">\n"
		"<thead role=\"rowgroup\"><tr role=\"row\">"
		"<th role=\"columnheader\" scope=\"col\">Session</th>");
	if (page->details)
		html_put(out, "<th role=\"columnheader\" scope=\"col\">Client</th>");
	html_put(out, "<th role=\"columnheader\" scope=\"col\">Export</th>"
		      "<th role=\"columnheader\" scope=\"col\">State</th>"
		      "<th role=\"columnheader\" scope=\"col\">Transport</th>"
		      "<th role=\"columnheader\" scope=\"col\" class=\"n\">Silent for</th>"
		      "<th role=\"columnheader\" scope=\"col\" class=\"n\">Recalls</th>"
		      "</tr></thead>\n<tbody role=\"rowgroup\">\n");
	json_array_foreach(sessions, i, session)
	{
		if (i < CLIENTS_MAX)
			put_client(out, page, session);
	}
	html_put(out, "</tbody></table>\n");
	if (n > CLIENTS_MAX)
		html_put(out, "<p>%u more: <code>rmemfsctl status</code> has all.</p>\n",
			(unsigned)(n - CLIENTS_MAX));
	html_put(out, "</section>\n");
}
