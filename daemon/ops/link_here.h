/* link_here.h - a LINK that is answered without the server (file/name_queue.h). */
#ifndef RMEMFS_DAEMON_OPS_LINK_HERE_H
#define RMEMFS_DAEMON_OPS_LINK_HERE_H

#include <stdbool.h>

struct inode;
struct request;

/* Gives the inode, which is no directory, the name of a LINK in op->inode, too. Its attributes are
 * in op->seen then. False: the server has to be asked. It is asked where
 * - it would be asked for a new directory (make_here.h), also where no number is lent: the new name
 *   takes the room of one;
 * - the inode has no name, or as many as it can have, or is being changed, or the server does not
 *   know it or the last change of its names yet.
 *
 * The caller's rights were checked as for remove_here(). */
bool link_here(struct request *req, struct inode *inode);

#endif
