/* kept_values.h - values that are read in parts, as they were when the reading began.
 *
 * Who finds that a long value has changed between two parts of it begins anew, and again, with a
 * writer that is as fast. So he then has the server keep it, under one of few numbers of his choice
 * (GETXATTR's keep), until he has read the rest, uses the number again, or his channel ends: that
 * bounds what a client can leave here, whatever becomes of it. What is not there any more he finds
 * changed once more.
 *
 * OWNERSHIP  A channel's own. What a batch that is aborted has kept stays, and is kept anew.
 * THREADS    The metadata thread.
 */
#ifndef RMEMFS_SERVER_NAMESPACE_KEPT_VALUES_H
#define RMEMFS_SERVER_NAMESPACE_KEPT_VALUES_H

#include <stdint.h>

#include "common/rpc/rpc.h"

struct kept_value {
	uint8_t *data; /* NULL: none */
	uint64_t ino, sum;
	uint32_t len;
};

/* All zero: nothing is kept. */
struct kept_values {
	struct kept_value v[GETXATTR_KEPT_MAX];
};

/* number: 1 .. GETXATTR_KEPT_MAX. Takes the memory over. */
void kept_values_put(struct kept_values *k, uint32_t number, const struct kept_value *value);
/* NULL: none of that inode. */
const struct kept_value *kept_values_find(
	const struct kept_values *k, uint32_t number, uint64_t ino);
void kept_values_drop(struct kept_values *k, uint32_t number);
void kept_values_drop_all(struct kept_values *k);

#endif
