/* who.h - which clients have a file of a shared export, and which wait for it: as JSON, in answer
 * to WHO.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_WHO_H
#define RMEMFS_SERVER_ADMIN_WHO_H

struct client_request;

void who_answer(struct client_request *req);

#endif
