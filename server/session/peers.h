/* peers.h - processes of this machine that have our regions mapped, over restarts of the server.
 *
 * A mapping outlives the server that gave it out. So the server writes down each shm peer as an
 * empty file PEERS/SESSION-PID-STARTTIME before the peer gets its first key. It removes the file
 * when the process has ended. A server that starts finds those that still live, and treats their
 * sessions like those with a connection: nothing that they could reach is given to others.
 *
 * OWNERSHIP  server.peers has only peers of earlier runs; those of this run are channels.
 * THREADS    The metadata thread.
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_SESSION_PEERS_H
#define RMEMFS_SERVER_SESSION_PEERS_H

#include <stdbool.h>
#include <stdint.h>

struct server;

int peers_note(struct server *s, uint64_t session, int pid);
void peers_forget(struct server *s, uint64_t session, int pid);

/* Finds the processes that are left of earlier runs, and adds their descriptors to the server's
 * epoll. */
int peers_restore(struct server *s);
void peers_delete(struct server *s);

/* A process has said that it has unmapped all of the session's memory. */
void peers_unmapped(struct server *s, uint64_t session, int pid);

/* Whether a process of an earlier run still has the session's memory mapped. */
bool peers_left(const struct server *s, uint64_t session);
/* Calls fn with their pids. */
void peers_each(
	const struct server *s, uint64_t session, void (*fn)(int pid, void *arg), void *arg);
/* A descriptor of the epoll became readable. */
void peers_event(struct server *s, int fd);

#endif
