/* nodump.h - memory that core dumps leave out (MADV_DONTDUMP, madvise(2)): for keys, and for bytes
 * of files and messages on their way. A core dump shows all other memory, so a crash can still be
 * debugged.
 *
 * Files that are mapped and shared are left out by default, but coredump_filter (core(5)) can put
 * them in; nodump_exclude() keeps them out then, too.
 *
 * OWNERSHIP  What nodump_map() gave goes back by nodump_unmap(), all else by nodump_free(). The
 *            heap behind nodump_alloc() keeps what was freed for later.
 * THREADS    Any. The heap has one lock: it is not for the data path.
 * ERRORS     NULL: no memory.
 *
 * Under the sanitizers the heap is malloc(3)'s, so that they find errors.
 */
#ifndef RMEMFS_COMMON_BASE_NODUMP_H
#define RMEMFS_COMMON_BASE_NODUMP_H

#include <stddef.h>

/* Whole pages of zeros. */
void *nodump_map(size_t bytes);
void nodump_unmap(void *addr, size_t bytes); /* NULL: does nothing */

/* Excludes a mapping that somebody else made. addr is at the start of a page. */
void nodump_exclude(void *addr, size_t bytes);

/* As malloc(3), calloc(3) for one, realloc(3), free(3). 0 bytes: NULL. */
void *nodump_alloc(size_t bytes);
void *nodump_zalloc(size_t bytes);
void *nodump_realloc(void *p, size_t bytes);
void nodump_free(void *p);

#endif
