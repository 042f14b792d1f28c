/* report.h - what the checks of `rmemfsctl doctor` have found, in their order.
 *
 * A check opens a finding by report_found(), and adds its cause and remedy. Each warning and each
 * failure has both; a note may have them. All texts become printable here, since a peer may have
 * written parts of them.
 *
 * OWNERSHIP  A report is one block of memory without pointers to others, so that processes can
 *            share it. Zeros are an empty report.
 * THREADS    One writer at a time.
 */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_REPORT_H
#define RMEMFS_DAEMON_CTL_DOCTOR_REPORT_H

#include <jansson.h>
#include <stdbool.h>

enum verdict {
	VERDICT_OK,
	VERDICT_NOTE,    /* worth knowing, or not looked at, and why */
	VERDICT_UNKNOWN, /* of health: it can't be seen */
	VERDICT_WARNING, /* it works, but slowly, not for all, or not for long */
	VERDICT_FAILURE, /* it does not work */
};

enum { REPORT_TEXT_BYTES = 1024, REPORT_CHECK_BYTES = 16, REPORT_FINDINGS_MAX = 192 };

struct finding {
	enum verdict verdict;
	char check[REPORT_CHECK_BYTES]; /* the word of the check that found it */
	char found[REPORT_TEXT_BYTES];
	char cause[REPORT_TEXT_BYTES];
	char remedy[REPORT_TEXT_BYTES]; /* a command, or a line of a file; "": none */
};

struct report {
	char check[REPORT_CHECK_BYTES]; /* the one that runs */
	unsigned n;
	bool cut;           /* there were more than there is room for */
	enum verdict worst; /* of all, also of those without room */
	struct finding findings[REPORT_FINDINGS_MAX];
};

/* The findings from here on are of this check. */
void report_begin(struct report *r, const char *check);
void report_found(struct report *r, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Both add to the last finding. */
void report_cause(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_remedy(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A word of a remedy that somebody else has chosen, such as a mount point, so that a shell takes it
 * as one word and nothing else. Returns buf. A text that is too long for it becomes "'...'". */
enum { REPORT_QUOTED_BYTES = 320 };
const char *report_quote(const char *text, char buf[REPORT_QUOTED_BYTES]);

unsigned report_count(const struct report *r, enum verdict verdict);
/* "ok", "note", "unknown", "warning", "failure". */
const char *report_verdict_name(enum verdict verdict);

/* Prints the findings from `first` on. */
void report_print(const struct report *r, unsigned first);
/* Prints how many warnings and failures there were. */
void report_print_sum(const struct report *r);
/* An array of the findings, with the names of verdicts that name() gives. The caller drops the
 * reference; NULL: no memory. */
json_t *report_findings(const struct report *r, const char *(*name)(enum verdict verdict));
/* An empty text is null. */
json_t *report_text_or_null(const char *text);
/* The whole report; where NULL: no server was asked for. The caller drops the reference; NULL: no
 * memory. */
json_t *report_json(const struct report *r, const char *where);

#endif
