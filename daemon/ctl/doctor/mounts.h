/* mounts.h - checks of the mounts of rmemfs on this machine: whose daemon is gone or stopped, and
 * which one lives on though its daemon's namespace has it no more.
 *
 * Nothing here touches a mount: a request to a daemon that is stopped would wait for ever. The
 * facts come from /proc: each namespace's mountinfo, and the processes that have /dev/fuse open.
 * Since 6.16 Linux tells which connection such a descriptor has. Before, and of other users'
 * processes, the daemon's command line has to name the mount point.
 */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_MOUNTS_H
#define RMEMFS_DAEMON_CTL_DOCTOR_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/ctl/doctor/doctor.h"

enum { MOUNTS_MAX = 64, MOUNTS_DIR_BYTES = 4096 };

/* A mount of rmemfs in one namespace. */
struct mounts_place {
	unsigned connection; /* minor number of its device */
	ino_t namespace;
	bool own;        /* the namespace of this process */
	int64_t waiting; /* requests that have no answer; -1: not known */
	bool spreads;    /* an unmount passes to or from other namespaces */
	int pid;         /* a process in the namespace */
	char dir[MOUNTS_DIR_BYTES], source[128], process[32];
};

/* A process that serves a mount. */
struct mounts_daemon {
	int pid;
	int connection;  /* -1: the kernel does not tell */
	ino_t namespace; /* 0: not known */
	bool stopped;
	char dir[MOUNTS_DIR_BYTES]; /* the mount point on its command line; "": not found */
	char process[32];
};

struct mounts_seen {
	bool root;      /* this process is of root */
	bool partial;   /* there may be processes that /proc does not show: this is a container */
	unsigned blind; /* processes whose namespace can't be seen */
	unsigned nplaces, ndaemons;
	struct mounts_place places[MOUNTS_MAX];
	struct mounts_daemon daemons[MOUNTS_MAX];
};

/* The mounts that this process sees. */
void mounts_judge_here(const struct mounts_seen *seen, struct report *r);
/* Mounts that other namespaces have. */
void mounts_judge_elsewhere(const struct mounts_seen *seen, struct report *r);

void mounts_check_here(struct doctor *d);
void mounts_check_elsewhere(struct doctor *d);

#endif
