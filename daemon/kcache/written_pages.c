#include "daemon/kcache/written_pages.h"

#include "daemon/file/gate_pass.h"
#include "daemon/file/inode.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"

enum { ROUNDS_MAX = 100 };

/* A pass that is exclusive keeps READs out anyhow. */
static bool drop_locked(struct request *req, struct inode *inode, const struct written_pages *w)
{
	struct gate_pass *pass = &file_op_of(req)->pass.pass;

	if (!kernel_pages_may_be_stored_into_locked(inode))
		return false;
	if (w->rounds < ROUNDS_MAX && kernel_pages_drop_written_locked(
					      inode, req->thread, req->args.offset, req->args.size))
		return true;
	if (pass->kind == GATE_WRITE)
		gate_keep_readers_out(&inode->gate, pass);
	return false;
}

bool written_pages_drop(struct request *req, struct written_pages *w)
{
	struct inode *inode = op_of(req)->inode;
	bool drops;

	if (w->dropped || req->args.cached || !inode->fs->sharing)
		return false;
	pthread_mutex_lock(&inode->lock);
	drops = drop_locked(req, inode, w);
	pthread_mutex_unlock(&inode->lock);
	w->rounds += drops;
	w->dropped = !drops;
	return drops;
}

void written_pages_left(struct written_pages *w)
{
	w->dropped = false;
}
