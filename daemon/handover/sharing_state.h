/* sharing_state.h - what a description (state.h) has of a mount that shares its export, as bytes:
 *
 *     numbers, keys of names | (inode | its pages, its owners of locks, its locks) ... | waits ...
 * | names ... | (message | its bytes) ...
 *
 * Pure: no I/O, no memory of its own.
 *
 * ERRORS     -EPROTO: a wrong length, or a value out of its range.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_SHARING_STATE_H
#define RMEMFS_DAEMON_HANDOVER_SHARING_STATE_H

#include "common/rpc/wire.h"
#include "daemon/fuse/receive.h"
#include "daemon/kcache/kernel_names.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/lease.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/lock/lock_wait.h"

enum {
	SHARING_HEAD_BYTES = 10 * 8 + 2 * NAMEHASH_KEY_BYTES,
	SHARING_INODE_BYTES = 64,
	SHARING_PAGES_BYTES = 16 + CACHED_RANGES * 16 + CACHED_LOOKERS * 12,
	SHARING_OWNER_BYTES = 32,
	SHARING_LOCK_BYTES = 32,
	SHARING_WAIT_BYTES = 64,
	SHARING_NAME_BYTES = 32,
	SHARING_MESSAGE_BYTES = 32,
};

struct sharing_state {
	uint64_t lock_number; /* locks.h: the last one that was used */
	uint8_t name_keys[2][NAMEHASH_KEY_BYTES];
	bool locks_are_kept; /* by the mount itself: local_locks.h */
	uint64_t ninodes, npages, nowners, nlocks, nwaits, nnames, nmessages;
	uint64_t message_bytes; /* of all messages */
};

struct sharing_inode {
	uint64_t ino;
	struct lease_kept lease;
	bool sure;
	int64_t looked_ms; /* of CLOCK_BOOTTIME, as all times here */
	/* kernel_attr.h */
	bool attr_told;
	uint64_t attr_number;
	struct kernel_owner owner;
	bool has_pages;
	uint32_t nowners, nlocks;
};

/* The bytes of all that. */
size_t sharing_state_bytes(const struct sharing_state *state);

void sharing_state_put(struct wire_out *w, const struct sharing_state *state);
void sharing_state_put_inode(struct wire_out *w, const struct sharing_inode *inode);
void sharing_state_put_pages(struct wire_out *w, const struct cached_pages *pages);
void sharing_state_put_owner(struct wire_out *w, const struct lock_owner_kept *owner);
void sharing_state_put_lock(struct wire_out *w, const struct lock *lock);
void sharing_state_put_wait(struct wire_out *w, const struct lock_wait_kept *wait);
void sharing_state_put_name(struct wire_out *w, const struct kernel_names_kept *name);
void sharing_state_put_message(struct wire_out *w, const struct fuse_parked *message);

/* The reverse: what is left has to be as long as the numbers say. */
int sharing_state_get(struct wire_in *r, struct sharing_state *state);
int sharing_state_get_inode(struct wire_in *r, struct sharing_inode *inode);
int sharing_state_get_pages(struct wire_in *r, struct cached_pages *pages);
int sharing_state_get_owner(struct wire_in *r, struct lock_owner_kept *owner);
int sharing_state_get_lock(struct wire_in *r, struct lock *lock);
int sharing_state_get_wait(struct wire_in *r, struct lock_wait_kept *wait);
int sharing_state_get_name(struct wire_in *r, struct kernel_names_kept *name);
/* The bytes stay where they are. */
int sharing_state_get_message(struct wire_in *r, struct fuse_parked *message);

#endif
