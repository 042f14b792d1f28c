/* services.h - the check of what is configured to run on this machine, and does not.
 *
 * See doctor.h for the way of a check. services_judge() decides, for `rmemfsctl health` and the
 * status page of rmemfs-metrics, too.
 */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_SERVICES_H
#define RMEMFS_DAEMON_CTL_DOCTOR_SERVICES_H

#include <jansson.h>

#include "daemon/ctl/doctor/doctor.h"

void services_check(struct doctor *d);

/* list: of configured_list(), printable. Names and states of units may be null: they are not told
 * then. err: of that list. No finding: all runs. */
void services_judge(const json_t *list, int err, struct report *r);

#endif
