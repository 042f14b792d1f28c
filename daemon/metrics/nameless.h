/* nameless.h - leaves names of places and people out of what a daemon or a server has answered:
 * mount points, sources, addresses, clients, users, keys, paths.
 *
 * Texts that are to stay are listed, each with its place in the answer. All others become null,
 * also those that later versions add.
 */
#ifndef RMEMFS_DAEMON_METRICS_NAMELESS_H
#define RMEMFS_DAEMON_METRICS_NAMELESS_H

#include <jansson.h>

/* Of ctl_list_mounts()' or configured_list()'s list, or of a server's status. The caller drops the
 * reference; NULL: no memory, or there is no answer. */
json_t *nameless_copy(const json_t *answer);

#endif
