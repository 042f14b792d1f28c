/* memory.h - checks of this machine's memory: the limit on locked memory, the tmpfs for regions,
 * huge pages, NUMA nodes. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_MEMORY_H
#define RMEMFS_DAEMON_CTL_DOCTOR_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ctl/doctor/doctor.h"

/* Limits: UINT64_MAX is none. */
struct memory_lock {
	uint64_t hard;     /* RLIMIT_MEMLOCK; a program may raise its own up to this */
	bool exempt;       /* CAP_IPC_LOCK */
	bool may_raise;    /* CAP_SYS_RESOURCE: a mount lifts the limit itself */
	unsigned ndevices; /* RDMA devices */
	uint64_t mount;    /* bytes that a mount over verbs locks by default */
};

struct memory_room {
	const char *dir;
	int err;        /* -errno: it can't be looked at */
	bool in_memory; /* on tmpfs or hugetlbfs */
	uint64_t bytes, free;
	uint64_t available; /* memory of the machine, without swapping; 0: not known */
};

enum { MEMORY_POOLS_MAX = 8 };

struct memory_huge {
	char enabled[16], shmem[16]; /* the chosen words; "": the kernel has no such file */
	unsigned npools;
	struct {
		uint64_t bytes, total, free; /* of a page; pages */
	} pools[MEMORY_POOLS_MAX];
};

struct memory_nodes {
	char online[64]; /* "0-1"; "": not known */
	unsigned n;
	unsigned ndevices;
	struct {
		char name[64];
		int node; /* -1: not known */
	} devices[8];
};

void memory_judge_lock(const struct memory_lock *lock, struct report *r);
void memory_judge_room(const struct memory_room *room, struct report *r);
void memory_judge_huge(const struct memory_huge *huge, struct report *r);
void memory_judge_nodes(const struct memory_nodes *nodes, struct report *r);

void memory_check_lock(struct doctor *d);
void memory_check_room(struct doctor *d);
void memory_check_huge(struct doctor *d);
void memory_check_nodes(struct doctor *d);

#endif
