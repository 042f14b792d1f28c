/* owner.h - who this client is to a server: the machine and the place of the mount. The same after
 * a restart of the daemon, so that a remount supersedes the session that a killed one left behind.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_OWNER_H
#define RMEMFS_DAEMON_OWNER_H

#include <stdint.h>

#include "common/types.h"

void owner_id(const char *mountpoint, uint8_t out[OWNER_BYTES]);

#endif
