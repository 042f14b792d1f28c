/* server.h - checks of the connection to a server: the file of keys, each transport with its steps,
 * and which one a mount would take. */
#ifndef RMEMFS_DAEMON_CTL_DOCTOR_SERVER_H
#define RMEMFS_DAEMON_CTL_DOCTOR_SERVER_H

#include <stdbool.h>

#include "common/transport/verbs/inspect.h"
#include "daemon/ctl/doctor/doctor.h"

/* Before the program that listens is asked anything. */
struct server_port {
	int err; /* -errno of connect(2) */
	int64_t wire_ns;
	int pid; /* shm: the process that listens; 0: not known */
	bool stopped;
};

struct server_course {
	enum transport_kind kind;
	char address[160];
	int err; /* 0: the server has answered */
	char why[256];
	char logged[256]; /* the last line of the transport's log; "": none */
	struct server_port port;
	struct verbs_path path; /* verbs */
	int path_err;
	struct ctl_course course;
	/* The verdict if this transport fails. */
	enum verdict without;
};

/* If a transport fails that the user has named, that is a failure. Otherwise it depends on those
 * that were tried before it: with one of them a mount is as well off, or not. */
enum verdict server_verdict_without(const struct doctor *d, enum transport_kind kind);
void server_judge_course(const struct server_course *c, struct report *r);
/* Decides which transport a mount would take. */
void server_judge_transport(const struct doctor *d, struct report *r);

void server_check_key(struct doctor *d);
void server_check_shm(struct doctor *d);
void server_check_verbs(struct doctor *d);
void server_check_tcp(struct doctor *d);
void server_check_transport(struct doctor *d);

#endif
