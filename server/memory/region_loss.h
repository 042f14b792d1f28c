/* region_loss.h - notices that a region's file has lost bytes while the server runs.
 *
 * A client over shm gets the descriptors of its export's region files. With one that is open for
 * writing it can do what any process can do with its own file of memory:
 *
 *     ftruncate(2) shorter, fallocate(2) of a hole     the bytes are lost, for all
 *     ftruncate(2) longer                              takes memory; the next start would refuse it
 *     F_SETFL (O_APPEND)                               write(2) by our descriptor would append
 *     F_ADD_SEALS                                      EPERM: files of tmpfs and hugetlbfs can't be
 *                                                      sealed, only memfds can
 *     fchmod(2), fchown(2), FS_IOC_SETFLAGS            the next start may fail to open the file
 *     F_SETLEASE                                       EAGAIN as long as we have the file open
 *     flock(2), F_SETLK                                nobody asks for such locks
 *     F_SETPIPE_SZ                                     EBADF
 *     open(2) of /proc/self/fd/N                       as the file's mode allows it: root and the
 *                                                      server's user get from a descriptor that
 *                                                      only reads one that writes
 *
 * A seal against cutting would need memfds. These go with their last process, and regions outlive
 * the server. So the server survives a cut: its mappings are guarded (cut_guard.h), it never writes
 * by a descriptor, and it looks at the files' lengths and blocks now and then.
 *
 * A loss is for good. A file that was cut and filled again between two looks goes unnoticed: that
 * is the same as zeros that the client wrote, which it may.
 *
 * THREADS    The metadata thread. Only export.lost is read by others; a thread that touches memory
 *            sets it, too.
 */
#ifndef RMEMFS_SERVER_MEMORY_REGION_LOSS_H
#define RMEMFS_SERVER_MEMORY_REGION_LOSS_H

#include <stdbool.h>

#include "server/memory/exports.h"

/* Looks at all region files of an export. True: one has lost bytes, and this was not known before:
 * region_file.lost and export.lost are set, and the log names each file once. A file that is too
 * long is cut to its length. */
bool region_loss_look(struct export *export);

/* How many regions of the export are lost, as the last look found. */
uint32_t region_loss_count(const struct export *export);

#endif
