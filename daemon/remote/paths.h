/* paths.h - the transports that lead to the server, and the one that the session uses.
 *
 * With transport=auto a session that is not on shm changes between tcp and verbs while it runs.
 * scout.h decides when; a thread finds out by its tick, deletes its channel and its event queue,
 * and makes others. Nothing but the path distinguishes that from a lost connection: ATTACH is
 * answered when the server has fenced the old channel, RPCs are sent again in their slots, and
 * transfers are repeated. Threads need not change at once.
 *
 *     tcp is open from the beginning to the end of such a session, and all buffers are registered
 *     with it. verbs is open only while it is used, or tried.
 *
 * THREADS    paths_open and paths_close, paths_register and paths_deregister: while no other
 *            thread uses the session. paths_enter, paths_leave, paths_left_behind, paths_refused:
 *            the I/O thread. The others: the scout, or before it starts.
 * ERRORS     0 or -errno; why gets one line for people.
 */
#ifndef RMEMFS_DAEMON_REMOTE_PATHS_H
#define RMEMFS_DAEMON_REMOTE_PATHS_H

#include "daemon/remote/session_private.h"

struct remote;

/* Errors of pick_transport(). */
int paths_open(struct session *s, const struct session_options *options,
	const struct transport_config *config, char *why, size_t whylen);
void paths_close(struct session *s);

/* A thread's buffers, for all paths. Errors of buffer_register(). */
int paths_register(struct session *s, void *addr, size_t len, struct buffer **out);
void paths_deregister(struct session *s, struct buffer *b);

/* Lowers limits to those of works that can go over either path. */
void paths_limit(const struct session *s, struct io_limits *limits);
/* Whether a channel with these limits can carry what is planned for any of the session. Any thread,
 * after the first ATTACH. */
bool paths_limits_suffice(const struct session *s, const struct channel_limits *limits);

/* Without a channel: gives the thread an event queue of the path in use, unless it has one. */
int paths_enter(struct remote *r);
void paths_leave(struct remote *r);
/* The thread has a channel, which is not on the path in use. */
bool paths_left_behind(const struct remote *r);
/* The export takes no session over verbs: it demands more protection. */
void paths_refused(struct remote *r, const char *why);

/* Opens verbs. */
int paths_try_verbs(struct session *s, char *why, size_t whylen);
/* Registers all buffers with verbs, too. */
int paths_register_verbs(struct session *s, char *why, size_t whylen);
/* Closes verbs, if no thread uses it, nor is to. */
void paths_close_verbs(struct session *s);
/* Keeps why the session is not on verbs. */
void paths_say_no_verbs(struct session *s, const char *why);
/* From now on this path is used, which is open. Logged. why: of the change to tcp. */
void paths_move(struct session *s, enum transport_kind kind, const char *why);

#endif
