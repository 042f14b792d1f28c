/* caller.h - what is known of the process that a request came from, but for what the request says.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_CALLER_H
#define RMEMFS_DAEMON_CALLER_H

#include <stdbool.h>
#include <stdint.h>

struct request;

/* By the group of its own, or one of its others, which only /proc tells: not for the data path.
 * What can't be known, of another PID namespace's process or one that has ended, is no membership.
 */
bool caller_in_group(const struct request *req, uint32_t gid);

#endif
