/* ctl_print.h - a server's status for people: all of it but the quotas; those; what sessions that
 * share have; and who has one file. */
#ifndef RMEMFS_DAEMON_CTL_PRINT_H
#define RMEMFS_DAEMON_CTL_PRINT_H

/* -EPROTO: the text is not a status. */
int ctl_print_status(const char *json);
int ctl_print_quotas(const char *json);
int ctl_print_leases(const char *json);
int ctl_print_who(const char *json);

#endif
