/* scout.h - a thread that looks for a better transport, and for one that works (paths.h).
 *
 *     session on   looks                                 and changes
 *     tcp          a while after a loss, each minute     to verbs, if a device has a route there
 * and the server answers over it verbs        while channels are down               to tcp, if the
 * server answers there and not over verbs; or if verbs connects, but gives no session
 *
 * To look is to open the device, and to make a connection that asks nothing: what may block does so
 * here, and never an I/O thread. Before a change to verbs the scout also registers the buffers.
 *
 * THREADS    scout_start() when the I/O threads run, scout_stop() when they have ended: main.
 *            scout_look_now(): any; it does not block.
 */
#ifndef RMEMFS_DAEMON_REMOTE_SCOUT_H
#define RMEMFS_DAEMON_REMOTE_SCOUT_H

struct session;

/* Does nothing for a session that keeps its transport. Without a thread it does so, too: logged. */
void scout_start(struct session *s);
/* Harmless where none was started. */
void scout_stop(struct session *s);

/* A channel was lost, or is back. */
void scout_look_now(struct session *s);

#endif
