/* kernel.h - checks of what a mount needs beside memory: modules of the kernel, /dev/fuse,
 * fusermount3. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_KERNEL_H
#define RMEMFS_DAEMON_CTL_DOCTOR_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/ctl/doctor/doctor.h"

/* Whether what a module brings is there, loaded or built in. */
struct kernel_modules {
	bool fuse, tls;
	bool no_tls; /* this kernel was built without it */
	bool rdma;   /* the kernel has an RDMA device, so it needs the next two */
	bool verbs, cm;
};

struct kernel_fuse {
	int err; /* -errno of opening /dev/fuse to read and write */
	bool there;
	mode_t mode;
	uid_t user; /* the one that asks */
};

struct kernel_fusermount {
	char path[PATH_MAX]; /* "": none in PATH */
	bool set_user_id;    /* root's, and set-user-id */
	bool allow_other;    /* user_allow_other in /etc/fuse.conf */
	uid_t user;
};

void kernel_judge_modules(const struct kernel_modules *modules, struct report *r);
void kernel_judge_fuse(const struct kernel_fuse *fuse, struct report *r);
void kernel_judge_fusermount(const struct kernel_fusermount *fusermount, struct report *r);

void kernel_check_modules(struct doctor *d);
void kernel_check_fuse(struct doctor *d);
void kernel_check_fusermount(struct doctor *d);

#endif
