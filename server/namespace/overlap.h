/* overlap.h - whether a page occurs twice in a list of extents that a client has sent.
 *
 * A list has up to OVERLAP_EXTENTS_MAX extents in any order, and the metadata thread serves all
 * clients. So the lists are sorted, in n log n steps and without allocation.
 *
 * THREADS  Any: a pure function.
 */
#ifndef RMEMFS_SERVER_NAMESPACE_OVERLAP_H
#define RMEMFS_SERVER_NAMESPACE_OVERLAP_H

#include <stdbool.h>

#include "common/base/types.h"
#include "common/rpc/rpc.h"

enum { OVERLAP_EXTENTS_MAX = RPC_MSG_BYTES / RPC_EXTENT_BYTES };

/* Whether two of e[n] name one page of memory or, with in_file, one page of the file. e[n] stays as
 * it is, and its numbers may be anything. n is at most OVERLAP_EXTENTS_MAX. */
bool overlap_any(const struct extent *e, unsigned n, bool in_file);

/* Reads the extents of a tail into e[OVERLAP_EXTENTS_MAX]. -EINVAL: one is of another target. */
int overlap_decode(const struct rpc_tail *tail, struct extent *e, unsigned *n);

#endif
