/* make_here.h - CREATE, MKDIR and SYMLINK that are answered without the server (file/unmade.h,
 * file/name_queue.h). */
#ifndef RMEMFS_DAEMON_OPS_MAKE_HERE_H
#define RMEMFS_DAEMON_OPS_MAKE_HERE_H

#include <stdbool.h>
#include <stdint.h>

struct attr;
struct fs;
struct inode;
struct request;

/* Does this mount make files by itself? It has to be asked for (names=local). The mount has its
 * export for itself, its users count as they are, and there are no quotas. Its state is not
 * recorded for a next daemon, which could not know such a file.
 *
 * If it may share later, all that was made or removed here is at the server before it does, and
 * nothing is from the moment on at which another mount waits (conversion.h). If the server ends its
 * session before, since that took too long, such files and changes are lost, as all that was not
 * committed (session_renewal.h). */
bool make_here_is_on(const struct fs *fs);
/* Whether it may do so now: the session lives, and no snapshot, remount or other mount waits until
 * nothing is dirty. */
bool make_here_is_time(struct request *req);
/* Whether a new name in op->inode may be a change that is queued: it may do so now, there is room
 * for one more, and it is known that the directory lacks the name and has no default ACL. */
bool make_here_may_name(struct request *req);
/* Names that an inode can have, at most: fewer than the server allows. */
enum { MAKE_HERE_LINKS_MAX = 1 << 30 };
/* The directory gets the time of the change at once: the kernel asks for its attributes next, which
 * come in *attr. False: the server knows better. */
bool make_here_touch(struct inode *dir, int64_t now, struct attr *attr);
/* Each directory in it counts as a link of the directory. */
void make_here_count_link(struct inode *dir, int change);

/* Makes the file of a CREATE in op->inode, and returns it, with a reference, and its attributes in
 * op->seen. NULL: the server has to be asked. It is asked where
 * - it is not known that the directory lacks the name: by its names, or since the server has said
 *   so, and nothing has changed the name since;
 * - the directory has a default ACL, or is being changed;
 * - no number is lent;
 * - the close of the file would not wait for the server, or its caller asks for more than that: it
 *   is opened for reading only, or O_SYNC or O_DSYNC;
 * - a snapshot or a remount waits until nothing is dirty. */
struct inode *make_here(struct request *req);
/* The same for the directory of a MKDIR. The server is asked where it is asked for a file, but for
 * what depends on the use of the file, and where too many changes of names wait. */
struct inode *make_directory_here(struct request *req);
/* The same for the symbolic link of a SYMLINK. The server is asked for one with a long target, too:
 * it might lack room for that. Its target is known here (inode.queued) until the server has it. */
struct inode *make_symlink_here(struct request *req);

#endif
