/* client_request.h - one request of a client, from when it was received until it is answered or
 * dropped. conn.h has what is done with it.
 *
 * OWNERSHIP  A request belongs to its conn. It is in one of the lists of context.h, in its
 *            session's, in a batch, or free.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_SESSION_CLIENT_REQUEST_H
#define RMEMFS_SERVER_SESSION_CLIENT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "server/meta/meta.h"
#include "server/namespace/execute.h"

struct conn;

/* A request's place among those that wait for an inode. */
struct contested;
struct lease_place {
	struct list link;
	struct client_request *req;
	struct contested *at;
	uint8_t type;   /* the type that it wants */
	uint8_t before; /* the types that earlier requests want: lease_bit() */
	int64_t since_ms;
};

/* A RENAME concerns so many inodes: two directories, and the inodes at both names. */
enum { LEASE_PLACES = 4 };

struct lease_wait {
	/* In the order of the inodes' numbers. The request waits for the last one. */
	struct lease_place places[LEASE_PLACES];
	unsigned n;
	bool parked; /* it waits, and is not being run again */
};

struct client_request {
	struct list link; /* in one of the server's lists; alone: free or being run */
	struct conn *conn;
	const void *msg; /* as received; NULL: free */
	struct rpc_request rpc;
	int64_t came_ms, deadline_ms; /* ATTACH */
	int64_t held_ms;   /* ATTACH: it is tried again then at the latest; 0: it is not held */
	int64_t parked_ms; /* since when it finds no pages; 0: it was not run, or found some */
	uint64_t asked;    /* the number of its ask for pages; 0: it has not asked others */
	struct lease_wait wait; /* see recall.h */
	/* While it runs. */
	enum outcome outcome;
	struct meta_wait wants;
	bool lacks_pages;  /* that others may give (page_recall.h), or reuse (page_reuse.h) */
	uint64_t pinned;   /* the inode that its CREATE has pinned; 0: none */
	uint8_t converted; /* the state that its CONVERT has brought; 0: none, or by a stored answer
			    */
	int status;        /* of its answer; 0 for a stored answer, too */
	const char *breach;
	void *reply;
	uint32_t reply_len;
};

#endif
