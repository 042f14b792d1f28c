/* export_status.h - the exports in a server's status.
 *
 * OWNERSHIP  json_decref() frees what export_status_fetch() returns; the others borrow of it.
 */
#ifndef RMEMFS_DAEMON_CTL_EXPORT_STATUS_H
#define RMEMFS_DAEMON_CTL_EXPORT_STATUS_H

#include <jansson.h>

/* NULL: the reason is logged. */
json_t *export_status_fetch(const char *where);
/* "": it has none. */
const char *export_status_name(const json_t *export);
/* NULL: the server has no export of that name. */
const json_t *export_status_find(const json_t *root, const char *name);
unsigned export_status_mounts(const json_t *root, const char *export);

#endif
