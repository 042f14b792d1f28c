/* remove_here.h - UNLINK and RMDIR that are answered without the server (file/name_queue.h). */
#ifndef RMEMFS_DAEMON_OPS_REMOVE_HERE_H
#define RMEMFS_DAEMON_OPS_REMOVE_HERE_H

#include <stdbool.h>

struct inode;
struct name_change;
struct request;

/* Takes away the name of an UNLINK or RMDIR from the directory op->inode. False: the server has to
 * be asked. It is asked where
 * - the mount makes no files by itself either, or not now (make_here.h);
 * - the name is not known to be of one inode that has no other name, or this inode or the directory
 *   is being changed;
 * - a directory is not known to be empty (file/inode_names.h);
 * - the server does not know the file yet (unmade.h);
 * - too many names wait.
 *
 * The caller's rights were checked by the kernel (default_permissions), as always: by the
 * directory's mode, owner and lists, and with the sticky bit by the file's owner. All these change
 * through this mount only. The server checks no rights of a session whose users it does not
 * squash. */
bool remove_here(struct request *req);

/* For a RENAME that replaces the inode: whether it goes with the name, if it is no directory. It
 * goes by that change, which is not queued yet; false: it has changed meanwhile. It does not go:
 * the change was not queued. */
bool remove_here_may_go(struct inode *inode);
bool remove_here_let_go(struct inode *inode, struct name_change *one);
void remove_here_take_back(struct inode *inode);

#endif
