/* inode_parts.h - what the folders above file/ keep of each inode: laid out behind it, in one block,
 * and called by it through struct inode_hooks.
 */
#ifndef RMEMFS_DAEMON_SERVE_INODE_PARTS_H
#define RMEMFS_DAEMON_SERVE_INODE_PARTS_H

#include "daemon/file/inode.h"

/* For inode_table_init(). */
extern const struct inode_hooks inode_parts_hooks;

#endif
