/* access_report.h - tells the admin what a table lets whom do.
 *
 * THREADS    One, at the start or for --check-config.
 */
#ifndef RMEMFS_SERVER_ACCESS_ACCESS_REPORT_H
#define RMEMFS_SERVER_ACCESS_ACCESS_REPORT_H

#include <stdio.h>

#include "server/access/access_table.h"

/* A line for each client of each export, with the ids and fingerprints of its keys and the squash
 * of its users; and one for shm. */
void access_report_print(const struct access_table *table, FILE *to);

/* Logs a warning for each pair of an export's clients that have a key in common. If config listens
 * on tcp or verbs also for each export that has no clients, and for each insecure client that may
 * come from any address. */
void access_report_warn(const struct access_table *table, const struct server_config *config);

#endif
