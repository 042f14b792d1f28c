/* way.c - see way.h. */
#include "daemon/serve/way.h"

#include <errno.h>

#include "daemon/barrier/abandoned.h"
#include "daemon/barrier/conversion.h"
#include "daemon/barrier/remount.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/file/commit.h"
#include "daemon/file/inherited.h"
#include "daemon/file/op_inode.h"
#include "daemon/file/revived.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/append_order.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/wait_aside.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/ops/finish.h"
#include "daemon/ops/ops.h"
#include "daemon/request/trace.h"
#include "daemon/serve/interrupt.h"
#include "daemon/squash/permission.h"

/* ---- operation ------------------------------------------------------------------------------- */

static void carry_out(struct request *req)
{
	static void (*const ops[OP_NOPS])(struct request * req) = {
		[OP_LOOKUP] = op_lookup,
		[OP_FORGET] = request_end,
		[OP_GETATTR] = op_getattr,
		[OP_SETATTR] = op_setattr,
		[OP_READLINK] = op_readlink,
		[OP_SYMLINK] = op_symlink,
		[OP_MKNOD] = op_mknod,
		[OP_MKDIR] = op_mkdir,
		[OP_UNLINK] = op_unlink,
		[OP_RMDIR] = op_rmdir,
		[OP_RENAME] = op_rename,
		[OP_LINK] = op_link,
		[OP_OPEN] = op_open,
		[OP_READ] = op_read,
		[OP_WRITE] = op_write,
		[OP_STATFS] = op_statfs,
		[OP_RELEASE] = op_release,
		[OP_FSYNC] = op_fsync,
		[OP_FLUSH] = op_flush,
		[OP_OPENDIR] = op_opendir,
		[OP_READDIR] = op_readdir,
		[OP_RELEASEDIR] = op_releasedir,
		[OP_FSYNCDIR] = op_fsyncdir,
		[OP_CREATE] = op_create,
		[OP_LSEEK] = op_lseek,
		[OP_GETXATTR] = op_getxattr,
		[OP_LISTXATTR] = op_listxattr,
		[OP_SETXATTR] = op_setxattr,
		[OP_REMOVEXATTR] = op_removexattr,
		[OP_FALLOCATE] = op_fallocate,
		[OP_COPY] = op_copy,
		[OP_TMPFILE] = op_tmpfile,
		[OP_STATX] = op_getattr,
		[OP_REMOUNT] = op_remount,
		[OP_GETLK] = op_getlk,
		[OP_SETLK] = op_setlk,
	};

	ops[req->op](req);
}

/* A mount that is alone has no lease, but perhaps a place to append at. */
static_assert(sizeof(struct revived_state) <= offsetof(struct shared_op, append),
	"a request that waits for what a killed daemon knew keeps its place");

static void is_known(struct request *req, int status)
{
	if (!status) {
		carry_out(req);
		return;
	}
	append_order_leave(req, status);
	if (req->op == OP_WRITE && req->args.cached)
		commit_pages_failed(op_of(req)->inode, status);
	op_finish(req, status);
}

static void know(struct request *req)
{
	const struct fs *fs = req->thread->fs;

	if (!fs->revived || fs->sharing || revived_enter(req, is_known))
		carry_out(req);
}

static void buffer_is_back(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status) {
		lease_leave(req);
		op_refuse(req, status);
		return;
	}
	request_unstow(req);
	know(req);
}

static void operation(struct request *req)
{
	if (request_lacks_buffer(req)) {
		op_watch_begin(req);
		op_take_buffer(req, buffer_is_back);
	} else {
		know(req);
	}
}

/* ---- lease ----------------------------------------------------------------------------------- */

static void leased(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status)
		op_refuse(req, status);
	else
		operation(req);
}

static void lease(struct request *req)
{
	if (lease_admit(req, leased))
		operation(req);
	else
		wait_aside(req);
}

/* ---- turn ------------------------------------------------------------------------------------ */

/* A mount that is alone notes what the kernel caches if other clients may come. */
static void alone(struct request *req)
{
	if (!fs_may_share(req->thread->fs) || kernel_pages_note_alone(req))
		operation(req);
	else
		op_refuse(req, -ENOMEM);
}

static void in_turn(struct request *req)
{
	if (req->thread->fs->sharing)
		lease(req);
	else
		alone(req);
}

static void turn_has_come(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status)
		op_refuse(req, status);
	else
		in_turn(req);
}

static void turn(struct request *req)
{
	if (append_order_enter(req, turn_has_come))
		in_turn(req);
	else
		wait_aside(req);
}

/* ---- squash ---------------------------------------------------------------------------------- */

static void permission(struct request *req)
{
	if (permission_enter(req, turn))
		turn(req);
}

/* ---- barrier --------------------------------------------------------------------------------- */

static void pass_renewal(struct request *req)
{
	if (!fs_may_share(req->thread->fs) || session_renewal_enter(req))
		permission(req);
}

/* A request that was held may have to take a place to append at now: the mount shares since. */
void way_barrier_over(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status) {
		op_refuse(req, status);
		return;
	}
	append_order_queue(req);
	pass_renewal(req);
}

/* A request that was held may have to take a place now: the mount shares since. */
static void pass_conversion(struct request *req)
{
	append_order_queue(req);
	if (abandoned_enter(req, way_barrier_over))
		pass_renewal(req);
}

void way_conversion_over(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status)
		op_refuse(req, status);
	else
		pass_conversion(req);
}

void way_barrier(struct request *req)
{
	struct io_thread *thread = req->thread;
	struct fs *fs = thread->fs;

	if (atomic_load_explicit(&fs->tracing, memory_order_relaxed))
		trace_begin(req, req->node);
	if (fs->inherited && !inherited_translate(fs->inherited, req)) {
		reply_error(req, req->op == OP_RELEASE ? 0 : -EBADF);
		return;
	}
	append_order_queue(req);
	session_renewal_note_arrival(req);
	if (!fs->options.session.converts || conversion_enter(req))
		pass_conversion(req);
	if (remote_gives_up(thread))
		interrupt_all_failing(thread);
}

bool way_begins_anew(struct request *req, int *error)
{
	return fs_may_share(req->thread->fs) && session_renewal_takes_back(req, error);
}
