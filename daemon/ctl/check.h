/* check.h - `rmemfsctl check`: rmemfs-server knows its memory directory, and checks it. */
#ifndef RMEMFS_DAEMON_CTL_CHECK_H
#define RMEMFS_DAEMON_CTL_CHECK_H

/* Exit status: the check could not run. */
enum { CTL_CHECK_IMPOSSIBLE = 2 };

/* Becomes `rmemfs-server --check dir`: the program that is installed with this one, or else the one
 * in PATH. If there is none, says so and returns an exit status. */
int ctl_check(const char *dir);

/* Becomes a program of ours: the one that is installed with this one, or else the one in PATH.
 * Returns only if there is none, with errno. */
void ctl_exec_installed(const char *program, char *const argv[]);

#endif
