/* own_mounts.h - mounts that no other process sees. */
#pragma once

#include <mntent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

/* Gives this process a mount namespace of its own, and unmounts all copies of rmemfs mounts there:
 * a copy would keep a mount alive after its owner has unmounted it. False with errno set. */
static inline bool own_mounts(void)
{
	const struct mntent *m;
	FILE *f;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	f = setmntent("/proc/self/mounts", "re");
	if (!f)
		return false;
	while ((m = getmntent(f)))
		if (strcmp(m->mnt_type, "fuse.rmemfs") == 0)
			umount2(m->mnt_dir, MNT_DETACH);
	endmntent(f);
	return true;
}
