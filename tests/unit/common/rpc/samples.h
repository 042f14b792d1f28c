/* samples.h - for tests: a valid message of each operation, with every field set to a value of its own
 * where that is possible.
 *
 * Tails and names live as long as the program.
 */
#ifndef RMEMFS_TESTS_UNIT_COMMON_RPC_SAMPLES_H
#define RMEMFS_TESTS_UNIT_COMMON_RPC_SAMPLES_H

#include "common/rpc/rpc.h"

enum { SAMPLE_TAIL_BYTES = 4 * RPC_EXTENT_BYTES };

/* The operations that a version of the protocol has; and this release's. */
#define for_each_op_of(op, version)                  \
	for (unsigned op = 0; op < RPC_OP_MAX; op++) \
		if (rpc_op_info(op)->name && rpc_op_info(op)->since <= (version))
#define for_each_op(op) for_each_op_of(op, RMEMFS_WIRE_VERSION)

/* In slot 3 with sequence number 77, or outside slots. */
struct rpc_request request_of(unsigned op);
struct rpc_reply reply_of(unsigned op);

struct extent extent_of(uint64_t fpage);
/* Four extents. */
struct rpc_tail extents_tail(void);

#endif
