/* snapshot_copy.h - the thread that writes a snapshot to the disk.
 *
 *     metadata thread                       this thread
 *     snapshot_copy_new       ->            makes the directory          -> COPY_READY
 *     (freeze, marker) snapshot_copy_go ->  records, pages, manifest     -> COPY_ENDED
 *     snapshot_copy_delete    (cancels what is not done, waits for the thread's end)
 *
 * Nothing that is on a disk is touched by the metadata thread.
 *
 * OWNERSHIP  The marker is the caller's and outlives the thread.
 * THREADS    The metadata thread calls these.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_COPY_H
#define RMEMFS_SERVER_SNAPSHOT_COPY_H

#include <stddef.h>
#include <stdint.h>

struct marker;
struct snapshot_copy;

enum copy_phase { COPY_STARTING, COPY_READY, COPY_COPYING, COPY_ENDED };

/* wake_fd is written to when the phase changes. 0 or -errno. */
int snapshot_copy_new(const char *dir, int wake_fd, struct snapshot_copy **out);
void snapshot_copy_go(struct snapshot_copy *c, struct marker *marker);
/* It ends soon, with -ECANCELED. */
void snapshot_copy_cancel(struct snapshot_copy *c);
enum copy_phase snapshot_copy_phase(struct snapshot_copy *c);
/* COPY_ENDED: 0 or -errno and why. */
int snapshot_copy_result(struct snapshot_copy *c, char *why, size_t len);
void snapshot_copy_delete(struct snapshot_copy *c);

#endif
