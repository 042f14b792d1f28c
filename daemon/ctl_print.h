/* ctl_print.h - a server's status for people: all of it but the quotas, and those. */
#ifndef RMEMFS_DAEMON_CTL_PRINT_H
#define RMEMFS_DAEMON_CTL_PRINT_H

/* -EPROTO: the text is not a status. */
int ctl_print_status(const char *json);
int ctl_print_quotas(const char *json);

#endif
