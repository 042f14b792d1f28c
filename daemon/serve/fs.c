#include "daemon/serve/inode_parts.h"
#include "daemon/serve/fs.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/request/caller.h"
#include "daemon/request/trace.h"
#include "daemon/serve/fs_block.h"
#include "daemon/fuse/port.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/append_order.h"
#include "daemon/ops/finish.h"
#include "daemon/lease/wait_aside.h"
#include "daemon/fuse/fuse_ops.h"
#include "daemon/remote/session.h"

enum { DISCONNECT_MS = 1500, FAILING_LOG_MS = 30000, ASIDE_SHARE = 4 };

static void begin_held(struct request *req, int status);

/* ---- life ------------------------------------------------------------------------------------ */

/* The first gives work to the second. */
static struct notifier *notifier_of(struct fs *fs, unsigned i)
{
	struct notifier *const all[] = {&fs->notifier, &fs->expirer, &fs->dropper, &fs->giver};

	return i < ARRAY_SIZE(all) ? all[i] : NULL;
}

static void notifiers_stop(struct fs *fs, unsigned n)
{
	for (unsigned i = 0; i < n && notifier_of(fs, i); i++)
		notifier_stop(notifier_of(fs, i));
}

static int notifiers_start(struct fs *fs)
{
	for (unsigned i = 0; notifier_of(fs, i); i++) {
		int r = notifier_start(notifier_of(fs, i));

		if (r) {
			notifiers_stop(fs, i);
			return r;
		}
	}
	return 0;
}

void fs_stop_telling(struct fs *fs, struct fuse_port *port)
{
	for (unsigned i = 0; notifier_of(fs, i); i++)
		fuse_port_refuse_until(port, notifier_end(notifier_of(fs, i)));
}

void fs_fini(struct fs *fs)
{
	inode_table_fini(fs->inodes);
	expiries_fini(fs->expiries);
	session_renewal_fini(fs->renewal);
	remount_fini(fs->remount);
	locks_fini(fs->locks);
	snapshot_freeze_fini(fs->freeze);
	statfs_fini(fs->statfs);
	quota_allowance_fini(fs->allowances);
	last_resort_fini(fs->releases);
	inode_return_fini(fs->returns);
	local_answer_fini(fs->looks);
	lease_keeper_fini(fs->leases);
	grants_fini(fs->grants);
}

static uint64_t machine_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int fs_init(struct fs_block *block, const struct fs_options *options)
{
	struct fs *fs = &block->fs;
	int r;

	memset(block, 0, sizeof(*block));
	fs_wire(fs, &block->parts);
	fs->options = *options;
	fs->sharing = options->session.sharing;
	fs->requests.sharing = options->session.sharing;
	fs->requests.interrupt_wait_ms = options->interrupt_wait_ms;
	fs->requests.aside_max = machine_memory() / ASIDE_SHARE;
	r = inode_table_init(fs->inodes, &inode_parts_hooks);
	if (r)
		return r;
	r = options->session.sharing ? local_answer_init(fs->looks) : 0;
	if (r) {
		inode_table_fini(fs->inodes);
		return r;
	}
	grants_init(fs->grants);
	grant_refill_init(fs->refill, &inode_return_refill_holders);
	inode_return_init(fs->returns);
	lease_keeper_init(fs->leases);
	last_resort_init(fs->releases);
	quota_allowance_init(fs->allowances);
	statfs_init(fs->statfs);
	snapshot_freeze_init(fs->freeze, fs);
	locks_init(fs->locks);
	expiries_init(fs->expiries);
	remount_init(fs->remount, fs, options->session.read_only);
	session_renewal_init(fs->renewal, fs, begin_held);
	abandoned_init(fs->leftovers, fs);
	atomic_init(&fs->access->mode, options->access);
	atomic_init(&fs->access->nodiratime, options->nodiratime);
	access_time_set_read_only(fs->access, options->session.read_only);
	return 0;
}

int fs_open(const struct fs_options *options, struct fs **out, char *why, size_t whylen)
{
	struct fs_block *block = malloc(sizeof(*block));
	int r = block ? fs_init(block, options) : -ENOMEM;
	struct fs *fs = &block->fs;

	if (r) {
		free(block);
		snprintf(why, whylen, "%s", errno_text(r));
		return r;
	}
	r = notifiers_start(fs);
	if (r) {
		snprintf(why, whylen, "cannot start a thread: %s", errno_text(r));
		goto err_fs;
	}
	r = session_new(&options->session, &fs_session_events, &fs->session, why, whylen);
	if (r)
		goto err_notifiers;
	*out = fs;
	return 0;

err_notifiers:
	notifiers_stop(fs, UINT_MAX);
err_fs:
	fs_fini(fs);
	free(fs);
	return r;
}

void fs_close(struct fs *fs)
{
	notifiers_stop(fs, UINT_MAX);
	fs_fini(fs);
	session_delete(fs->session);
	free(fs);
}

const char *fs_server(const struct fs *fs)
{
	return session_server(fs->session);
}

struct transport *fs_transport(struct fs *fs)
{
	return session_transport(fs->session);
}

void fs_set_features(struct fs *fs, const struct fs_features *features)
{
	fs->features = *features;
}

void fs_thread_prepare(struct fs *fs, struct io_thread *thread)
{
	struct fs_thread *ft = &fs->threads[thread->index];

	thread->ops = &fs_fuse_ops;
	thread->shared = &fs->requests;
	*ft = (struct fs_thread){.thread = thread,
		.landing = &fs->parts->threads[thread->index].landing,
		.freeze = &fs->parts->threads[thread->index].freeze};
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	list_init(&ft->interrupted);
	list_init(&ft->lock_waits);
	snapshot_freeze_thread_init(ft->freeze, thread);
}

int fs_thread_init(struct fs *fs, struct io_thread *thread)
{
	if (thread->index >= IO_THREADS_MAX)
		return -EINVAL;
	fs_thread_prepare(fs, thread);
	return remote_init(thread, fs->session);
}

void fs_thread_fini(struct io_thread *thread)
{
	remote_fini(thread);
}

/* The root is there from the beginning to the end. */
static int make_root(struct fs *fs, const struct attr *attr)
{
	fs->root = inode_get(fs, ROOT_INO);
	if (!fs->root)
		return -ENOMEM;
	inode_learn(fs->root, attr, inode_epoch(fs), NULL);
	return 0;
}

int fs_connect(struct fs *fs, char *why, size_t whylen)
{
	int r = session_connect(fs->session, fs->threads[0].thread, why, whylen);

	if (r)
		return r;
	grant_refill_set_limit(fs->refill, session_info(fs->session)->npages);
	r = make_root(fs, &session_info(fs->session)->root);
	if (r)
		snprintf(why, whylen, "out of memory");
	return r;
}

void fs_disconnect(struct fs *fs)
{
	for (unsigned i = IO_THREADS_MAX; i-- > 0;)
		if (fs->threads[i].thread)
			remote_stop(fs->threads[i].thread, DISCONNECT_MS);
	session_disconnect(fs->session, fs->threads[0].thread);
}

/* ---- a soft mount without its server --------------------------------------------------------- */

static void log_unsafe(struct request *req)
{
	static struct log_ratelimit limit;

	if ((req->op == OP_FLUSH || req->op == OP_FSYNC) && log_ratelimit_ok(&limit, 1000))
		log_warning("inode %llu: what was written is not safe yet: it will be committed if "
			    "the server comes back before the mount ends",
			(unsigned long long)req->node);
}

static void log_failing(const struct fs *fs)
{
	static struct log_ratelimit limit;

	if (log_ratelimit_ok(&limit, FAILING_LOG_MS))
		log_warning("server %s: no sign of life for %u s: operations fail with EIO (soft "
			    "mount)",
			session_server(fs->session), fs->options.session.soft_ms / 1000);
}

/* What was sent holds its request, slot and buffer until the server is back; all else is ended. So
 * there is always room for the next request, or it can be refused at once. */
static void fail_one(struct request *req)
{
	struct op *op = op_of(req);

	/* Nobody would close it again: it waits for the next session, which soft mounts get, too.
	 */
	if (op->wait == OP_RUNS || req->op == OP_RELEASE || req->op == OP_RELEASEDIR)
		return;
	if (!req->replied) {
		log_failing(req->thread->fs);
		log_unsafe(req);
	}
	if (!op_cancel(req, -EIO) && op_is_sent(op))
		abandoned_make(req, -EIO);
}

static void fail_waiting(struct io_thread *thread)
{
	request_each(thread, fail_one);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void fs_run(struct request *req)
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

static void run_stowed(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status) {
		lease_leave(req);
		op_refuse(req, status);
		return;
	}
	request_unstow(req);
	fs_run(req);
}

static void fs_go_on(struct request *req)
{
	if (request_lacks_buffer(req)) {
		op_watch_begin(req);
		op_take_buffer(req, run_stowed);
	} else {
		fs_run(req);
	}
}

static void run_leased(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status)
		op_refuse(req, status);
	else
		fs_go_on(req);
}

static void fs_admit(struct request *req)
{
	if (lease_admit(req, run_leased))
		fs_go_on(req);
	else
		wait_aside(req);
}

static void admit_in_turn(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status)
		op_refuse(req, status);
	else
		fs_admit(req);
}

static void fs_begin(struct request *req)
{
	if (!req->thread->fs->sharing)
		fs_go_on(req);
	else if (!session_renewal_enter(req))
		return;
	else if (append_order_enter(req, admit_in_turn))
		fs_admit(req);
	else
		wait_aside(req);
}

static void begin_held(struct request *req, int status)
{
	list_del(&op_of(req)->interrupted);
	if (status)
		op_refuse(req, status);
	else
		fs_begin(req);
}

static bool begins_anew(struct request *req, int *error)
{
	return req->thread->fs->sharing && session_renewal_takes_back(req, error);
}

void fs_dispatch(struct request *req)
{
	struct io_thread *thread = req->thread;

	if (thread->fs->options.debug_io)
		trace_begin(req, req->node);
	if (thread->fs->sharing)
		append_order_queue(req);
	if (abandoned_enter(req, begin_held))
		fs_begin(req);
	if (remote_gives_up(thread))
		fail_waiting(thread);
}

static void forget_node(struct io_thread *thread, const struct forget *forget)
{
	struct inode *inode;

	if (forget->node == ROOT_INO)
		return;
	inode = inode_of_node(thread->fs, forget->node);
	assert(inode);
	inode_forget(inode, forget->nlookup);
	if (thread->fs->sharing)
		lease_settle(inode, thread);
	inode_put(inode);
}

/* When this thread's connection is up: not on others, or on pages and leases of other clients, for
 * which what the kernel has locked may wait, too. */
static bool ends_by_itself(const struct request *req, const struct op *op)
{
	if (req->op != OP_STATFS && (op->wait == OP_AT_RPC || op->wait == OP_AT_DROP) &&
		req->thread->fs->sharing)
		return false;
	return op->wait != OP_AT_PAGES && op->wait != OP_AT_QUOTA && op->wait != OP_AT_RELEASE &&
	       op->wait != OP_AT_LEFTOVERS && op->wait != OP_AT_REMOUNT &&
	       op->wait != OP_AT_LEASE && op->wait != OP_AT_RENEWAL && op->wait != OP_AT_APPEND;
}

/* The kernel flushes what a process that exits has open, and tells of no signal. umount(8) asks for
 * STATFS before anything else: that waits for nobody. */
static bool waits_for_ever(const struct request *req)
{
	bool signalled = req->interrupted || req->op == OP_FLUSH;

	return req->op != OP_STATFS &&
	       !caller_ends_wait(req->thread, req->pid, signalled, req->since_ms);
}

static bool fs_changes_data(const struct request *req)
{
	return req->op == OP_WRITE || req->op == OP_FALLOCATE;
}

/* While the server answers, every wait ends soon by itself, and an EINTR that the application does
 * not expect of a file would do harm. Without it a process that is killed must not hang; and the
 * kernel does not tell of the signal that kills after it has told of another one. A caller that was
 * answered wants nothing any more. True: it has ended. */
static bool fs_give_up(struct request *req)
{
	struct op *op = op_of(req);
	bool disconnected = remote_disconnected(req->thread);

	if ((!disconnected && ends_by_itself(req, op)) || (!req->replied && waits_for_ever(req)))
		return false;
	list_del(&op->interrupted);
	if (op_cancel(req, -EINTR))
		return true;
	if (disconnected) {
		abandoned_make(req, -EINTR);
	} else if (op->wait == OP_AT_RPC) {
		rpc_withdraw(req->thread, &op->call);
		/* Of what changes something the answer is waited for: it has happened, or it has
		 * not. So is what goes on to change data behind that. */
		if (!rpc_op_info(op->call.req.op)->mutates && !fs_changes_data(req))
			request_abandon(req, -EINTR);
	}
	return false;
}

static void look_after(struct request *req)
{
	if (!fs_give_up(req))
		op_watch(req);
}

void fs_interrupt(struct request *req)
{
	if (!req->interrupted)
		req->since_ms = io_thread_now(req->thread);
	req->interrupted = true;
	look_after(req);
}

/* What one that ends has held up may end with it, and is taken from the same list then. */
static void give_up_interrupted(struct fs_thread *ft)
{
	struct list look, *link;

	list_init(&look);
	list_splice_tail(&look, &ft->interrupted);
	while ((link = list_pop(&look)))
		look_after(request_of_state(list_entry(link, struct op, interrupted)));
}

/* ---- the threads' turns ---------------------------------------------------------------------- */

enum { COMMIT_MS = 1000, IDLE_CHECK_MS = 1000 };

void fs_event(struct io_thread *thread, const struct event *ev)
{
	remote_event(thread, ev);
	session_renewal_step(thread);
	snapshot_freeze_step(thread);
	remount_step(thread);
}

void fs_tick(struct io_thread *thread, int64_t now)
{
	struct fs_thread *ft = fs_thread_of(thread);

	remote_tick(thread, now);
	session_renewal_step(thread);
	snapshot_freeze_step(thread);
	remount_step(thread);
	give_up_interrupted(ft);
	lock_tick(thread);
	if (remote_gives_up(thread))
		fail_waiting(thread);
	/* Until there is a session again there is nothing to tell the server. */
	if (fs_is_renewing(thread->fs))
		return;
	if (now >= ft->next_commit_ms) {
		ft->next_commit_ms = now + COMMIT_MS;
		commit_tick(thread);
		access_time_tick(thread);
	}
	inode_return_flush(thread);
	if (thread->fs->sharing)
		lease_keep_flush(thread);
	if (!thread->index && now >= ft->next_idle_ms) {
		ft->next_idle_ms = now + IDLE_CHECK_MS;
		grant_refill_tick(thread, now);
		quota_allowance_tick(thread, now);
	}
}

void fs_stop(struct io_thread *thread, unsigned limit_ms)
{
	struct fs_thread *ft = fs_thread_of(thread);

	session_leave_place(thread->fs->session);
	ft->stopping = true;
	ft->stop_by_ms = io_thread_now(thread) + limit_ms;
}

/* Also those are listed that another thread tells something of, such as when they were read. */
static unsigned count_at_risk(struct fs_thread *ft)
{
	unsigned n = 0;

	list_for_each (pos, &ft->dirty) {
		struct inode *inode = list_entry(pos, struct inode, commit.dirty);

		pthread_mutex_lock(&inode->lock);
		n += commit_is_at_risk_locked(inode);
		pthread_mutex_unlock(&inode->lock);
	}
	return n;
}

/* Nobody who wrote it waits for an answer any more. */
static void log_uncommitted(struct fs_thread *ft)
{
	unsigned n = count_at_risk(ft);

	if (!n && !ft->nacked)
		return;
	session_leaves_unsafe(ft->thread->fs->session);
	log_error("server %s: it did not answer before the mount's end: what was written last may "
		  "be lost (files: %u, writes on their way: %u)",
		session_server(ft->thread->fs->session), n, ft->nacked);
}

/* Commits what is dirty, waits for what is on its way, then ends the thread's part of the session.
 */
bool fs_stopped(struct io_thread *thread)
{
	struct fs_thread *ft = fs_thread_of(thread);
	int64_t left = ft->stop_by_ms - io_thread_now(thread);

	if (!ft->stopped && fs_is_renewing(thread->fs) && left > 0)
		return false;
	if (!ft->stopped) {
		bool committed = commit_tick(thread), told = access_time_tick(thread);
		bool through = committed && told && !ft->nbackground && !ft->nacked;

		if (!through && left > 0)
			return false;
		log_uncommitted(ft);
		ft->stopped = true;
		remote_stop(thread, left > 0 ? (unsigned)left : 0);
	}
	return remote_stopped(thread);
}

/* ---- what is called from below --------------------------------------------------------------- */

const struct fuse_ops fs_fuse_ops = {
	.dispatch = fs_dispatch,
	.forget = forget_node,
	.interrupt = fs_interrupt,
	.interrupt_other = lock_interrupt,
	.begins_anew = begins_anew,
	.holds_up_dropping = lease_holds_up_dropping,
	.payload_home = landing_open,
	.payload_arrived = landing_arrived,
	.payload_done = landing_done,
};

static void fs_take_news(struct io_thread *thread, const struct rpc_tail *recalls)
{
	struct wire_in r = rpc_tail_reader(recalls);
	struct rpc_recall recall;

	while (rpc_get_recall(&r, &recall)) {
		if (recall.keep == RECALL_LOCKS)
			lock_look_again(thread, recall.number);
		else
			lease_recall(thread, &recall);
	}
}

const struct session_events fs_session_events = {
	.news = fs_take_news,
	.connected = lock_look_at_all,
	.pages_wanted = grant_refill_give_back,
};
