/* health_findings.h - the findings of all that was looked at, mounts and servers, from what they
 * have answered. It asks nobody: `rmemfsctl health` and the status page of rmemfs-metrics do.
 *
 * Answers may be without names of places and people: then the findings have none either.
 *
 * OWNERSHIP  Zeros are empty findings. They are one block of memory, too large for a stack.
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_HEALTH_FINDINGS_H
#define RMEMFS_DAEMON_CTL_SURVEY_HEALTH_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/ctl/doctor/report.h"
#include "daemon/ctl/survey/health_server.h"

struct health_findings {
	struct report report;
	unsigned nmounts, nservers; /* that were looked at */
	size_t nexports;
};

/* As health_mount_judge(). */
void health_findings_mount(
	struct health_findings *f, const json_t *mount, const char *verbs_device);
/* Nothing is mounted at that place. */
void health_findings_unmounted(struct health_findings *f, const char *where);
/* -errno of the list of mounts. */
void health_findings_unlisted(struct health_findings *f, int err);

/* where: the server, as it was asked; NULL: this machine's. status: printable; NULL: it was
 * malformed. */
void health_findings_server(struct health_findings *f, const char *where, const json_t *status,
	const struct health_terms *terms);
/* forbidden: nothing is known of the server, since it could not be asked. */
void health_findings_unanswered(
	struct health_findings *f, const char *where, bool forbidden, const char *why);

/* As services_judge(): what is configured to run here, and does not. */
void health_findings_configured(struct health_findings *f, const json_t *list, int err);

/* This machine's server, which nobody has named, may not be asked: a note beside mounts that were
 * looked at, so that these have an answer. Call it after the mounts. */
void health_findings_hidden(struct health_findings *f, const char *why);

/* After all others, when this whole machine was looked at: says if there is nothing to look at. */
void health_findings_complete(struct health_findings *f);
/* The worst first, and else in the order in which they were found. */
void health_findings_sort(struct health_findings *f);
/* Of all of them. A note asks for nothing. */
enum verdict health_findings_verdict(const struct health_findings *f);
/* "ok", "note", "unknown", "warning", "critical". */
const char *health_findings_name(enum verdict verdict);

#endif
