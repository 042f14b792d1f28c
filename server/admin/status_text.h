/* status_text.h - answers that are a JSON text. The channel that asked keeps the text, and it goes
 * out in pieces.
 *
 * THREADS  The metadata thread.
 */
#ifndef RMEMFS_SERVER_ADMIN_STATUS_TEXT_H
#define RMEMFS_SERVER_ADMIN_STATUS_TEXT_H

#include <jansson.h>
#include <stdint.h>

struct conn;
struct client_request;

/* JSON is UTF-8; names of clients and files need not be. Then bytes that are not ASCII become
 * '?'. */
json_t *status_text_string(const char *text);

/* Keeps root's text instead of the one before, and drops root. -ENOMEM: also if root is NULL. */
int status_text_take(struct conn *c, json_t *root);
/* Answers with the piece from offset on, or refuses. */
void status_text_put(struct client_request *req, uint32_t offset);

#endif
