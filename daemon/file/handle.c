/* handle.c - see handle.h. */
#include "daemon/file/handle.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/file/inherited.h"
#include "daemon/op/fs_parts.h"

struct handle *handle_new(struct fs *fs)
{
	return fs->inherited ? inherited_alloc(fs->inherited) : calloc(1, sizeof(struct handle));
}

void handle_delete(struct fs *fs, struct handle *handle)
{
	if (fs->inherited)
		inherited_remove(fs->inherited, handle);
	free(handle);
}

bool handle_may_store(const struct request *req)
{
	const struct fs *fs = req->thread->fs;

	return fs_may_share(fs) && fs->features.direct_io_allow_mmap &&
	       (req->args.flags & O_ACCMODE) == O_RDWR;
}
