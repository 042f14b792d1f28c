/* The shared policy. A file opened for writing only, or with O_DIRECT, goes past the cache. Large
 * copies then arrive in requests of 1 MiB, without a copy in the kernel.
 *
 * While a file is open, its first handle decides for all. With both kinds at once, each write past
 * the cache would have to drop cached pages before its answer, and dropping waits for other answers
 * of ours. Bytes that were stored into a mapping meanwhile would be written back over it.
 *
 * A kernel below Linux 6.9 can't map a file shared that goes past the cache. It would refuse
 * mmap(2) for as long as such a handle is open, so there every handle uses the cache. With O_DIRECT
 * that kernel then goes past the cache itself, and keeps both in agreement.
 */
#include "daemon/file/cache_policy.h"

#include <fcntl.h>
#include <stdbool.h>

#include "daemon/fuse/port.h"

static enum open_kind shared_kind(struct cache_handles handles, uint32_t flags)
{
	if (handles.nopen)
		return handles.ncached ? OPENED_CACHED : OPENED_DIRECT;
	return (flags & O_ACCMODE) == O_WRONLY || (flags & O_DIRECT) ? OPENED_DIRECT
								     : OPENED_CACHED;
}

/* Writers go past the cache beside them. Each write has its pages dropped (stale_pages.h). */
static enum open_kind readers_kind(struct cache_handles handles, uint32_t flags)
{
	bool reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECT);

	return reads && handles.nopen == handles.ncached ? OPENED_CACHED : OPENED_DIRECT;
}

enum open_kind cache_open_kind(enum cache_mode mode, const struct fs_features *features,
	struct cache_handles handles, uint32_t flags)
{
	if (mode == CACHE_NONE)
		return OPENED_DIRECT;
	if (mode == CACHE_READERS)
		return readers_kind(handles, flags);
	if (mode == CACHE_EXCLUSIVE || !features->direct_io_allow_mmap)
		return OPENED_CACHED;
	return shared_kind(handles, flags);
}
