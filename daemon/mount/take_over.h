/* take_over.h - a daemon takes a mount over that another one has (handover/talk.h).
 *
 *     rmemfs --take-over MOUNTPOINT
 *
 * rmemfsctl upgrade runs it so. It is told the command line of the other daemon, and reads the
 * configuration anew. All that the kernel and the server were told once stays: share, cache,
 * io_threads, and where the server is.
 *
 * ERRORS     After an error the process has to end at once, and undo nothing: the mount and the
 *            session are the other daemon's. daemon.why has a line.
 */
#ifndef RMEMFS_DAEMON_MOUNT_TAKE_OVER_H
#define RMEMFS_DAEMON_MOUNT_TAKE_OVER_H

#include "daemon/handover/offer.h"
#include "daemon/mount/daemon.h"

struct take_over {
	struct offer offer; /* has the strings of options */
	int talk, old;      /* the stream; the other daemon's pidfd */
	int old_pid;
	bool kept; /* if the other daemon is killed, its service's next one goes on (revival.h) */
	unsigned connection; /* the kernel's number of the mount that was asked for */
};

/* Asks the daemon of the mount at `mountpoint` (absolute, without links), which has to be of this
 * process's user, and parses the options that it has. *options is for options_fini() in each case.
 */
int take_over_ask(
	struct take_over *t, const char *mountpoint, struct daemon *d, struct options *options);
/* Takes all of it. This process has the mount and serves it when it returns. */
int take_over_run(struct take_over *t, struct daemon *d, const struct options *options);
/* After an error, before the process ends: the other daemon's log gets the reason. */
void take_over_give_up(struct take_over *t, const char *why);
/* Waits until the other daemon has told the service manager of this one, and speaks to it then. */
void take_over_service(struct take_over *t, struct daemon *d, const struct options *options);

#endif
