/* mounts_probe.h - finds the mounts of rmemfs in all namespaces, and their daemons, in /proc. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_MOUNTS_PROBE_H
#define RMEMFS_DAEMON_CTL_DOCTOR_MOUNTS_PROBE_H

#include "daemon/ctl/doctor/mounts.h"

/* -ENOENT: /proc does not show processes. */
int mounts_probe(struct mounts_seen *seen);

#endif
