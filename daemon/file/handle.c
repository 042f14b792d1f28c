/* handle.c - see handle.h. */
#include "daemon/file/handle.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/file/inherited.h"
#include "daemon/file/inode.h"
#include "daemon/op/fs_parts.h"
#include "daemon/record/record.h"

struct handle *handle_new(struct fs *fs)
{
	struct handle *handle =
		fs->inherited ? inherited_alloc(fs->inherited) : calloc(1, sizeof(struct handle));

	if (handle)
		handle->note = record_handle_new(fs->record);
	return handle;
}

void handle_record(const struct handle *handle, uint64_t opened_by)
{
	struct record_handle *note = handle->note;

	if (!note)
		return;
	atomic_store(&note->number, handle_number(handle));
	note->ino = handle->inode->ino;
	note->opened_by = opened_by;
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&note->flags,
		HANDLE_COUNTS | (handle->writes ? HANDLE_WRITES : 0) |
			(handle->appends ? HANDLE_APPENDS : 0) |
			(handle->stores ? HANDLE_STORES : 0) |
			(uint32_t)handle->kind << HANDLE_KIND_SHIFT,
		memory_order_release);
}

void handle_delete(struct fs *fs, struct handle *handle)
{
	if (fs->inherited)
		inherited_remove(fs->inherited, handle);
	record_handle_end(fs->record, handle->note);
	free(handle);
}

bool handle_may_store(const struct request *req)
{
	const struct fs *fs = req->thread->fs;

	return fs_may_share(fs) && fs->features.direct_io_allow_mmap &&
	       (req->args.flags & O_ACCMODE) == O_RDWR;
}
