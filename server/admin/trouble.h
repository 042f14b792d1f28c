/* trouble.h - the parts of the status that tell why somebody waits: late clients, refused keys, a server
 * without CPU.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_TROUBLE_H
#define RMEMFS_SERVER_ADMIN_TROUBLE_H

#include <jansson.h>

#include "server/session/client_session.h"

/* Adds members to the object of a session. */
void trouble_describe_session(const struct client_session *session, json_t *object);
/* A list. */
json_t *trouble_describe_refusals(const struct server *s);
/* How much the metadata thread waits for a CPU. */
json_t *trouble_describe_cpu(const struct server *s);

#endif
