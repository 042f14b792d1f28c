/* give_over.h - a daemon hands its mount over to another one (handover/talk.h), and ends. If that
 * fails at any point, it goes on.
 *
 *     give_over_begin      a new daemon has asked: it is told what it needs to prepare itself
 *     (the mount goes on)
 *     give_over_finish     it is ready. Ends the process, or has the mount go on
 *
 * THREADS    main. give_over_finish() blocks for some seconds at most, while the mount stands.
 */
#ifndef RMEMFS_DAEMON_MOUNT_GIVE_OVER_H
#define RMEMFS_DAEMON_MOUNT_GIVE_OVER_H

#include "daemon/mount/daemon.h"

/* control_offer_fd() is readable. Sets daemon.taker, unless the hand-over is refused. */
void give_over_begin(struct daemon *d);
/* daemon.taker is readable. */
void give_over_finish(struct daemon *d);
/* The new daemon is told that the mount stays, and why. */
void give_over_refuse(struct daemon *d, const char *why);

#endif
