/* exit_status.h - exit statuses of rmemfs, as mount(8) expects them of its helpers and passes them
 * on. */
#ifndef RMEMFS_DAEMON_MOUNT_EXIT_STATUS_H
#define RMEMFS_DAEMON_MOUNT_EXIT_STATUS_H

enum mount_status {
	MOUNT_DONE = 0,
	MOUNT_USAGE = 1,   /* wrong options or configuration */
	MOUNT_SYSTEM = 2,  /* no memory, no process */
	MOUNT_FAILED = 32, /* the server or the mount point refused */
	MOUNT_AGAIN = 75,  /* it may succeed later; only in the foreground: else 32. Or a mount has
			    * ended, since its session was lost */
};

#endif
