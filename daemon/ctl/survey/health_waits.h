/* health_waits.h - for whom the clients of a server wait: the server itself, a client that gives
 * nothing back, one that loses its connection, or one whose key is refused.
 *
 * A pure function of its arguments, as health_server.h. Nobody is blamed for what the server does
 * not know, and a process is to be killed or continued only if it is known to be stopped.
 */
#ifndef RMEMFS_DAEMON_CTL_SURVEY_HEALTH_WAITS_H
#define RMEMFS_DAEMON_CTL_SURVEY_HEALTH_WAITS_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/ctl/doctor/report.h"

/* Within the last 5 to 10 minutes: files given back late, and lost connections. A key that was
 * refused lately. */
enum { HEALTH_LATE_RECALLS = 3, HEALTH_RECONNECTS = 3, HEALTH_REFUSED_MS = 60000 };

#define HEALTH_KEY_REMEDY                                                                        \
	"compare the fingerprints of both files by rmemfsctl keycheck, and copy the server's "   \
	"file over the client's; if the server's file is the newer one and was not read since: " \
	"rmemfsctl reload"
#define HEALTH_UNSTEADY_REMEDY "on its machine: rmemfsctl doctor HOST checks the path and its MTU"

enum { HEALTH_CAUSE_CHARS = 128 };
/* A session without a connection whose key was refused lately: true, and the cause. */
bool health_waits_key_is_refused(
	const json_t *status, const json_t *session, char *cause, size_t len);

/* An entry of the refused keys: whether the server has another key of that id, or a session by it.
 * Others may be anybody. */
bool health_waits_is_of_client(const json_t *status, const json_t *refusal);

/* The server itself gets too little CPU. */
void health_waits_judge_cpu(const json_t *status, struct report *r);
/* Others wait for a file now. */
void health_waits_judge_export(const json_t *export, const json_t *status, struct report *r);
/* Faults that come again and again, and refused keys. */
void health_waits_judge_server(const json_t *status, struct report *r);

#endif
