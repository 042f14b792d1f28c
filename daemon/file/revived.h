/* revived.h - inodes of a killed daemon, of which its record tells the numbers and types alone.
 *
 * The kernel uses an inode without a LOOKUP. Where a file's size or map is needed, its attributes
 * are asked for first. All else copes with attributes that are not known.
 *
 * THREADS    The request's own.
 */
#ifndef RMEMFS_DAEMON_FILE_REVIVED_H
#define RMEMFS_DAEMON_FILE_REVIVED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/file/gate_pass.h"

struct inode;
struct request;

/* Of the request meanwhile. struct file_op tells of its way so far, and stays as it is. */
struct revived_state {
	struct file_op file;
	struct inode *asked; /* referenced */
	uint64_t epoch;
	void (*then)(struct request *req, int status);
};

/* True: all is known that the request needs. False: then(req, status) follows, which ends the
 * operation if there is an error. The operation has
 * not begun, and what follows struct file_op in its state is zero, then and afterwards. */
bool revived_enter(struct request *req, void (*then)(struct request *req, int status));

#endif
