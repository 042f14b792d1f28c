/* top.h - `rmemfsctl top`: what the mounts of this machine and the sessions of its server do, as
 * rates of an interval of a second. */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_TOP_H
#define RMEMFS_DAEMON_CTL_SURVEY_TOP_H

#include <stdbool.h>

/* once: one interval; also if standard output is no terminal. Else until a signal ends the program.
 * Returns an exit status. */
int top_run(bool once, bool json);

#endif
