/* daemon.h - the parts of a mount's process, in the order in which they are made and undone.
 *
 *     daemon_set_options -> daemon_prepare -> daemon_open -> (session, port) -> io_threads_start ->
 *     daemon_can_be_asked -> ... -> daemon_close -> daemon_leave
 *
 * main.c mounts with them, and take_over.c takes a mount over that is there.
 *
 * THREADS    main.
 * ERRORS     0 or -errno with a line in daemon.why.
 */
#ifndef RMEMFS_DAEMON_MOUNT_DAEMON_H
#define RMEMFS_DAEMON_MOUNT_DAEMON_H

#include <signal.h>
#include <stdbool.h>

#include "daemon/mount/connection_guard.h"
#include "daemon/mount/options.h"
#include "daemon/op/fs_options.h"

enum { DAEMON_WHY_BYTES = 1000 }; /* and a line of background.c's */

struct control;
struct fs;
struct fuse_port;
struct io_threads;
struct record;

struct daemon {
	int argc; /* of the command line that the mount was made by */
	char *const *argv;
	struct fs_options fs_options;
	struct fs *fs;
	struct io_threads *threads;
	struct fuse_port *port;
	struct survivor survivor;
	unsigned connection; /* the kernel's number; 0: not known */
	struct control *control;
	sigset_t signals;
	int signal_fd;
	int report;     /* -1: in the foreground */
	int latency_fd; /* -1: not held */
	int taker;      /* give_over.h: a daemon that prepares to take the mount over; -1: none */
	int64_t taker_until_ms;
	/* revival.h. record: NULL: the mount can't be revived. kept: the service manager has the
	 * descriptors. */
	struct record *record;
	bool kept;
	bool told_waiting, told_stopping;
	bool lost; /* it ends since the session is lost */
	char why[DAEMON_WHY_BYTES];
};

void daemon_init(struct daemon *d, int argc, char *const *argv);
void daemon_set_options(struct fs_options *fs, const struct options *options);

/* Signals come by signal_fd from now on; rights that are not needed go; the guard is there. */
int daemon_prepare(struct daemon *d);
/* Undoes it. */
void daemon_leave(struct daemon *d);

/* Transport, filesystem, threads that do not run yet, registered buffers. */
int daemon_open(struct daemon *d, const struct options *options);
/* The threads have ended, or did not run. */
void daemon_close(struct daemon *d);

/* The connection to the kernel is there: it ends with this process. */
void daemon_watch(struct daemon *d);
/* rmemfsctl can ask it. */
void daemon_can_be_asked(struct daemon *d, const struct options *options);

void daemon_keep_awake(struct daemon *d, const struct options *options);
/* The CPUs may sleep again. */
void daemon_let_sleep(struct daemon *d);

#endif
