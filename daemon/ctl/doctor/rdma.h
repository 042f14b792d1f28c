/* rdma.h - checks of this machine's RDMA devices. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_RDMA_H
#define RMEMFS_DAEMON_CTL_DOCTOR_RDMA_H

#include "common/transport/verbs/inspect.h"
#include "daemon/ctl/doctor/doctor.h"

struct rdma_seen {
	int err;        /* -errno: the devices can't be listed */
	unsigned n;     /* of all */
	unsigned nheld; /* of those below */
	struct verbs_device devices[VERBS_DEVICES_MAX];
	unsigned nkernel; /* devices that the kernel has, whether a program can use them or not */
	/* Of each port: its network interface; "": none or not known. */
	char interfaces[VERBS_DEVICES_MAX][VERBS_PORTS_MAX][16];
};

/* Returns the number of devices that rmemfs can use. */
unsigned rdma_judge(const struct rdma_seen *seen, struct report *r);

void rdma_check(struct doctor *d);

#endif
