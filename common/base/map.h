/* map.h - mappings of files of memory.
 *
 * OWNERSHIP  The caller's, until munmap(*addr, len).
 * THREADS    Any.
 */
#ifndef RMEMFS_COMMON_BASE_MAP_H
#define RMEMFS_COMMON_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HUGE_PAGE_BYTES = 2 << 20 };

/* Maps the first len bytes, shared, and so aligned that the kernel can use the file's huge pages.
 * Core dumps leave the mapping out, whatever coredump_filter says. 0 or -errno of fstat(2) and
 * mmap(2). */
int map_file(int fd, uint64_t len, int prot, void **addr);

/* Has the kernel put all pages of the range into this process' page tables (Linux 5.14), so that it
 * can copy there at any time, also while the process is being killed. Without effect where there is
 * no such memory. */
void map_populate(const void *at, size_t len, bool to_write);

#endif
