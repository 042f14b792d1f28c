/* attach_change.h - what an ATTACH can change of its session: whether it only reads, the version of
 * the protocol that it speaks, and its process. attach.h says when.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_ATTACH_CHANGE_H
#define RMEMFS_SERVER_SESSION_ATTACH_CHANGE_H

#include "server/session/client_session.h"

/* Makes the session read-only, or no longer so: the keys that it has are of the other kind then. Or
 * another program has taken the mount over, and speaks another version of the protocol. The store
 * has the change first; then all channels of the session are fenced. Without a difference nothing
 * happens. 0 or -errno: nothing has changed. */
int attach_change_session(struct client_session *session, uint32_t flags, uint16_t version);

/* Another process may have the mount now, by an upgrade or after the daemon was killed: people read
 * its number. `said` is ATTACH's. Nothing depends on it, so a store that fails is only logged. */
void attach_change_client(struct client_session *session, const struct rpc_str *said);

#endif
