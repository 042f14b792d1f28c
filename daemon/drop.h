/* drop.h - dropping from the kernel's cache what a direct write has made old.
 *
 * A handle that uses the cache may write past it by O_DIRECT. The kernel then drops the cached
 * pages before it sends the WRITE, but what is read into the cache again while an asynchronous one
 * is on its way stays there (seen with Linux 6.1). So they are dropped once more when the data is
 * remote. Nobody waits for that: it waits for READs of the same pages, which may wait in the kernel
 * until the WRITEs before them are answered. The same holds for what goes on after its caller was
 * told that it was interrupted: by then the file may have been closed and opened again, cached.
 *
 * OWNERSHIP  Embedded in its inode, which it holds a reference to while a job of it is under way.
 * THREADS    Under the inode's lock; the job on its way belongs to the notifier.
 */
#ifndef RMEMFS_DAEMON_DROP_H
#define RMEMFS_DAEMON_DROP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/notifier.h"

struct fuse_port;
struct inode;

struct drop {
	struct notifier_job job;
	bool running;
	uint64_t from, to; /* bytes noted since it was started; empty: none */
};

/* The bytes [from, to) of the file are newer than what the cache may have. */
void drop_note_locked(struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to);

/* So they are, and the kernel was not told of it by an answer: what it has is dropped now where a
 * handle uses the cache, else when the file is opened so the next time. */
void drop_unseen_locked(struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to);

#endif
