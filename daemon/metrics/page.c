#include "daemon/metrics/page.h"

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/ctl/print.h"
#include "daemon/metrics/html.h"
#include "daemon/metrics/page_parts.h"

/* A sample that is older than so many intervals says so. */
enum { LATE_INTERVALS = 3 };

/* ---- head ------------------------------------------------------------------------------------ */

static unsigned count(const struct page *page, enum verdict verdict)
{
	return report_count(&page->last->findings->report, verdict);
}

/* "2 critical, 1 warning" */
static const char *sum_up(const struct page *page, char *buf, size_t len)
{
	static const struct {
		enum verdict verdict;
		const char *one, *many;
	} kinds[] = {{VERDICT_FAILURE, "critical", "critical"},
		{VERDICT_WARNING, "warning", "warnings"}, {VERDICT_UNKNOWN, "unknown", "unknown"}};
	size_t at = 0;

	snprintf(buf, len, "all is well");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		unsigned n = count(page, kinds[i].verdict);

		if (n && at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%u %s", at ? ", " : "", n,
				n == 1 ? kinds[i].one : kinds[i].many);
	}
	return buf;
}

static void put_head(FILE *out, const struct page *page, const char *sum)
{
	html_put(out, "<!DOCTYPE html>\n"
		      "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
		      "<meta charset=\"utf-8\"/>\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
		      "<meta name=\"color-scheme\" content=\"light dark\"/>\n");
	if (!page->still)
		html_put(out, "<meta http-equiv=\"refresh\" content=\"%u\"/>\n", page->interval_s);
	html_put(out, "<title>%s: rmemfs on %s</title>\n<style>", sum, page->host);
	fputs(page_style, out);
	html_put(out, "</style>\n</head>\n");
}

static void put_when(FILE *out, const struct page *page)
{
	int64_t age_s = (page->now_ms - page->last->at_ms) / 1000;
	char when[CLOCK_TEXT_BYTES];

	html_put(out, "<p class=\"when\">");
	if (page->last->at_ms)
		html_put(out, "<span>%s</span> ", clock_format(page->last->at_s, -1, when));
	if (page->last->at_ms && age_s > (int64_t)page->interval_s * LATE_INTERVALS)
		html_put(out, "<strong>%u s old: daemons do not answer in time</strong> ",
			(unsigned)age_s);
	if (page->still)
		html_put(out, "<a href=\"./\">Update every %u s</a>", page->interval_s);
	else
		html_put(out, "<span>every %u s</span> <a href=\"still\">Stop updating</a>",
			page->interval_s);
	html_put(out, "</p>\n");
}

static void put_header(FILE *out, const struct page *page, const char *sum)
{
	const char *style = health_findings_name(health_findings_verdict(page->last->findings));

	html_put(out,
		"<header>\n<h1>rmemfs <span>on %s</span></h1>\n<p class=\"badge %s\">%s</p>\n",
		page->host, page->last->at_ms ? style : "note", sum);
	put_when(out, page);
	html_put(out, "</header>\n");
}

/* ---- findings -------------------------------------------------------------------------------- */

static void put_finding(FILE *out, const struct finding *f)
{
	const char *name = health_findings_name(f->verdict);

	html_put(out, "<li class=\"%s\"><p><strong class=\"badge %s\">%s</strong> %s</p>\n<dl>",
		name, name, name, f->found);
	if (f->cause[0])
		html_put(out, "<dt>Cause</dt><dd>%s</dd>\n", f->cause);
	if (f->remedy[0])
		html_put(out, "<dt>Remedy</dt><dd>%s</dd>", f->remedy);
	html_put(out, "</dl></li>\n");
}

static void put_all_well(FILE *out, const struct health_findings *f)
{
	html_put(out, "<p class=\"well\">Nothing: %u mount%s and %u export%s are well.</p>\n",
		f->nmounts, f->nmounts == 1 ? "" : "s", (unsigned)f->nexports,
		f->nexports == 1 ? "" : "s");
}

static void put_findings(FILE *out, const struct page *page)
{
	const struct health_findings *f = page->last->findings;

	html_put(out, "<section aria-labelledby=\"wrong\">\n<h2 id=\"wrong\">What is wrong</h2>\n");
	if (health_findings_verdict(f) == VERDICT_OK)
		put_all_well(out, f);
	if (f->report.n)
		html_put(out, "<ol class=\"findings\">\n");
	for (unsigned i = 0; i < f->report.n; i++)
		put_finding(out, &f->report.findings[i]);
	if (f->report.n)
		html_put(out, "</ol>\n");
	if (f->report.cut)
		html_put(out, "<p>More was found than these %u.</p>\n", f->report.n);
	html_put(out, "</section>\n");
}

/* ---- all ------------------------------------------------------------------------------------- */

/* A server that tells strangers no more than its versions has no exports to show. */
static bool tells_exports(const json_t *server)
{
	return server && !ctl_is_for_strangers(server);
}

static void put_main(FILE *out, const struct page *page)
{
	const struct sample *last = page->last;

	if (!last->at_ms) {
		html_put(out, "<p class=\"well\">The daemons are being asked.</p>\n");
		return;
	}
	put_findings(out, page);
	page_charts(out, page);
	if (tells_exports(last->server))
		page_exports(out, page);
	if (json_array_size(last->mounts))
		page_mounts(out, page);
	if (tells_exports(last->server))
		page_clients(out, page);
}

void page_write(FILE *out, const struct page *page)
{
	char sum[128];

	if (page->last->at_ms)
		sum_up(page, sum, sizeof(sum));
	else
		snprintf(sum, sizeof(sum), "not looked at yet");
	put_head(out, page, sum);
	html_put(out, "<body>\n");
	put_header(out, page, sum);
	html_put(out, "<main>\n");
	put_main(out, page);
	html_put(out,
		"</main>\n<footer><p>rmemfs %s. <a href=\"metrics\">Metrics for Prometheus</a>. "
		"A terminal tells more: <code>rmemfsctl status</code>, <code>rmemfsctl "
		"doctor</code>.</p></footer>\n</body>\n</html>\n",
		RMEMFS_VERSION);
}
