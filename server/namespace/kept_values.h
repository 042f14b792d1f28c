/* kept_values.h - values that are read in parts, as they were when the reading began.
 *
 * A client that finds a long value changed between two parts reads it anew. Beside a writer that is
 * as fast it would never end. So it has the server keep the value, under one of few numbers of its
 * choice (GETXATTR's keep). The server keeps it until the client has read the rest or uses the
 * number again, or its channel ends. That bounds what a client can leave here, whatever becomes of
 * it. To the client a value that is not there any more has changed once more.
 *
 * OWNERSHIP  A channel's own. A value that an aborted batch has kept stays, and is kept anew.
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
