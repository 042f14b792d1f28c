/* keys.h - the part of the status that tells which keys are used.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_KEYS_H
#define RMEMFS_SERVER_ADMIN_KEYS_H

#include <jansson.h>

#include "server/session/context.h"

/* A list, by id. Files of keys are named for admins alone. NULL: out of memory. */
json_t *keys_describe(struct server *s, bool files);

#endif
