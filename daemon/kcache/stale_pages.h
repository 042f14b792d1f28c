/* stale_pages.h - dropping pages from the kernel's cache that a direct write has made old.
 *
 * A file may be written past the cache while its pages are read into it: by O_DIRECT where handles
 * use the cache, and beside a mapping where they don't, or beside handles that only read. The
 * kernel then drops the cached pages before it sends the WRITE. But pages that are read into the
 * cache again while an asynchronous WRITE is on its way stay there (seen with Linux 6.1 and 6.18).
 * So they are dropped once more when the data is remote. If a READ for the cache has touched the
 * same bytes, the answer waits for that: a read after it sees what was written.
 *
 *     WRITE's data is remote -> stale_pages_note_locked -> COMMIT, if any -> stale_pages_wait ->
 *     the answer
 *
 * The drop waits for READs and writebacks of the same pages, which the kernel sends only while few
 * other requests are unanswered. So a few answers may wait at once, without data buffers and
 * outside of the inode's gate. Further answers are given at once, as all are that no caller waits
 * for any more. By the time such a write ends, the file may have been closed and opened again,
 * cached.
 *
 * OWNERSHIP  Embedded in its inode, which it holds a reference to while a job of it is under way.
 * THREADS    Under the inode's lock; the job on its way belongs to the notifier.
 */
#ifndef RMEMFS_DAEMON_KCACHE_STALE_PAGES_H
#define RMEMFS_DAEMON_KCACHE_STALE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "daemon/fuse/notifier.h"

struct fuse_port;
struct inode;
struct request;

/* Waiting answers of a mount: fewer than the requests of a thread, or than the requests that the
 * kernel has under way (fuse/init.c). */
enum { DROP_WAITING_MAX = 64 };

struct stale_pages {
	struct inode *inode;
	struct notifier_job job;
	bool running;
	uint64_t from, to;           /* bytes noted since it was started; empty: none */
	uint64_t round;              /* the last round that was started */
	uint64_t read_from, read_to; /* READs for the cache were within these bytes */
	struct list waiters;         /* struct waiter */
};

void stale_pages_init(struct stale_pages *d, struct inode *inode);

/* The bytes [from, to) of the file are newer than those in the cache. Returns the round that drops
 * them, for stale_pages_wait(); 0: no READ has brought them into the cache. */
uint64_t stale_pages_note_locked(
	struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to);

/* The same where no answer told the kernel of the change. The pages are dropped now if a program
 * can see them, else when the file is opened cached the next time. */
uint64_t stale_pages_unseen_locked(
	struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to);

/* A READ brings these bytes into the cache. */
void stale_pages_read_locked(struct inode *inode, uint64_t from, uint64_t to);
/* No handle of the file is open: a program that maps it next sees nothing of the cache. */
void stale_pages_forget_reads_locked(struct inode *inode);

/* Waits until the round is over; then(req, 0) goes on, without the data buffer. True: it is over,
 * or too many wait, and then() is not called. */
bool stale_pages_wait(
	struct request *req, uint64_t round, void (*then)(struct request *req, int status));

#endif
