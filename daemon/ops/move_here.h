/* move_here.h - a RENAME that is answered without the server (file/name_queue.h). */
#ifndef RMEMFS_DAEMON_OPS_MOVE_HERE_H
#define RMEMFS_DAEMON_OPS_MOVE_HERE_H

#include <stdbool.h>

struct inode;
struct request;

/* Gives the name of a RENAME in op->inode the new name in that other directory, or in the same one.
 * False: the server has to be asked. It is asked where
 * - the mount makes no files by itself either, or not now (make_here.h);
 * - names are exchanged, or a device is left behind (flags of renameat2(2));
 * - the name is not known to be an inode's, or the new name is not known to be nobody's, or the
 * only name of what is no directory;
 * - a directory would get another parent, or replace an inode;
 * - one of these or a directory is being changed, or the server does not know it or the last change
 *   of its names yet;
 * - the new name is longer, and replaces none: the server might lack room for it;
 * - too many changes wait.
 *
 * The caller's rights were checked as for remove_here(). */
bool move_here(struct request *req, struct inode *new_dir);

#endif
