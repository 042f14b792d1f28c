/* snapshot.h - has a server take a snapshot, and shows how far it is. */
#ifndef RMEMFS_DAEMON_CTL_SNAPSHOT_H
#define RMEMFS_DAEMON_CTL_SNAPSHOT_H

/* An exit status. An interrupt (SIGINT, SIGTERM) cancels the snapshot. dir may be relative to where
 * we are. */
int ctl_snapshot(const char *where, const char *export_name, const char *dir);

#endif
