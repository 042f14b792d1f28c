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

struct request;

/* True: all is known that the request needs. False: then(req) follows, or the request ends with an
 * error. The request has no state yet, or only one that is not used any more. */
bool revived_enter(struct request *req, void (*then)(struct request *req));

#endif
