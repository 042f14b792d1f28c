/* lease.h - the stored leases and pins of the sessions of a shared export: what each session may do
 * with an inode.
 *
 * A record is of one inode and one session. It has the session's lease, and says whether the
 * session keeps the inode alive by a pin. A session pins an inode that it has open, or of which it
 * has removed the last name. An inode without a name lives as long as any session pins it.
 *
 * A session with a lease may have the file open without a pin. So no inode loses its last name
 * while another session has a lease of it. The RETURN of that lease says whether the session pins
 * the inode from then on. A session that gets a lease of an inode without a name pins the inode by
 * that, as long as it has the lease. A session that ends has nothing open, and keeps nothing.
 *
 * Sessions that aren't shared have no records, and keep inodes without a name by STORE_ORPHAN. But
 * an inode may still have records of a shared session that has ended, until these are deleted. Such
 * an inode they pin instead, so that all that keeps an inode is of one kind.
 *
 * Lease numbers grow from record to record, over restarts too.
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

/* Bytes of the store that a record takes at most, where there are many; see rmemfs-server(8). */
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

/* The session's record. If there is none: LEASE_NONE, no pin, number 0. */
int lease_get(struct volume *v, uint64_t key, uint64_t session, struct lease_record *out);
/* Adds or replaces the record and sets its `since`. One with neither lease nor pin is deleted. */
int lease_put(struct volume *v, const struct lease_record *record);

/* The first record at or after an inode's key and a session's number. -ENOENT: none. */
int lease_next(struct volume *v, uint64_t key, uint64_t session, struct lease_record *out);

/* The leases and pins of an inode that all sessions but one have; session 0: all sessions. */
struct lease_others {
	uint8_t types; /* lease_bit() */
	bool pinned;
	bool any; /* there is any record */
};
int lease_look(struct volume *v, uint64_t key, uint64_t session, struct lease_others *out);

/* A pin has gone: frees the inode if it has no name and no other session keeps it. later: leaves
 * all of it to the reaper. */
int lease_unpinned(struct volume *v, uint64_t key, bool later);

/* The session of this record has ended. Unless it ended in order (clean), its client may have
 * changed bytes by the lease without a COMMIT: then the file's times become now. */
int lease_end(struct volume *v, const struct lease_record *record, bool clean, int64_t now);

int lease_decode(struct volume *v, struct store_key key, const struct store_val *val,
	struct lease_record *out);
/* Counts the records when the volume is opened. */
int lease_open(struct volume *v);

#endif
