/* hold.h - one of the things that an operation is inside of. */
#ifndef RMEMFS_DAEMON_OP_HOLD_H
#define RMEMFS_DAEMON_OP_HOLD_H

#include <stdbool.h>

struct request;

/* An operation is inside of this until its end at the latest. It is embedded where it is entered,
 * and whatever is entered registers how the operation leaves. */
struct op_hold {
	struct op_hold *next;
	void (*leave)(struct request *req);
	bool yields; /* others wait for its end: it is left before a long wait, too */
};

#endif
