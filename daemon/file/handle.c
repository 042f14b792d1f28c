/* handle.c - see handle.h. */
#include "daemon/file/handle.h"

#include <fcntl.h>

#include "daemon/op/fs_parts.h"

bool handle_may_store(const struct request *req)
{
	const struct fs *fs = req->thread->fs;

	return fs->sharing && fs->features.direct_io_allow_mmap &&
	       (req->args.flags & O_ACCMODE) == O_RDWR;
}
