/* penalty.h - clients whose sessions were ended because they had not given back in time what others
 * wanted: before such a client's next session begins it waits 1, 2, 4 .. 60 s. Else a client could
 * take files from others for the lease time again and again.
 *
 * A client that a key has let in is its holder at the export: a mount that comes back under another
 * owner's name waits as well, and so do the holder's other mounts when they begin. Sessions that
 * are there go on. Another one is its owner's name beside that, since everybody at its
 * addresses is one holder, and one could lock the others out.
 *
 * The wait is from the end of the session on: a client that comes back later does not wait. It
 * doubles when a session is ended that began after the last such end. So machines of one holder
 * that were cut off together wait for 1 s. After PENALTY_FORGET_MS without another end of that kind
 * it begins with 1 s again. Only so many clients are remembered; the one whose last such end is the
 * longest ago is forgotten first.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_PENALTY_H
#define RMEMFS_SERVER_SESSION_PENALTY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "server/config/config_clients.h"

enum {
	PENALTY_FIRST_MS = 1000,
	PENALTY_MAX_MS = 60000,
	PENALTY_FORGET_MS = 600000,
	PENALTY_CLIENTS = 64,
};

struct penalty_client {
	unsigned export_index;
	char holder[CLIENT_NAME_MAX + 1];
	uint8_t owner[OWNER_BYTES]; /* zeros: of any */
};

struct penalty_client penalty_client_of(
	unsigned export_index, const char *holder, const uint8_t owner[OWNER_BYTES], bool keyed);

struct penalties {
	struct penalty {
		struct penalty_client client;
		int64_t wait_ms; /* the last wait; 0: nobody's */
		int64_t ended_ms;
	} v[PENALTY_CLIENTS];
};

/* A session of the client, which began then, is ended for that now. */
void penalty_add(
	struct penalties *p, const struct penalty_client *client, int64_t began_ms, int64_t now);
/* When the client may begin a session; INT64_MIN: it has no penalty. */
int64_t penalty_over_ms(const struct penalties *p, const struct penalty_client *client);

#endif
