/* keys.h - `rmemfsctl keygen` and `rmemfsctl keycheck`: keys of a server and its clients, on this
 * machine alone. Both return an exit status; standard error has the reason of a failure. */
#ifndef RMEMFS_DAEMON_CTL_KEYS_H
#define RMEMFS_DAEMON_CTL_KEYS_H

/* Makes a key for the holder of that name, and tells what to do with it. file: made new, with mode
 * 0600, and on the disk before this returns; after a failure it is gone. NULL: standard output,
 * unless that shows the key to others. */
int ctl_keygen(const char *name, const char *file);

/* Prints id and fingerprint of each key in the file, and each fault of the file. */
int ctl_keycheck(const char *file);

#endif
