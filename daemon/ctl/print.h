/* print.h - a server's status for people: all of it but the quotas; those; what sessions that
 * share have; and who has one file. root: an answer whose strings are printable (ctl_json.h). */
#ifndef RMEMFS_DAEMON_CTL_PRINT_H
#define RMEMFS_DAEMON_CTL_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether it holds no more than strangers are told, which is this. */
bool ctl_is_for_strangers(const json_t *root);
void ctl_print_for_strangers(const json_t *root, int64_t round_trip_ns);

void ctl_print_status(const json_t *root);
void ctl_print_quotas(const json_t *root);
void ctl_print_leases(const json_t *root);
void ctl_print_who(const json_t *root);

#endif
