/* status.h - what the server tells about itself, as JSON, in answer to STATUS.
 *
 * The first piece takes a snapshot; the further ones read on in it.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_STATUS_H
#define RMEMFS_SERVER_STATUS_H

struct request;

void status_answer(struct request *req);

#endif
