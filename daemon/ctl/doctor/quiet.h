/* quiet.h - for checks that use libraries which write to standard error. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_QUIET_H
#define RMEMFS_DAEMON_CTL_DOCTOR_QUIET_H

/* From now on nothing of this process is seen on standard error. A check's process is its own. */
void quiet_begin(void);
/* The last line that this process has logged since; "": none. */
const char *quiet_logged(void);

#endif
