/* cut_guard.h - mappings of files that another process may cut, without a SIGBUS that ends us.
 *
 * Any process that has a file of memory open for writing can cut it by ftruncate(2), or punch holes
 * into it by fallocate(2) and use up the memory. From then on each access to the lost pages by
 * another process that has mapped them is a SIGBUS. For guarded mappings a handler puts zero pages
 * of this process in the place of the lost ones, and sets the mapping's flag. The access goes on.
 * Later accesses reach those zero pages, so nothing in the mapping is trusted any more once the
 * flag is set. A memory error that the hardware reports ends in the same way.
 *
 * System calls on the lost pages return EFAULT and set no flag.
 *
 * OWNERSHIP  The caller's: guard, mapping and flags stay where they are from cut_guard_add() to
 *            cut_guard_remove(). The handler is the whole process's from the first of these on.
 * THREADS    Any. A thread that touches a guarded mapping must not block SIGBUS: the kernel then
 *            ends the process.
 * ERRORS     A SIGBUS elsewhere ends the process, as without a handler.
 * SOURCE     mmap(2), sigaction(2); shmem_fault() in mm/shmem.c and hugetlb_fault() in
 * mm/hugetlb.c.
 */
#ifndef RMEMFS_COMMON_BASE_CUT_GUARD_H
#define RMEMFS_COMMON_BASE_CUT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/base/list.h"

struct cut_guard {
	struct list link;
	uint8_t *addr;
	uint64_t len;
	uint64_t block;     /* bytes that the handler replaces at once: a page of the file */
	atomic_bool struck; /* an access has met a lost page */
	atomic_bool *also;  /* set, too; NULL: none */
};

/* Guards the mapping of a file's first len bytes. The first access to a lost page sets g->struck
 * and *also, which several mappings may share (NULL: none). 0, or -errno of fstat(2): nothing is
 * guarded then. */
int cut_guard_add(struct cut_guard *g, int fd, void *addr, uint64_t len, atomic_bool *also);
/* To be called before munmap(2), when no thread touches the mapping any more. Harmless on a guard
 * that is all zero. */
void cut_guard_remove(struct cut_guard *g);

/* After an access: whether it, or an earlier one, has met a lost page. */
static inline bool cut_guard_is_struck(const struct cut_guard *g)
{
	return atomic_load_explicit(&g->struck, memory_order_relaxed);
}

/* After an access to these bytes: whether some of them are in a guarded mapping that has met a lost
 * page. Each vector lies in one mapping. Cheap while no mapping has met any. */
bool cut_guard_have_lost(const struct iovec *iov, int niov);

#endif
