/* process_state.h - whether another process of this machine is stopped, or runs a former program. */
#ifndef RMEMFS_COMMON_BASE_PROCESS_STATE_H
#define RMEMFS_COMMON_BASE_PROCESS_STATE_H

#include <stdbool.h>

/* The letter of its state, as ps(1) shows it; 0: it is gone, or hidden from this process. */
char process_state(int pid);
/* By a signal or a debugger. pid 0 is not. */
bool process_state_is_stopped(int pid);
/* The file of its program was replaced or removed since it began, as by an upgrade of a package.
 * False where this process may not look. */
bool process_state_is_outdated(int pid);

#endif
