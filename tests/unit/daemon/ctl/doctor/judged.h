/* judged.h - what a judgement has found, for the tests of rmemfsctl doctor. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ctl/doctor/report.h"

static struct report judged;

/* Begins a new report. */
static inline struct report *judge_anew(void)
{
	memset(&judged, 0, sizeof(judged));
	report_begin(&judged, "test");
	return &judged;
}

/* Each warning and failure has a cause and a remedy. */
static inline void assert_all_explained(void)
{
	for (unsigned i = 0; i < judged.n; i++) {
		const struct finding *f = &judged.findings[i];

		if (f->verdict < VERDICT_WARNING)
			continue;
		assert_string_not_equal(f->cause, "");
		assert_string_not_equal(f->remedy, "");
	}
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not say '%s'", text, part);
}

/* There is one finding, with these words. remedy NULL: it is not looked at. */
static inline void assert_judged(enum verdict verdict, const char *found, const char *remedy)
{
	assert_int_equal(judged.n, 1);
	assert_has(judged.findings[0].found, found);
	assert_string_equal(
		report_verdict_name(judged.findings[0].verdict), report_verdict_name(verdict));
	if (remedy)
		assert_has(judged.findings[0].remedy, remedy);
	assert_all_explained();
}

/* Among others there is one finding of that verdict, with these words. */
static inline void assert_among(enum verdict verdict, const char *found, const char *remedy)
{
	for (unsigned i = 0; i < judged.n; i++) {
		const struct finding *f = &judged.findings[i];

		if (f->verdict != verdict || !strstr(f->found, found))
			continue;
		if (remedy)
			assert_has(f->remedy, remedy);
		assert_all_explained();
		return;
	}
	fail_msg("no %s says '%s'", report_verdict_name(verdict), found);
}
