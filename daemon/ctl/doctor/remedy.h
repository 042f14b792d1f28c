/* remedy.h - remedies that several findings have, so that they say the same. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_REMEDY_H
#define RMEMFS_DAEMON_CTL_DOCTOR_REMEDY_H

/* Of an export whose memory is nearly used up. */
#define REMEDY_MEMORY                                                                            \
	"remove files; or enlarge it under its mounts: on the server make room first, by "       \
	"mount -o remount,size=SIZE /dev/shm; then raise the export's size in server.conf, and " \
	"systemctl reload rmemfs-server"
/* Of one whose metadata is. */
#define REMEDY_METADATA                                                                            \
	"remove files; or on the server make room in /dev/shm first, raise the export's metadata " \
	"or metadata_reserve in server.conf, and systemctl reload rmemfs-server"

#endif
