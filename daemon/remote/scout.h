/* scout.h - a thread that looks for a better transport, and for one that works (paths.h).
 *
 *     session on   looks                                 and changes
 *     tcp          a while after a loss, each minute     to verbs, if a device has a route there,
 *                                                        and the server answers over it
 *     verbs        while channels are down               to tcp, if the server answers there, and
 *                                                        verbs leads nowhere, gives no session, or
 *                                                        loses channel after channel
 *
 * To look is to open the device, and to make a connection that asks nothing: what may block does so
 * here, and never an I/O thread. Before a change to verbs the scout also registers the buffers.
 *
 * THREADS    scout_start() when the I/O threads run, scout_stop() when they have ended: main.
 *            scout_look_now(), scout_channel_lost(): any; they do not block.
 */
#ifndef RMEMFS_DAEMON_REMOTE_SCOUT_H
#define RMEMFS_DAEMON_REMOTE_SCOUT_H

#include "daemon/remote/session_options.h"

struct session;

/* Tells all that is known of verbs, for a process that takes the session over: any thread. */
void scout_describe(struct session *s, struct session_verbs *verbs);
/* Goes on with that; before scout_start(). */
void scout_take(struct session *s, const struct session_verbs *verbs);

/* Does nothing for a session that keeps its transport. Without a thread it does so, too: logged. */
void scout_start(struct session *s);
/* Harmless where none was started. */
void scout_stop(struct session *s);

/* A channel is missing, is back, or was refused. However often this comes, the scout looks a second
 * later. */
void scout_look_now(struct session *s);
/* A channel that was ready was lost. */
void scout_channel_lost(struct session *s);

#endif
