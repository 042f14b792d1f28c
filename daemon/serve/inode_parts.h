/* inode_parts.h - the parts of each inode that belong to the folders above file/. They lie behind
 * the inode in one block, and file/ calls them through struct inode_hooks. */
#ifndef RMEMFS_DAEMON_SERVE_INODE_PARTS_H
#define RMEMFS_DAEMON_SERVE_INODE_PARTS_H

#include "daemon/file/inode.h"

/* For inode_table_init(). */
extern const struct inode_hooks inode_parts_hooks;

#endif
