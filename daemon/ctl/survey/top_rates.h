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

/* The same for the sessions of two statuses of a server. A session that is new counts from 0 on. */
json_t *top_rates_sessions(const json_t *before, const json_t *now, int64_t interval_ms);

#endif
