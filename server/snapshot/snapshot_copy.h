/* snapshot_copy.h - the thread that writes a snapshot to the disk.
 *
 *     metadata thread                       this thread
 *     snapshot_copy_new       ->            empties the set of this snapshot, if it is the first
 *                                           of it; makes the directory  -> COPY_READY
 *     (freeze, marker) snapshot_copy_go ->  records, pages, manifest,
 *                                           its name                     -> COPY_ENDED
 *     snapshot_copy_end       (cancels what is not done, waits for the thread's end)
 *
 * The metadata thread touches nothing that is on a disk.
 *
 * OWNERSHIP  The marker is the caller's and outlives the thread.
 * THREADS    The metadata thread calls these.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_SNAPSHOT_COPY_H
#define RMEMFS_SERVER_SNAPSHOT_SNAPSHOT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct marker;
struct snapshot_copy;

enum copy_phase { COPY_STARTING, COPY_READY, COPY_COPYING, COPY_ENDED };

/* clear: a set to empty first (snapshot_sets.h), or NULL. The thread writes to wake_fd when the
 * phase changes. 0 or -errno. */
int snapshot_copy_new(const char *dir, const char *clear, int wake_fd, struct snapshot_copy **out);
void snapshot_copy_go(struct snapshot_copy *c, struct marker *marker);
/* True: it ends soon, with -ECANCELED, and nothing is left. False: the snapshot is whole on the
 * disk and is getting its name, or it has ended. Then the result comes as usual. */
bool snapshot_copy_cancel(struct snapshot_copy *c);
enum copy_phase snapshot_copy_phase(struct snapshot_copy *c);
/* How often the disk has taken something. The number stands still while the thread waits for the
 * disk. */
uint64_t snapshot_copy_steps(struct snapshot_copy *c);
/* Waits for the thread's end and frees it. 0: the snapshot is whole; or -errno and why. */
int snapshot_copy_end(struct snapshot_copy *c, char *why, size_t len);

#endif
