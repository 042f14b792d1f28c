/* revival.h - if a daemon of a service is killed, the next one goes on with its mount
 * (handover/revive.h, record/record.h).
 *
 * The daemon gives the service manager what must not end with it: the descriptors of the kernel's
 * connection, the record, and the owner's name. Its guard leaves the connection alone then
 * (connection_guard.h). The manager starts the program again, with these descriptors.
 *
 *     the daemon                                   its successor
 *     revival_prepare   a record, if all allows it
 *     (mounts, INIT)                               revival_find
 *     revival_keep      the manager has all        revival_run
 *     ... killed                        ──────>    (serves)
 *     revival_end       an orderly end
 *
 * A mount can be revived with -o revive, in the foreground under a service manager, if it does not
 * share, is not cache=exclusive, and the kernel sends unanswered requests again
 * (fs_features.resend). One that may share when another one comes can be revived while it is alone
 * and may write. If anything of it fails, the connection is aborted: programs get ENOTCONN, and the
 * next start mounts anew.
 *
 * THREADS    main.
 */
#ifndef RMEMFS_DAEMON_MOUNT_REVIVAL_H
#define RMEMFS_DAEMON_MOUNT_REVIVAL_H

#include "daemon/mount/daemon.h"
#include "daemon/request/io_thread.h"

enum {
	REVIVAL_SETTLE_MS = 15000, /* for the server, once the first channel is attached */
	/* After so many within that time, each with fewer requests to the server, it is given up.
	 */
	REVIVALS_MAX = 3,
	REVIVALS_MS = 60000,
	REVIVALS_REQUESTS = 50,
};

/* The descriptors that the service manager has given this process. */
struct found {
	struct record *record; /* NULL: there is nothing to revive */
	int connection[IO_THREADS_MAX + 1];
	unsigned nconnection;
	int owner; /* -1: none */
	const struct options *options;
};

/* After daemon_open(), and before the session connects. service: there is a manager, or will be. */
void revival_prepare(struct daemon *d, const struct options *options, bool service);
/* The filesystem is closed, and another try to mount follows. */
void revival_forget(struct daemon *d);
/* After INIT: a kernel that does not send again needs no record. The log has the reason. */
void revival_consider(struct daemon *d, const struct options *options);
/* The threads run, or are about to. If it fails, the mount goes on without. */
void revival_keep(struct daemon *d, const char *asked);
/* An orderly end, or another daemon takes the mount: nobody is to revive it. */
void revival_end(struct daemon *d);

/* The descriptors, which are closed where they are of no use: a mount that has ended, another
 * place, options that do not allow it. The connection is aborted then. */
void revival_find(struct found *found, const struct options *options);
/* This process has the mount and serves it when it returns. After an error the process has to end:
 * the connection was aborted. */
int revival_run(struct daemon *d, struct options *options, struct found *found);

#endif
