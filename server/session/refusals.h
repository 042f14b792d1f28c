/* refusals.h - the keys that were refused lately. The status names them, and the log has one line
 * for many refusals of one peer.
 *
 * A refusal is one with others of the same key, machine and reason. Only so many are remembered;
 * the one whose last is the longest ago is forgotten first.
 *
 * OWNERSHIP  Zeros are an empty table. Texts are copied.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_REFUSALS_H
#define RMEMFS_SERVER_SESSION_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/auth_key.h"
#include "common/base/recent.h"

enum { REFUSALS_MAX = 16, REFUSALS_TELL_MS = 60000 };

struct refusal {
	char key[AUTH_KEY_ID_MAX + 1]; /* the id that was offered, printable; "": none */
	char host[64];                 /* of the peer, without its port */
	char reason[160];
	bool known; /* there is a key of that id, with other bytes */
	uint64_t count;
	struct recent recent;
	int64_t last_ms;
	int64_t told_ms; /* when the log has had a line of it; count was `told` then */
	uint64_t told;
};

struct refusals {
	struct refusal v[REFUSALS_MAX];
	unsigned n;
};

/* peer: as channel_peer() names it. Returns the refusal if the log is to have a line of it now, and
 * in *untold how many more there were since the last line; else NULL. */
const struct refusal *refusals_add(struct refusals *r, const struct refusal *refusal,
	const char *peer, int64_t now, uint64_t *untold);

#endif
