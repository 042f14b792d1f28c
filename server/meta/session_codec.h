/* session_codec.h - how a session is stored.
 *
 * ERRORS     0 or -errno, of store.h.
 */
#ifndef RMEMFS_SERVER_META_SESSION_CODEC_H
#define RMEMFS_SERVER_META_SESSION_CODEC_H

#include "server/meta/meta_internal.h"

/* state. A record without SESSION_HELD is of an earlier release, whose clients we do not speak
 * with. It waits to be ended. One without SESSION_VERSION is of RMEMFS_WIRE_FIRST. SESSION_LENT: it
 * has lent numbers. */
enum {
	SESSION_ENDED = 1,
	SESSION_CLEAN = 2,
	SESSION_HELD = 4,
	SESSION_VERSION = 8,
	SESSION_LENT = 16
};

/* A session as it is stored: by the export's id, since the configuration may change. */
struct session_record {
	uint8_t state;
	uint16_t export_id;
	struct meta_session session;
};

int session_codec_put(struct meta *m, const struct session_record *rec);
/* val: the record under that key. */
int session_codec_get(struct meta *m, struct store_key key, const struct store_val *val,
	struct session_record *rec);
/* The first one at or after *id, of any export; *id becomes the next. -ENOENT: there is none. */
int session_codec_next(struct meta *m, uint64_t *id, struct session_record *rec);

#endif
