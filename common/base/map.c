/* map.c - see map.h. Some kernels do not align mappings of tmpfs. So map_file() reserves more
 * address space than it needs and unmaps the rest around the file. */
#include "common/base/map.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/nodump.h"
#include "common/base/util.h"

static void unmap_between(const uint8_t *from, const uint8_t *to)
{
	if (from < to)
		munmap((void *)from, (size_t)(to - from));
}

int map_file(int fd, uint64_t len, int prot, void **addr)
{
	uint64_t align, bytes;
	uint8_t *room, *at;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	/* On hugetlbfs the unit may be larger. */
	align = max_u64(HUGE_PAGE_BYTES, (uint64_t)st.st_blksize);
	if (len > SIZE_MAX - align - PAGE_BYTES)
		return -ENOMEM;
	bytes = div_round_up(len, PAGE_BYTES) * PAGE_BYTES;
	room = mmap(
		NULL, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return -errno;
	at = room + (-(uintptr_t)room & (align - 1));
	if (mmap(at, len, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		int err = -errno;

		munmap(room, bytes + align);
		return err;
	}
	nodump_exclude(at, bytes);
	unmap_between(room, at);
	unmap_between(at + bytes, room + bytes + align);
	*addr = at;
	return 0;
}

void map_populate(const void *at, size_t len, bool to_write)
{
	uintptr_t from = (uintptr_t)at & ~(uintptr_t)(PAGE_BYTES - 1);

	madvise((void *)from, (uintptr_t)at + len - from,
		to_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}
