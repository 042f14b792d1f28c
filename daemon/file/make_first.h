/* make_first.h - requests that wait until the server knows the names and files that they are about.
 *
 * First the names of name_queue.h are sent that the request comes behind, then the files of
 * unmade.h that it is about. These are sent by MAKEs, up to 16 by one, and waited for. Files that
 * are made later are not: another thread that makes them all the time does not hold up anybody. If
 * the server refuses a MAKE, the request goes on: the server's answer is the truth then. Later
 * requests do not send that MAKE again, before the file changes.
 *
 * THREADS    The request's.
 */
#ifndef RMEMFS_DAEMON_FILE_MAKE_FIRST_H
#define RMEMFS_DAEMON_FILE_MAKE_FIRST_H

#include <stdbool.h>

#include "daemon/file/unmade.h"

struct fs;
struct request;

/* Before op->call is sent: what it is about. */
struct op_about make_first_about(const struct rpc_request *rpc);

/* True: there is nothing to wait for. False: then(req, status) follows; -ECANCELED: the operation
 * was taken back; -EIO, -ESTALE: names before it are lost with the session. */
bool make_first(struct request *req, const struct op_about *about,
	void (*then)(struct request *req, int status));
/* After that wait: why the server does not know one of these files, or 0. */
int make_first_refusal(struct request *req);

/* The session has ended, and nothing is under way: fsync of their directories tells that these
 * files are lost. */
void make_first_lost(struct fs *fs);

#endif
