/* health_mount.h - whether a mount is well, by what its daemon has answered.
 *
 * A pure function of its arguments. See daemon/ctl/doctor/report.h for the findings; a failure is
 * critical here. Findings of a mount begin with its place, or the number of its connection where
 * the answer does not tell the place. Other names that it does not tell are not in them either.
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_HEALTH_MOUNT_H
#define RMEMFS_DAEMON_CTL_SURVEY_HEALTH_MOUNT_H

#include <jansson.h>

#include "daemon/ctl/doctor/report.h"

/* From these times on there is a finding, and from the second one on it is critical. */
enum {
	HEALTH_AWAY_MS = 10000, /* no connection: before, a warning */
	HEALTH_PAUSES = 3,      /* of its daemon, within 5 to 10 minutes */
	HEALTH_LATE_MS = 5000,  /* a request waits */
	HEALTH_HUNG_MS = 60000,
	HEALTH_NO_ROOM_MS = 300000, /* a program was told ENOSPC; up to this time it is a warning */
};

/* mount: of ctl_describe_mount(), printable; "outdated" in its answer is true if the daemon runs a
 * program that was replaced. verbs_device: an RDMA device that leads to the server
 * of a mount that may use verbs and does not; NULL: none, or it was not looked at. */
void health_mount_judge(const json_t *mount, const char *verbs_device, struct report *r);

#endif
