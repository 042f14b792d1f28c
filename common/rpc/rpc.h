/* rpc.h - the messages between a client and a server: their fields, and how they are coded.
 *
 * A request is header + body, its reply header + body. An error reply carries a line of text for
 * people instead of the body. Everything is little-endian. Fixed fields come first, names have a
 * 16-bit length, and in some messages an array is the rest of the message (the "tail"). In each
 * slot of a session one request at a time is outstanding.
 *
 * Sequence numbers: a slot's first request has 1, each next one more. The server keeps the reply of
 * the last mutating request of each slot with the change itself. It answers a request with the
 * stored number from there and does not execute it again; a lower number is a protocol error.
 * Requests that change nothing (rpc_mutates() false) may be executed again.
 *
 * Inode numbers are the export's own; ROOT_INO is its root. Times are the server's.
 *
 * OWNERSHIP  Decoded names, texts and tails point into the message.
 * THREADS    Pure functions.
 * ERRORS   -EPROTO: malformed, too short, trailing bytes, or a value out of its range (names of
 *          length 0 or over NAME_BYTES_MAX, with '/' or NUL, "." and ".." except in LOOKUP, unknown
 *          ops). -EMSGSIZE: does not fit.
 */
#ifndef RMEMFS_COMMON_RPC_RPC_H
#define RMEMFS_COMMON_RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/types.h"
#include "common/rpc/rpc_ops.h"
#include "common/rpc/rpc_replies.h"
#include "common/rpc/rpc_requests.h"
#include "common/rpc/wire.h"
#include "common/rpc/wire_version.h"

/* ---- coding ---------------------------------------------------------------------------------- */

/* Codes the whole message, as it is in this version of the protocol, and gives its length. It
 * copies a tail in, unless the tail is already in place: see rpc_reply_tail_at(). Decoding clears
 * fields that the version does not have. Other versions: an op is unknown to those before its
 * `since`. */
int rpc_request_encode(
	const struct rpc_request *req, uint32_t version, void *buf, size_t buflen, size_t *len);
int rpc_request_decode(struct rpc_request *req, uint32_t version, const void *buf, size_t len);
int rpc_reply_encode(
	const struct rpc_reply *rep, uint32_t version, void *buf, size_t buflen, size_t *len);
int rpc_reply_decode(struct rpc_reply *rep, uint32_t version, const void *buf, size_t len);

/* Bytes before the tail of a reply of this op. To fill a tail in place, write at buf + this. */
size_t rpc_reply_tail_at(unsigned op, uint32_t version);
size_t rpc_request_tail_at(unsigned op, uint32_t version);

/* Elements of tails. Put: beyond the end it sets w->overflow. Get: false at the end, or on a
 * malformed element (then r->truncated). Those of fixed length are the same in all versions. */
enum {
	RPC_EXTENT_BYTES = 20,
	RPC_REGION_BYTES = 28,
	RPC_RECALL_BYTES = 17,
	RPC_RETURNED_BYTES = 18,
	RPC_MAKING_BYTES = 92, /* and those of its name and extents */
};
void rpc_put_extent(struct wire_out *w, const struct extent *e);
bool rpc_get_extent(struct wire_in *r, struct extent *e);
void rpc_put_region(struct wire_out *w, const struct rpc_region *region);
bool rpc_get_region(struct wire_in *r, struct rpc_region *region);
/* All or nothing: an entry that does not fit is not begun (returns false, no overflow). */
bool rpc_put_dirent(struct wire_out *w, const struct rpc_dirent *d, bool plus);
bool rpc_get_dirent(struct wire_in *r, struct rpc_dirent *d, bool plus);

void rpc_put_recall(struct wire_out *w, const struct rpc_recall *recall);
bool rpc_get_recall(struct wire_in *r, struct rpc_recall *recall);
void rpc_put_returned(struct wire_out *w, const struct rpc_returned *returned);
bool rpc_get_returned(struct wire_in *r, struct rpc_returned *returned);

/* All or nothing, as rpc_put_dirent(). The first tells its length, by that of its name, and that of
 * its new name or target. */
size_t rpc_name_change_bytes(enum rpc_name_kind kind, size_t name, size_t text);
bool rpc_put_name_change(struct wire_out *w, const struct rpc_name_change *change);
bool rpc_get_name_change(struct wire_in *r, struct rpc_name_change *change);

bool rpc_put_making(struct wire_out *w, const struct rpc_making *making);
bool rpc_get_making(struct wire_in *r, struct rpc_making *making);

bool rpc_put_xattr_entry(struct wire_out *w, const struct rpc_xattr_entry *e);
bool rpc_get_xattr_entry(struct wire_in *r, struct rpc_xattr_entry *e);

static inline struct wire_in rpc_tail_reader(const struct rpc_tail *tail)
{
	return (struct wire_in){
		.pos = tail->data, .end = tail->data + tail->len, .version = tail->version};
}

#endif
