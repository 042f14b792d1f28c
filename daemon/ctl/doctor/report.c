#include "daemon/ctl/doctor/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/printable.h"

void report_begin(struct report *r, const char *check)
{
	snprintf(r->check, sizeof(r->check), "%s", check);
}

__attribute__((format(printf, 2, 0))) static void write_text(
	char text[REPORT_TEXT_BYTES], const char *format, va_list args)
{
	vsnprintf(text, REPORT_TEXT_BYTES, format, args);
	printable_clean_string(text);
}

/* The finding counts when its text is whole: its writer may be killed at any time. */
void report_found(struct report *r, enum verdict verdict, const char *format, ...)
{
	struct finding *f = &r->findings[r->n];
	va_list args;

	if (verdict > r->worst)
		r->worst = verdict;
	if (r->n == REPORT_FINDINGS_MAX) {
		r->cut = true;
		return;
	}
	*f = (struct finding){.verdict = verdict};
	memcpy(f->check, r->check, sizeof(f->check));
	va_start(args, format);
	write_text(f->found, format, args);
	va_end(args);
	r->n++;
}

/* Where the report was cut, the last finding is another one. */
static struct finding *last_finding(struct report *r)
{
	return r->n && !r->cut ? &r->findings[r->n - 1] : NULL;
}

void report_cause(struct report *r, const char *format, ...)
{
	struct finding *f = last_finding(r);
	va_list args;

	va_start(args, format);
	if (f)
		write_text(f->cause, format, args);
	va_end(args);
}

void report_remedy(struct report *r, const char *format, ...)
{
	struct finding *f = last_finding(r);
	va_list args;

	va_start(args, format);
	if (f)
		write_text(f->remedy, format, args);
	va_end(args);
}

static bool is_plain(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:@+,";

	return text[0] && text[0] != '-' && text[strspn(text, plain)] == '\0';
}

const char *report_quote(const char *text, char buf[REPORT_QUOTED_BYTES])
{
	size_t at = 0;

	if (is_plain(text) && strlen(text) < REPORT_QUOTED_BYTES) {
		snprintf(buf, REPORT_QUOTED_BYTES, "%s", text);
		return buf;
	}
	buf[at++] = '\'';
	for (; *text; text++) {
		const char *as = *text == '\'' ? "'\\''" : (const char[]){*text, '\0'};

		if (at + strlen(as) + 2 > REPORT_QUOTED_BYTES) {
			snprintf(buf, REPORT_QUOTED_BYTES, "'...'");
			return buf;
		}
		at += (size_t)snprintf(buf + at, REPORT_QUOTED_BYTES - at, "%s", as);
	}
	snprintf(buf + at, REPORT_QUOTED_BYTES - at, "'");
	return buf;
}

unsigned report_count(const struct report *r, enum verdict verdict)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n; i++)
		n += r->findings[i].verdict == verdict;
	return n;
}

const char *report_verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_OK] = "ok",
		[VERDICT_NOTE] = "note",
		[VERDICT_UNKNOWN] = "unknown",
		[VERDICT_WARNING] = "warning",
		[VERDICT_FAILURE] = "failure",
	};

	return names[verdict];
}

/* ---- for people ------------------------------------------------------------------------------ */

void report_print(const struct report *r, unsigned first)
{
	for (unsigned i = first; i < r->n; i++) {
		const struct finding *f = &r->findings[i];

		printf("%-8s %s: %s\n", report_verdict_name(f->verdict), f->check, f->found);
		if (f->cause[0])
			printf("         cause:  %s\n", f->cause);
		if (f->remedy[0])
			printf("         remedy: %s\n", f->remedy);
	}
}

void report_print_sum(const struct report *r)
{
	unsigned warnings = report_count(r, VERDICT_WARNING);
	unsigned failures = report_count(r, VERDICT_FAILURE);

	if (r->cut)
		printf("more was found than these %d lines\n", REPORT_FINDINGS_MAX);
	printf("%u failure%s, %u warning%s\n", failures, failures == 1 ? "" : "s", warnings,
		warnings == 1 ? "" : "s");
}

/* ---- for programs ---------------------------------------------------------------------------- */

json_t *report_text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *finding_json(const struct finding *f, const char *verdict)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "check", f->check, "verdict", verdict,
		"found", f->found, "cause", report_text_or_null(f->cause), "remedy",
		report_text_or_null(f->remedy));
}

json_t *report_findings(const struct report *r, const char *(*name)(enum verdict verdict))
{
	json_t *findings = json_array();

	for (unsigned i = 0; findings && i < r->n; i++)
		if (json_array_append_new(findings,
			    finding_json(&r->findings[i], name(r->findings[i].verdict))) < 0) {
			json_decref(findings);
			return NULL;
		}
	return findings;
}

json_t *report_json(const struct report *r, const char *where)
{
	json_t *findings = report_findings(r, report_verdict_name);
	char host[REPORT_TEXT_BYTES] = "";

	if (where)
		printable_copy(host, sizeof(host), where, strlen(where));
	return json_pack("{s:s, s:o, s:i, s:i, s:b, s:o}", "version", RMEMFS_VERSION, "host",
		report_text_or_null(host), "failures", (int)report_count(r, VERDICT_FAILURE),
		"warnings", (int)report_count(r, VERDICT_WARNING), "cut", r->cut, "findings",
		findings);
}
