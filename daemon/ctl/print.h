/* print.h - a server's status for people: all of it but the quotas; the quotas; the state of
 * sharing sessions; and the users of one file. root: an answer whose strings are printable
 * (json.h). */
#ifndef RMEMFS_DAEMON_CTL_PRINT_H
#define RMEMFS_DAEMON_CTL_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the client that asked may see its own mounts alone at each export. */
bool ctl_is_for_mounts(const json_t *root);
/* Whether the answer holds no more than strangers are told; the next function prints that. */
bool ctl_is_for_strangers(const json_t *root);
void ctl_print_for_strangers(const json_t *root, int64_t round_trip_ns);

void ctl_print_status(const json_t *root);
void ctl_print_quotas(const json_t *root);
void ctl_print_leases(const json_t *root);
void ctl_print_who(const json_t *root);

#endif
