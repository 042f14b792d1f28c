/* attach.h - ATTACH: who gets a session at an export, and which channels are whose.
 *
 * Any number of sessions may read an export that nobody writes. Any number that take leases
 * (ATTACH_SHARED) may be at one export, reading or writing, and no others beside them. Else one
 * that writes has the export for itself. An ATTACH waits for all that are in its way. Those that
 * nobody has heard of for a lease's time are ended if that lets it in. Refusals: -EBUSY; -EUSERS,
 * where EXPORT_SESSIONS are there and none is expired.
 *
 * An owner's name proves nothing: two clients that live may have the same one (machines cloned with
 * all that they had in memory), and a peer may claim any. It only tells which session a mount that
 * died has left behind. So what a client gets that finds a session of its own owner there:
 *
 *     the session there                        exclusive, or one writes   may share (share, ro)
 *     its peer hung up all its channels        ended at once: gets in     the same
 *     shm: its process has ended               ended at once: gets in     the same
 *     said BYE, or is being ended              waits for its last fence   gets in beside it
 *     of the same instance                     ended: gets in             ended: gets in
 *     the same, but made by a later connection -ESTALE                    -ESTALE
 *     has a channel                            waits, -EBUSY              gets in beside it
 *     fell silent, was cut off by the server,  waits until it has not     gets in beside it
 *     has not come back after a restart        been heard of for
 *                                              lease_time, -EBUSY
 *
 * That is, but for the first rows and those of the same instance, what it gets from a session of
 * any other owner. An instance is one process, so its number is compared for being the same only: a
 * clock that was set back, or the highest number there is, keep nobody out. The same process comes
 * again when it begins another session, or has had no answer to an earlier ATTACH; a late one, on a
 * connection that is older than the one that has made the session, must not end it.
 *
 * A channel of a session that is attached again counts as the confirmation that its predecessor is
 * fenced, on which clients repeat I/O whose outcome they don't know; so the answer waits for that.
 * On shm a mapping lasts as long as the process, but then the same process asks, whose copies are
 * over when it does.
 *
 * A client that the server has ended the session of learns it here (-EIDRM), and may make another
 * one. On shm it says with that ATTACH that it has unmapped all of the old one (`ended`), so nobody
 * waits for the end of its process any more.
 *
 * A channel that is attached with another ATTACH_READ_ONLY than the session has changes it, once
 * the one before it in its place is fenced: that is stored first, then all the session's channels
 * are fenced, whose keys are of the other kind. One that is refused has changed nothing: -EROFS,
 * where it would write what others read. So what is mounted read-only has no key that writes, from
 * the answer to the last channel's ATTACH on.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_ATTACH_H
#define RMEMFS_SERVER_SESSION_ATTACH_H

#include "server/session/conn.h"
#include "server/session/context.h"

/* Answers it, or has it wait in server.waiting for what is in its way, as long as it may. */
void attach_request(struct client_request *req);
/* Looks again at what waits for a session's or channel's end. */
void attach_retry_waiting(struct server *s);

#endif
