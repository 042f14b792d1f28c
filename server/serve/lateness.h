/* lateness.h - notices when the metadata thread gets too little CPU, or stood still: all mounts are
 * slow then, and none of them is to blame.
 *
 * It tells the log, once a minute, and the service manager. The status has the figures
 * (server.cpu). A tick of the loop pays two comparisons.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SERVE_LATENESS_H
#define RMEMFS_SERVER_SERVE_LATENESS_H

#include "server/session/context.h"

/* At the beginning of each tick. */
void lateness_tick(struct server *s, int64_t now);
/* At its end: the next one is due then; -1: not before something else happens. */
void lateness_expect(struct server *s, int64_t due_ms);

#endif
