/* doctor.h - `rmemfsctl doctor`: looks at each condition that a server or a mount needs on this
 * machine, and at each step of a connection to a server.
 *
 * doctor.c has the table of checks. A check is one function:
 *
 *     void memory_check_lock(struct doctor *d);
 *
 * It looks (the probe), and hands what it saw to a function that decides (memory_judge_lock). The
 * latter uses nothing but its arguments, so a unit test can have it judge any machine.
 *
 * THREADS    Each check runs in a process of its own, in the order of the table, and is killed when
 *            its time is over. So it may block, leak and crash. It can change nothing but struct
 *            doctor, which these processes share.
 * ERRORS     A check reports what it can't see as a note, with the reason.
 */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_DOCTOR_H
#define RMEMFS_DAEMON_CTL_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "common/transport/address.h"
#include "common/transport/transport.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/doctor/report.h"

enum { DOCTOR_EXPORTS_MAX = 16, DOCTOR_NAME_BYTES = 64 };

/* One transport's way to the server. */
struct doctor_try {
	bool tried;
	int err;         /* 0: the server has answered */
	int64_t wire_ns; /* tcp: what the kernels alone take for a round trip; 0: not known */
	struct ctl_course course;
};

/* A server, as it describes itself. */
struct doctor_seen {
	bool answered;
	bool stranger; /* the versions only */
	char version[32];
	char memory_dir[256]; /* "": not told */
	unsigned nexports;    /* may be more than there is room for */
	struct {
		char name[DOCTOR_NAME_BYTES];
		uint64_t bytes, free;
	} exports[DOCTOR_EXPORTS_MAX];
};

struct doctor {
	const char *where;    /* as the user wrote it; NULL: this machine alone */
	const char *key_file; /* NULL: none */
	struct report report;

	/* Facts that checks have found for later ones. */
	unsigned ndevices; /* RDMA devices that can be used */
	bool resolved;     /* the next three */
	bool named;        /* the user has chosen the transport */
	bool local;        /* an address of this machine */
	struct transport_address address;
	bool routed;
	char interface[ADDRESS_INTERFACE_BYTES]; /* towards the address; "": none, or this machine
						  */
	unsigned mtu;                            /* of that interface */
	bool key_bad;                            /* the file of keys can't be used */
	struct doctor_try tries[TRANSPORT_NKINDS];
	struct doctor_seen seen;
};

/* Prints findings as they come, or as JSON at the end. Returns an exit status: CTL_DOCTOR_WELL and
 * so on (args.h). */
int doctor_run(const char *where, const char *key_file, bool json);

#endif
