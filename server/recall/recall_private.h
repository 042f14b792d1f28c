/* recall_private.h - shared by recall.c and recall_late.c. recall.c knows the waiting requests and
 * the sessions that are to return something. recall_late.c handles those that don't return in time.
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

/* The types that sessions have, or want, and for each type the session if it is only one. So
 * types_but() can leave one session out. */
struct types {
	uint8_t any, several; /* lease_bit() */
	uint64_t session[LEASE_TYPES];
};

/* An inode that requests wait for. */
struct contested {
	struct list link;    /* of its bucket */
	struct list changed; /* recalls.changed, or alone */
	struct export *export;
	uint64_t ino;
	struct list waiters;  /* struct lease_place, in the order in which they came */
	struct types wanted;  /* by the waiters, or by some that have left since the last look */
	struct list recalls;  /* struct recall, by of_inode */
	struct list searched; /* recall_late.searched, or alone */
	char *path;           /* NULL: not known */
};

/* A slow recall is logged when its path is known, or can't be found. */
enum slow { SLOW_NOT, SLOW_UNTOLD, SLOW_TOLD };

/* A session that is to return something of an inode. */
struct recall {
	struct list of_inode, of_session;
	struct contested *at;
	struct client_session *session;
	uint64_t number;
	uint8_t keep;
	bool wanted; /* in the look that is under way */
	bool told;   /* a PING has told it as it is now */
	enum slow slow;
	int64_t since_ms; /* when it came up, plus the time since then that does not count */
};

/* The part of recall_late.c. */
struct recall_late {
	struct list searched;        /* struct contested whose paths are to be found, in turn */
	struct contested *searching; /* the one whose path is being looked for; NULL: none */
	struct path_search search;
	int64_t ticked_ms;
};

struct recalls {
	struct list buckets[RECALL_BUCKETS]; /* struct contested */
	struct list changed;                 /* struct contested that have to be looked at */
	struct list parked;                  /* struct client_request */
	struct damping damping;
	struct recall_late late;
};

/* Of a session that is to do something since then. Adds the time that does not count, at most once
 * before each recalls_tick(). When it is late. Ends it, since it is. */
void recall_discount(const struct client_session *session, int64_t *since_ms, int64_t now);
int64_t recall_deadline(const struct client_session *session, int64_t since_ms);
void recall_end_late(struct client_session *session, int64_t now);

/* Logs the recall if it is slow and was not logged yet, with the path if it is known. */
void recall_tell_untold(struct recall *r);
/* The recall is over: counts it for the session if it took long. */
void recall_note_end(const struct recall *r);
/* Frees the path, or ends the search for it. */
void recall_forget_path(struct recalls *rs, struct contested *at);

#endif
