/* ctl_print.h - a server's status for people: all of it but the quotas; those; what sessions that
 * share have; and who has one file. root: an answer whose strings are printable (ctl_json.h). */
#ifndef RMEMFS_DAEMON_CTL_PRINT_H
#define RMEMFS_DAEMON_CTL_PRINT_H

#include <jansson.h>

void ctl_print_status(const json_t *root);
void ctl_print_quotas(const json_t *root);
void ctl_print_leases(const json_t *root);
void ctl_print_who(const json_t *root);

#endif
