/* in_the_way.h - the sessions that keep a client out of an export which it asks for by ATTACH. attach.h
 * has the rules.
 *
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_IN_THE_WAY_H
#define RMEMFS_SERVER_SESSION_IN_THE_WAY_H

#include "server/session/client_session.h"
#include "server/session/conn.h"

/* A client that goes by leases, or will when it is asked to. */
enum { ATTACH_MAY_SHARE = ATTACH_SHARED | ATTACH_CONVERTS };

/* Whether the session is of the client's owner; of its process, too. Each holder has owners of its
 * own, so none can end another's sessions. */
bool in_the_way_is_of_owner(const struct client_session *session, const struct client_request *req);
bool in_the_way_is_of_process(
	const struct client_session *session, const struct client_request *req);
/* Whether it is certain that no client has this session any more, or only the one that asks for
 * another one. */
bool in_the_way_is_former(const struct client_session *session, const struct client_request *req);
/* Whether its process has made a session since. The network may deliver an ATTACH after the client
 * has given it up and sent another one. */
bool in_the_way_has_later(const struct client_request *req, const struct export *export);
/* Whether the client can't have a session of its own beside this one. */
bool in_the_way_is(const struct client_session *session, const struct export *export,
	const struct client_request *req);
/* The session in the way that is the reason: one that can't share, or can't now, before others. *n:
 * how many there are. */
struct client_session *in_the_way_find(
	const struct client_request *req, const struct export *export, unsigned *n);

/* Whether all sessions in the way let the client in beside them sooner or later, if it shares. */
bool in_the_way_may_share_later(const struct client_request *req, const struct export *export);
/* Whether all of them share it already. */
bool in_the_way_share_now(const struct client_request *req, const struct export *export);
/* Has the others asked for that. The client that waits is tried again when they have changed
 * (conversion.h), and at the time that is returned, in ms: those that can't now are asked anew
 * then. 0: there are none. */
int64_t in_the_way_ask_to_share(const struct client_request *req, const struct export *export);

/* The first session that keeps this one, which reads, from becoming one that writes; *n: how many
 * there are. A session that shares is kept from it by those that read alone only, until they have
 * converted or are gone. */
const struct client_session *in_the_way_reader(const struct client_session *session, unsigned *n);
/* Has those convert, as in_the_way_ask_to_share() does. */
void in_the_way_ask_readers(const struct client_session *session);

#endif
