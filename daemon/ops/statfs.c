/* STATFS. umount(8) asks it before anything else. So it is answered without the server, too, by
 * what the server said last. */
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/ops/statfs.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/unmade.h"
#include "daemon/pages/grants.h"
#include "daemon/file/op_inode.h"

void statfs_init(struct statfs_memory *m)
{
	*m = (struct statfs_memory){0};
	pthread_mutex_init(&m->lock, NULL);
}

void statfs_fini(struct statfs_memory *m)
{
	pthread_mutex_destroy(&m->lock);
}

static void keep(struct statfs_memory *m, const struct statfs_values *values)
{
	pthread_mutex_lock(&m->lock);
	m->last = *values;
	pthread_mutex_unlock(&m->lock);
}

static struct statfs_values recall(struct fs *fs)
{
	struct statfs_memory *m = fs->statfs;
	struct statfs_values values;

	pthread_mutex_lock(&m->lock);
	values = m->last;
	pthread_mutex_unlock(&m->lock);
	if (!values.blocks)
		values.blocks = session_info(fs->session)->npages;
	return values;
}

uint64_t statfs_unused_pages(struct fs *fs)
{
	uint64_t taken = 0;

	for (unsigned i = 0; i < IO_THREADS_MAX; i++)
		taken += __atomic_load_n(&fs->threads[i].taken, __ATOMIC_RELAXED);
	return grants_count_unused(fs->grants, taken);
}

/* Free inodes, without those that the server does not know yet. */
static uint64_t free_inodes(struct fs *fs, uint64_t told)
{
	return told - min_u64(told, unmade_count(fs->unmade));
}

static void statfs_answered(struct request *req, const struct rpc_reply *rep)
{
	struct fs *fs = req->thread->fs;
	uint64_t unused = rep->statfs.free_pages + statfs_unused_pages(fs);
	struct statfs_values values = {
		.blocks = rep->statfs.pages,
		.bfree = unused,
		.bavail = unused,
		.files = rep->statfs.inodes + rep->statfs.free_inodes,
		.ffree = free_inodes(fs, rep->statfs.free_inodes),
	};
	int status = rep->status;

	if (!status) {
		keep(fs->statfs, &values);
	} else if (op_ends_with_session(req, status)) {
		values = recall(fs);
		status = 0;
	}
	op_end(req);
	if (status)
		reply_error(req, status);
	else
		reply_statfs(req, &values);
}

void op_statfs(struct request *req)
{
	struct op *op = op_begin(req);
	struct statfs_values values;

	if (remote_disconnected(req->thread) || remote_gives_up(req->thread) ||
		fs_is_renewing(req->thread->fs)) {
		values = recall(req->thread->fs);
		op_end(req);
		reply_statfs(req, &values);
		return;
	}
	op_watch(req); /* given up as soon as the server is lost */
	op->call.req.op = RPC_STATFS;
	op_rpc(req, statfs_answered);
}
