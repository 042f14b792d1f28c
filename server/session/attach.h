/* attach.h - ATTACH: which client gets a session at an export, and which channels belong to it.
 *
 * Any number of sessions may read an export that nobody writes. Any number that take leases
 * (ATTACH_SHARED) may be at one export, reading or writing, and no others beside them. Else one
 * that writes has the export for itself. An ATTACH waits for all sessions that are in its way.
 * Expired ones are ended if that lets it in. Refusals: -EBUSY; -EUSERS if the export has
 * EXPORT_SESSIONS and none is expired.
 *
 * A session that converts (ATTACH_CONVERTS) has the export for itself, as one that writes or beside
 * others that read, until a client comes that it is in the way of:
 *
 *     the client has        it
 *     ATTACH_SHARED         waits; the session is asked to share (conversion.h), and again each
 *                           second if it can't now
 *     ATTACH_CONVERTS       -EALREADY, if it would get in with ATTACH_SHARED: it asks again with
 *                           that. Not before LEAVES_MS, as the session's mount may just have been
 *                           unmounted
 *     neither               waits, -EBUSY, as with any other session
 *
 * An owner's name proves nothing: two clients that live may have the same one (machines cloned with
 * all that they had in memory), and a peer may claim any. It only tells which session a dead mount
 * has left behind. A client that finds a session of its own owner gets this:
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
 * A session of another owner gives it the same, except for the first two rows and those of the same
 * instance. An instance is one process, and its number is only compared for equality. So a clock
 * that was set back, or the highest number there is, keeps nobody out. The same process comes again
 * when it begins another session, or has had no answer to an earlier ATTACH. A late ATTACH, on a
 * connection that is older than the one that made the session, must not end it.
 *
 * The answer to a channel that is attached again confirms that its predecessor is fenced. After it
 * the client repeats I/O whose outcome it does not know. So the answer waits for the fence. On shm
 * a mapping lasts as long as the process. But then the same process asks, and its copies are over
 * when it does. Or another process asks, to which the client has moved, and the first one has
 * closed the channel in order. The first one still counts as one that has the memory mapped.
 *
 * A client whose session the server has ended learns it here (-EIDRM), and may make another one, at
 * the same export: it says when that was made (`born`). -ESTALE: another one has its name now. On
 * shm it says with that ATTACH that it has unmapped all of the old one (`ended`). Then nobody waits
 * for the end of its process any more.
 *
 * A channel that is attached with another ATTACH_READ_ONLY than the session has changes the
 * session, once the channel's predecessor is fenced. The server stores the change first. Then it
 * fences all the session's channels, whose keys are of the other kind. A refused ATTACH has changed
 * nothing: -EROFS if it would write what others read. If it shares with others, those that still
 * read alone are asked to share, too, and have some seconds for that. So a session that has become
 * read-only has no key that writes, from the answer to the last channel's ATTACH on.
 *
 * All channels of a session speak one version of the protocol (wire_version.h), which is stored:
 * the session keeps it while its client's program runs, also when the server is upgraded meanwhile.
 * Where another program has taken the mount over and resumes the session in another version, that
 * changes the session in the same way. The replies that it has in the store are coded anew. The
 * name and the process of a client are those of its last ATTACH.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_ATTACH_H
#define RMEMFS_SERVER_SESSION_ATTACH_H

#include "server/session/conn.h"
#include "server/session/context.h"

/* Answers the ATTACH, or lets it wait in server.waiting for what is in its way, as long as it
 * may. */
void attach_request(struct client_request *req);
/* Tries again the ATTACHes that wait for the end of a session or channel. */
void attach_retry_waiting(struct server *s);

#endif
