/* features.h - checks which features of FUSE the kernel has that the daemon uses. The kernel itself
 * tells: it sends INIT to a filesystem that begins, and this one is mounted nowhere. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_FEATURES_H
#define RMEMFS_DAEMON_CTL_DOCTOR_FEATURES_H

#include <stdint.h>

#include "daemon/ctl/doctor/doctor.h"

/* The offer that the kernel makes to a filesystem that begins. */
struct features_offer {
	int err; /* -errno: it can't be asked */
	uint32_t major, minor;
	uint64_t flags; /* FUSE_INIT's */
};

void features_judge(const struct features_offer *f, struct report *r);

void features_check(struct doctor *d);

#endif
