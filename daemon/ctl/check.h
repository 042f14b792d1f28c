/* check.h - `rmemfsctl check`: rmemfs-server knows its memory directory, and checks it. */
#ifndef RMEMFS_DAEMON_CTL_CHECK_H
#define RMEMFS_DAEMON_CTL_CHECK_H

/* Exit status: it could not be checked. */
enum { CTL_CHECK_IMPOSSIBLE = 2 };

/* Becomes `rmemfs-server --check dir`: the program that is installed with this one, else the one in
 * PATH. Returns an exit status where there is none, after saying so. */
int ctl_check(const char *dir);

#endif
