/* process_state.h - whether another process of this machine is stopped. */
#ifndef RMEMFS_COMMON_BASE_PROCESS_STATE_H
#define RMEMFS_COMMON_BASE_PROCESS_STATE_H

#include <stdbool.h>

/* The letter of its state, as ps(1) shows it; 0: it is gone, or hidden from this process. */
char process_state(int pid);
/* By a signal or a debugger. pid 0 is not. */
bool process_state_is_stopped(int pid);

#endif
