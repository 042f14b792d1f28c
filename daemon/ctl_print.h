/* ctl_print.h - a server's status for people. */
#ifndef RMEMFS_DAEMON_CTL_PRINT_H
#define RMEMFS_DAEMON_CTL_PRINT_H

/* -EPROTO: the text is not a status. */
int ctl_print_status(const char *json);

#endif
