/* places.h - how many channels may be open that have not attached, and which one of them goes.
 *
 * A peer over tcp or verbs that has proven no key needs a place, from its hello until it proves one
 * or attaches: PLACES in all, and PLACES_OF_ADDRESS of one address (IPv6: of a network of 64 bits).
 * So strangers at one address keep none of another address out, and take a bounded amount of
 * memory.
 *
 *     EV_INCOMING ─── a place is free ───────────────────────> accepted
 *         │                                                       ^
 *         └── none is: it waits without an answer to its hello ───┘ a place became free
 *
 * A channel that waits costs a descriptor and 3 KiB. Its client has only sent a hello, and notices
 * nothing. So a whole machine that mounts at once is let in without a single refusal. PLACES_QUEUE
 * may wait, but only a part of the process's descriptors; then the one that has waited longest is
 * refused, or the one of the network that is more than half of the queue. Networks that a client
 * was let in from within a day, and those without any place, go first. Of these, and of the others,
 * the newest does: a crowd that is silent would keep a client behind it for as long as it likes.
 *
 * A client takes its steps at once. While another channel wants its place, a peer has PLACE_MS for
 * each: for its first message, for its flight of the handshake, and to go once it is refused. Then
 * its channel is closed, the oldest first. A step that the server owes does not count, nor an
 * ATTACH that waits.
 *
 * A peer that has proven a key has no place here, and is bounded by UNATTACHED_MAX, as peers over
 * shm are. Each channel has UNATTACHED_MS from its hello to ATTACH in all (session.c).
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_PLACES_H
#define RMEMFS_SERVER_SESSION_PLACES_H

#include "server/session/conn.h"

enum {
	PLACES = 64,
	PLACES_OF_ADDRESS = 16,
	PLACE_MS = 500,
	PLACES_QUEUE = 1024,
	PLACES_QUEUE_SHARE = 8, /* at most one channel waits per so many descriptors */
};

/* Answers EV_INCOMING, now or later. */
void places_incoming(struct port *port, struct channel *ch);

/* Lets in those that wait, as far as there are places. Returns when to call it next in ms; -1: not
 * before something else happens. */
int64_t places_tick(struct server *s, int64_t now);

/* Refuses all that wait: the process is about to end. */
void places_close(struct server *s);

#endif
