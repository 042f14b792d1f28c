/* lost_memory.h - what happens when memory of an export is lost (region_loss.h).
 *
 * The server closes the channels of the export's sessions. The clients come back at once, to the
 * same sessions, and get no key to the lost regions: over each transport what reads or writes there
 * ends by EIO. They still reach the other regions.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_LOST_MEMORY_H
#define RMEMFS_SERVER_SESSION_LOST_MEMORY_H

#include "server/session/context.h"

/* Looks at the regions of all exports once a second while there are sessions, and at once when an
 * access has failed (server.look_ms is 0 then). Returns when to call it next, in now_ms(); -1: when
 * there is a session. */
int64_t lost_memory_tick(struct server *s, int64_t now);
/* Looks at an export's regions now: before a channel gets keys to them. */
void lost_memory_look(struct server *s, struct export *export);

#endif
