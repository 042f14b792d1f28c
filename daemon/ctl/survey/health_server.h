/* health_server.h - whether a server is well, by the status that it has answered.
 *
 * A pure function of its arguments. See daemon/ctl/doctor/report.h for the findings; a failure is
 * critical here. Lists have any length, so of each kind the worst gets a finding, with the number
 * of the others. Clients, owners and directories that the status does not tell, or has as null, are
 * not in the findings.
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_HEALTH_SERVER_H
#define RMEMFS_DAEMON_CTL_SURVEY_HEALTH_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/ctl/doctor/report.h"

/* Shares in use of memory, metadata and inodes, in percent: a note, a warning, critical. Of a
 * quota a warning. */
enum { HEALTH_NOTED = 80, HEALTH_NEAR = 90, HEALTH_FULL = 95, HEALTH_QUOTA = 90 };

/* A client gives a sign of life once a second. Others wait for a file: a warning; critical from
 * twice the lease time on, since the server ends a client that does not give back in that time. */
enum { HEALTH_SILENT_MS = 5000, HEALTH_RECALL_MS = 2000 };

/* A key that no client has used for so long is a note. */
enum { HEALTH_KEY_DAYS = 30 };

struct health_terms {
	int64_t now_s;         /* since 1970 */
	unsigned snapshot_max; /* hours since the last snapshot; 0: any number */
};

/* Whether an entry of the status's keys has not been used for so long. */
bool health_server_key_is_unused(const json_t *key);

/* status: printable, and not that for strangers. */
void health_server_judge(const json_t *status, const struct health_terms *terms, struct report *r);

#endif
