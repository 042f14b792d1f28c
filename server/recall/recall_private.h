/* recall_private.h - what recall.c, which has who waits for what and who is to give it back, and
 * recall_late.c, which has those who don't in time, know of each other.
 *
 *     a recall comes up -> takes long: its path is looked for -> it is told in the log
 *     -> the lease time is over: its session is ended
 *
 * OWNERSHIP, THREADS  As recall.h.
 */
#ifndef RMEMFS_SERVER_RECALL_RECALL_PRIVATE_H
#define RMEMFS_SERVER_RECALL_RECALL_PRIVATE_H

#include "common/rpc/lease_type.h"
#include "common/base/list.h"
#include "server/recall/damping.h"
#include "server/namespace/path_search.h"
#include "server/recall/recall.h"

enum { RECALL_BUCKETS = 256 };

/* Which types some have, or want, and for each the session if it is only one: so it can be told for
 * each session what the others do. */
struct types {
	uint8_t any, several; /* lease_bit() */
	uint64_t session[LEASE_TYPES];
};

/* An inode that somebody waits for. */
struct contested {
	struct list link;    /* of its bucket */
	struct list changed; /* recalls.changed, or alone */
	struct export *export;
	uint64_t ino;
	struct list waiters;  /* struct lease_place, in the order they came */
	struct types wanted;  /* by them, or by some that have left since the last look */
	struct list recalls;  /* struct recall, by of_inode */
	struct list searched; /* recall_late.searched, or alone */
	char *path;           /* NULL: not known */
};

/* One that takes long is told when its path is known, or can't be. */
enum slow { SLOW_NOT, SLOW_UNTOLD, SLOW_TOLD };

/* What one session is to give back of it. */
struct recall {
	struct list of_inode, of_session;
	struct contested *at;
	struct client_session *session;
	uint64_t number;
	uint8_t keep;
	bool wanted; /* by the look that is on its way */
	bool told;   /* as it is now, by a PING */
	enum slow slow;
	int64_t since_ms; /* when it came up, and what did not count since then */
};

/* recall_late.c's. */
struct recall_late {
	struct list searched;        /* struct contested: whose paths are looked for, in turn */
	struct contested *searching; /* whom the search has begun for; NULL: nobody */
	struct path_search search;
	int64_t ticked_ms;
};

struct recalls {
	struct list buckets[RECALL_BUCKETS]; /* struct contested */
	struct list changed;                 /* the same: to be looked at */
	struct list parked;                  /* struct client_request */
	struct damping damping;
	struct recall_late late;
};

/* If it takes long and was not told yet it is, with the path if that is known. */
void recall_tell_untold(struct recall *r);
/* Nor is it looked for any more. */
void recall_forget_path(struct recalls *rs, struct contested *at);

#endif
