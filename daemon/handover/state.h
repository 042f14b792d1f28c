/* state.h - the description of a mount that stands still, as bytes: what one daemon tells the next.
 *
 *     magic, version, lengths | session, features | (inode | its handles) ... | sharing_state.h
 *
 * Both daemons may be of different versions of rmemfs. So each value has its size and place here,
 * and not those of a struct of C. Any change of it changes HANDOVER_VERSION, and the daemons refuse
 * each other then: the mount stays where it is.
 *
 * Pure: no I/O, no memory of its own.
 *
 * ERRORS     -EPROTONOSUPPORT: another version. -EPROTO: no description, a wrong length, or a value
 *            out of its range.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_STATE_H
#define RMEMFS_DAEMON_HANDOVER_STATE_H

#include "common/rpc/wire.h"
#include "daemon/barrier/conversion.h"
#include "daemon/fuse/port.h"
#include "daemon/handover/inodes.h"
#include "daemon/remote/session_handover.h"

enum {
	HANDOVER_VERSION = 7,
	STATE_HEAD_BYTES = 40, /* magic, version, and the three numbers behind it */
	STATE_INODE_BYTES = 160,
	STATE_HANDLE_BYTES = 32,
};

struct mount_state {
	struct session_state session;
	struct fs_features features;
	uint8_t cache, access; /* enum cache_mode, enum access_mode */
	bool nodiratime;
	bool revived; /* fs_parts.h */
	uint64_t ninodes, nhandles;
	struct conversion_told told;
	uint64_t sharing_bytes; /* behind all that; 0: the mount does not share, and never will */
};

/* The bytes of a description with so many inodes and handles, of a mount that never shares. */
size_t state_bytes(uint64_t ninodes, uint64_t nhandles);

/* The caller has state_bytes() of room, and puts each inode's handles behind it. */
void state_put(struct wire_out *w, const struct mount_state *state);
void state_put_inode(struct wire_out *w, const struct inode_state *inode);
void state_put_handle(struct wire_out *w, const struct handle_state *handle);

/* The reverse: the length of all, with what sharing adds, must be as the numbers say. */
int state_get(struct wire_in *r, struct mount_state *state);
int state_get_inode(struct wire_in *r, struct inode_state *inode);
int state_get_handle(struct wire_in *r, struct handle_state *handle);

/* Up to 32 flags as one number, for both descriptions. A bit that nobody knows counts as truncated.
 */
void state_put_flags(struct wire_out *w, const bool *const *flags, unsigned n);
void state_get_flags(struct wire_in *r, bool *const *flags, unsigned n);

#endif
