/* gather.h - `rmemfsctl report`: one text with all that somebody needs to know who is to find the
 * cause of a fault: versions, configuration, limits, devices, mounts, server, logs.
 *
 * Each section is a function or a command in a process of its own, which is killed when its time is
 * over, and has a limit on its size. A section that fails says so in its place. Nothing touches a
 * mount. Secrets are left out (redact.h), and all text is printable.
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_GATHER_H
#define RMEMFS_DAEMON_CTL_SURVEY_GATHER_H

/* file: a new file, which is made; NULL: standard output. Returns an exit status: 1 if the text
 * could not be written. */
int gather_run(const char *file);

#endif
