/* value_stages.h - the numbers under which parts of long values are sent to the server.
 *
 * The server keeps the parts of at most STAGES_MAX values of a session. It keeps the parts of a
 * value that was given up until another value begins under its number. So there are few numbers,
 * and the lowest free one is taken: what was left behind is soon overwritten, and never too much.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_OPS_VALUE_STAGES_H
#define RMEMFS_DAEMON_OPS_VALUE_STAGES_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/rpc/rpc.h"

enum { STAGES_WORD_BITS = 64 };

/* Zeroed: all are free. */
struct value_stages {
	_Atomic uint64_t taken[STAGES_MAX / STAGES_WORD_BITS];
};

/* 1 .. STAGES_MAX, or 0: none is free. */
uint32_t value_stages_take(struct value_stages *stages);
void value_stages_give(struct value_stages *stages, uint32_t stage);

#endif
