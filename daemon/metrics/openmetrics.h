/* openmetrics.h - the state of mounts and of a server as OpenMetrics 1.0 text: families of samples,
 * each family with its type and a line of help, and "# EOF" at the end.
 *
 * SOURCE     https://github.com/prometheus/OpenMetrics, specification 1.0
 */
#ifndef RMEMFS_DAEMON_METRICS_OPENMETRICS_H
#define RMEMFS_DAEMON_METRICS_OPENMETRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* mounts: ctl_list_mounts()' list. hidden: how many more mounts there are that this user may not
 * ask. missing: how many are configured, and not there. server: the whole status of a server, or
 * NULL: there is none. server_wanted: there should be one. details: with places and sources of
 * mounts. */
struct observed {
	const json_t *mounts, *server;
	unsigned hidden, missing;
	bool server_wanted, details;
};

void openmetrics_write(FILE *out, const struct observed *seen);

#endif
