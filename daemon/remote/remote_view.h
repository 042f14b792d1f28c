/* remote_view.h - the session and the threads' ends of it, as an admin sees them. */
#ifndef RMEMFS_DAEMON_REMOTE_REMOTE_VIEW_H
#define RMEMFS_DAEMON_REMOTE_REMOTE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_thread;
struct session;

struct remote_view {
	bool connected;
	int64_t silent_ms; /* since the server was heard last, as far as the thread ran */
	unsigned rpcs;     /* sent, without an answer */
	uint64_t works;    /* one-sided READs and WRITEs on their way */
};

/* The thread's own. */
void remote_look(const struct io_thread *thread, struct remote_view *view);

struct session_view {
	uint64_t id;         /* its number at the server; 0: another one is being made */
	uint64_t nlosses;    /* of the connection, since it was mounted */
	int64_t down_ms;     /* since when channels are to come back; 0: none is */
	char why[256];       /* of the last loss; "": there was none */
	char again_why[256]; /* why the last attempt to come back has failed; "": it has not */
	char no_verbs[512];  /* transport=auto on tcp: why it is not on verbs; else "" */
	bool lost;           /* the server knows it no more: everything fails with ESTALE */
	bool read_only;
	bool squashed; /* users count as others */
};

/* Any thread. */
void session_look(struct session *s, struct session_view *view);

#endif
