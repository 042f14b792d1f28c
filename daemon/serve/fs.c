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
#include "daemon/file/inherited.h"
#include "daemon/lock/local_locks.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/interrupt.h"
#include "daemon/serve/slow.h"
#include "daemon/serve/way.h"
#include "daemon/fuse/port.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/append_order.h"
#include "daemon/ops/finish.h"
#include "daemon/ops/change_here.h"
#include "daemon/lease/wait_aside.h"
#include "daemon/fuse/fuse_ops.h"
#include "daemon/remote/paths.h"
#include "daemon/remote/scout.h"
#include "daemon/remote/remote.h"

enum { DISCONNECT_MS = 1500, ASIDE_SHARE = 4 };

/* ---- life ------------------------------------------------------------------------------------ */

/* The first one gives work to the second. */
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
	inherited_delete(fs->inherited);
	expiries_fini(fs->expiries);
	conversion_fini(fs->conversion);
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
	name_queue_fini(fs->name_queue);
	unmade_fini(fs->unmade);
	pause_fini(fs->pause);
}

static uint64_t machine_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The parts that can fail. */
static int init_tables(struct fs *fs)
{
	int r = pause_init(fs->pause);

	if (r)
		return r;
	r = inode_table_init(fs->inodes, &inode_parts_hooks);
	if (r)
		goto err_pause;
	r = fs_may_share(fs) || fs_keeps_names(fs) ? local_answer_init(fs->looks) : 0;
	if (r)
		goto err_inodes;
	return 0;

err_inodes:
	inode_table_fini(fs->inodes);
err_pause:
	pause_fini(fs->pause);
	return r;
}

int fs_init(struct fs_block *block, const struct fs_options *options)
{
	struct fs *fs = &block->fs;
	int r;

	memset(block, 0, sizeof(*block));
	fs_wire(fs, &block->parts);
	fs->options = *options;
	atomic_init(&fs->tracing, options->debug_io);
	atomic_init(&fs->sharing, options->session.sharing);
	atomic_init(&fs->has_shared, options->session.sharing);
	fs->requests.sharing = fs_may_share(fs);
	fs->requests.interrupt_wait_ms = options->interrupt_wait_ms;
	fs->requests.aside_max = machine_memory() / ASIDE_SHARE;
	r = init_tables(fs);
	if (r)
		return r;
	unmade_init(fs->unmade);
	name_queue_init(fs->name_queue, &change_here_hooks);
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
	session_renewal_init(fs->renewal, fs, way_barrier_over);
	conversion_init(fs->conversion, fs, way_conversion_over);
	abandoned_init(fs->abandoned, fs);
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

const char *fs_protection_note(const struct fs *fs)
{
	return session_protection_note(fs->session);
}

enum session_health fs_health(const struct fs *fs, int64_t *since_ms)
{
	return session_health(fs->session, since_ms);
}

enum transport_kind fs_transport_kind(const struct fs *fs)
{
	return session_address(fs->session)->kind;
}

int fs_register_memory(struct fs *fs, void *addr, size_t len, struct buffer **out)
{
	return paths_register(fs->session, addr, len, out);
}

void fs_deregister_memory(struct fs *fs, struct buffer *b)
{
	paths_deregister(fs->session, b);
}

void fs_threads_started(struct fs *fs)
{
	scout_start(fs->session);
}

void fs_threads_ended(struct fs *fs)
{
	scout_stop(fs->session);
}

bool fs_squashes(const struct fs *fs)
{
	return session_squash(fs->session).kind != SQUASH_NONE;
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
		.freeze = &fs->parts->threads[thread->index].freeze,
		.makes = &fs->parts->threads[thread->index].makes};
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	list_init(&ft->interrupted);
	list_init(&ft->lock_waits);
	snapshot_freeze_thread_init(ft->freeze, thread);
	make_batch_init(ft->makes, thread, &commit_make_hooks);
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

/* The root is there from the beginning to the end. One of another daemon's description knows better
 * what it has: the session's answer is as old as the mount. */
static int make_root(struct fs *fs, const struct attr *attr)
{
	if (fs->root)
		return 0;
	fs->root = inode_get(fs, ROOT_INO);
	if (!fs->root)
		return -ENOMEM;
	inode_learn(fs->root, attr, inode_epoch(fs), NULL);
	return 0;
}

int fs_connect(struct fs *fs, char *why, size_t whylen)
{
	int r = remote_connect(fs->threads[0].thread, why, whylen);

	if (r)
		return r;
	if (session_is_sharing(fs->session))
		fs_begin_sharing(fs);
	/* One that was taken over, or revived, knows where its locks are. */
	if (!fs->root)
		local_locks_begin(fs);
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
	remote_await_stop(fs->threads[0].thread);
}

/* ---- the threads' turns ---------------------------------------------------------------------- */

enum { COMMIT_MS = 1000, IDLE_CHECK_MS = 1000 };

/* A mount that rests begins nothing: not even another session, if this one has ended. */
static void step_barriers(struct io_thread *thread)
{
	if (pause_rests(thread->fs))
		return;
	session_renewal_step(thread);
	conversion_step(thread);
	snapshot_freeze_step(thread);
	remount_step(thread);
}

void fs_event(struct io_thread *thread, const struct event *ev)
{
	remote_event(thread, ev);
	step_barriers(thread);
}

void fs_tick(struct io_thread *thread, int64_t now)
{
	struct fs_thread *ft = fs_thread_of(thread);

	remote_tick(thread, now);
	step_barriers(thread);
	if (pause_rests(thread->fs))
		return;
	interrupt_tick(thread);
	lock_tick(thread);
	if (remote_gives_up(thread))
		interrupt_all_failing(thread);
	slow_tick(thread, now);
	/* Before there is a session again there is nothing to tell the server. */
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

void fs_step_paused(struct io_thread *thread)
{
	pause_step(thread);
}

void fs_stop(struct io_thread *thread, unsigned limit_ms)
{
	struct fs_thread *ft = fs_thread_of(thread);

	session_leave_place(thread->fs->session);
	ft->stopping = true;
	ft->stop_by_ms = io_thread_now(thread) + limit_ms;
}

/* The list also has inodes without a risk, such as those of which another thread tells when they
 * were read. */
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

/* No writer waits for an answer any more, so the log tells of it. */
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

static void log_names_not_told(const struct fs *fs)
{
	unsigned n = atomic_load(&fs->name_queue->n);

	if (n)
		log_error("server %s: it did not answer before the mount's end: names that were "
			  "made or removed last may be as before (names: %u)",
			session_server(fs->session), n);
}

/* Commits dirty inodes, waits for messages and writes on their way, then ends the thread's part of
 * the session. */
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
		if (!thread->index)
			log_names_not_told(thread->fs);
		ft->stopped = true;
		remote_stop(thread, left > 0 ? (unsigned)left : 0);
	}
	return remote_stopped(thread);
}

/* ---- what is called from below --------------------------------------------------------------- */

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

/* Asked before the request is dispatched, when its handle is still the kernel's number. */
static bool fs_holds_up_dropping(struct request *req)
{
	if (req->thread->fs->inherited)
		inherited_translate(req->thread->fs->inherited, req);
	return lease_holds_up_dropping(req);
}

const struct fuse_ops fs_fuse_ops = {
	.dispatch = way_barrier,
	.forget = forget_node,
	.interrupt = interrupt_request,
	.interrupt_other = lock_interrupt,
	.begins_anew = way_begins_anew,
	.holds_up_dropping = fs_holds_up_dropping,
	.payload_home = landing_open,
	.payload_arrived = landing_arrived,
	.payload_done = landing_done,
};

static void fs_take_news(struct io_thread *thread, const struct rpc_tail *recalls)
{
	struct wire_in r = rpc_tail_reader(recalls);
	struct rpc_recall recall;

	if (!pause_takes_news(thread))
		return;
	while (rpc_get_recall(&r, &recall)) {
		if (recall.keep == RECALL_LOCKS)
			lock_look_again(thread, recall.number);
		else if (recall.keep == RECALL_SHARE)
			conversion_wanted(thread);
		else if (recall.keep == RECALL_ALONE)
			conversion_back_wanted(thread);
		else
			lease_recall(thread, &recall);
	}
}

static void fs_take_connection(struct io_thread *thread)
{
	if (pause_takes_news(thread))
		lock_look_at_all(thread);
}

static void fs_take_wish_for_pages(struct io_thread *thread, uint64_t ask)
{
	if (pause_takes_news(thread))
		grant_refill_give_back(thread, ask);
}

const struct session_events fs_session_events = {
	.news = fs_take_news,
	.connected = fs_take_connection,
	.pages_wanted = fs_take_wish_for_pages,
};
