/* top_rates.h - what mounts and sessions did between two samples: rates, and times of that interval
 * alone.
 *
 * Pure functions of JSON. All strings of the samples are printable (json.h).
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_TOP_RATES_H
#define RMEMFS_DAEMON_CTL_SURVEY_TOP_RATES_H

#include <jansson.h>
#include <stdint.h>

/* Lists of ctl_list_own_mounts(). The result has an object for each mount of `now`; its numbers are
 * null for one that has not answered, or that `before` has not. The caller drops the reference. */
json_t *top_rates_mounts(const json_t *before, const json_t *now, int64_t interval_ms);

/* The same of all these mounts together, as one object: the same numbers, and in "reads" and
 * "writes" those of the operations read and write alone. The numbers are null if no mount could be
 * compared. */
json_t *top_rates_all(const json_t *before, const json_t *now, int64_t interval_ms);

/* The same for the sessions of two statuses of a server. A session that is new counts from 0 on. */
json_t *top_rates_sessions(const json_t *before, const json_t *now, int64_t interval_ms);

/* The same for the exports of two statuses: "name", "reads", "writes", "read_bytes", "write_bytes",
 * "rpcs". A server that was started meanwhile counts from 0 on. The numbers are null for an export
 * that `before` has not. */
json_t *top_rates_exports(const json_t *before, const json_t *now, int64_t interval_ms);

#endif
