/* lease.h - what sessions of a shared export may do with which inode, as it is stored.
 *
 * A record is of one inode and one session: its lease, and whether it keeps the inode alive (a
 * pin: it has the file open, or has removed its last name). An inode without a name lives as long
 * as somebody pins it.
 *
 * Who has a lease may have the file open without a pin. So no inode loses its last name while
 * another session has a lease of it: when that is given back, the session says whether it pins it
 * from then on. And whoever gets a lease of an inode without a name pins it with that, and for as
 * long as he has it. A session that ends has nothing open, and keeps nothing.
 *
 * Sessions that aren't shared have no records, and keep inodes without a name by STORE_ORPHAN; but
 * where an inode has records of a shared session that has ended, and whose records are still on
 * their way out, they pin it instead: so what keeps an inode is all of one kind.
 *
 * Numbers grow from record to record, over restarts too.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_LEASE_H
#define RMEMFS_SERVER_RECORD_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/lease_type.h"
#include "server/record/volume.h"

struct stored_inode;

/* Of the store, at most, where there are many: see rmemfs-server(8). */
enum { LEASE_STORE_BYTES = 100 };

struct lease_record {
	uint64_t key; /* of the inode */
	uint64_t session;
	uint8_t type; /* enum lease_type */
	bool pinned;
	bool nameless; /* and the inode was made without a name, and may get one */
	uint64_t number;
	uint32_t since; /* when the lease or the pin became what it is: s since 1970 */
};

/* What a session has; without a record: LEASE_NONE, no pin, number 0. */
int lease_get(struct volume *v, uint64_t key, uint64_t session, struct lease_record *out);
/* Adds or replaces it, since then included; one that says nothing any more is deleted. */
int lease_put(struct volume *v, const struct lease_record *record);

/* The first record at or after an inode's key and a session's number. -ENOENT: none. */
int lease_next(struct volume *v, uint64_t key, uint64_t session, struct lease_record *out);

/* What all sessions but one (0: but none) have of an inode. */
struct lease_others {
	uint8_t types; /* lease_bit() */
	bool pinned;
	bool any; /* record */
};
int lease_look(struct volume *v, uint64_t key, uint64_t session, struct lease_others *out);

/* A pin has gone: frees the inode if it has no name and nobody else keeps it. later: leaves all of
 * it to the reaper. */
int lease_unpinned(struct volume *v, uint64_t key, bool later);

/* The session of this record has ended. Its lease may have been used to change bytes that no COMMIT
 * told of, unless it was in order (clean): then it was changed now. */
int lease_end(struct volume *v, const struct lease_record *record, bool clean, int64_t now);

int lease_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct lease_record *out);
/* Counts what there is when the volume is opened. */
int lease_open(struct volume *v);

#endif
