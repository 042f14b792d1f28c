/* inode_here.h - what is known of an inode when the server has learnt of changes that this client has
 * made by itself (name_queue.h, unmade.h).
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_FILE_INODE_HERE_H
#define RMEMFS_DAEMON_FILE_INODE_HERE_H

struct inode;

/* The server knows by now what was made of the inode here. If it squashes users since, it may have
 * made something else of it: then it is asked. */
void inode_settle_squash_locked(struct inode *inode);
void inode_settle_squash(struct inode *inode);
/* A change of names in the directory is known to the server by now. If nothing is known here of its
 * attributes, an answer from before is not believed. */
void inode_settle_names(struct inode *dir);

#endif
