/* change_here.h - what becomes of changes of names and attributes that were answered without the
 * server, when it is told of them (file/name_queue.h). */
#ifndef RMEMFS_DAEMON_OPS_CHANGE_HERE_H
#define RMEMFS_DAEMON_OPS_CHANGE_HERE_H

#include "daemon/file/name_queue.h"

/* A change that the server refuses is logged, and told by fsync of its directory. A name that was
 * removed or changed is there again. A directory, link or name that was made will never be there,
 * nor what was made in it. Attributes are what they were. */
extern const struct name_hooks change_here_hooks;

#endif
