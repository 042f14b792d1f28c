/* snapshot.h - has a server take a snapshot, and shows how far it is. */
#ifndef RMEMFS_DAEMON_CTL_SNAPSHOT_H
#define RMEMFS_DAEMON_CTL_SNAPSHOT_H

/* Returns an exit status. An interrupt (SIGINT, SIGTERM) cancels the snapshot. dir may be relative
 * to the working directory. */
int ctl_snapshot(const char *where, const char *export_name, const char *dir);

#endif
