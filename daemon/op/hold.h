/* barrier.h - a place in what an operation has entered. */
#ifndef RMEMFS_DAEMON_OP_HOLD_H
#define RMEMFS_DAEMON_OP_HOLD_H

#include <stdbool.h>

struct request;

/* What an operation is inside of until its end at the latest; embedded where it is entered. The
 * entered registers how it is left. */
struct op_hold {
	struct op_hold *next;
	void (*leave)(struct request *req);
	bool yields; /* others wait for its end: it is left before a long wait, too */
};

#endif
