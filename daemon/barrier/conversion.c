/* conversion.c - see conversion.h. */
#include "daemon/barrier/conversion.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/barrier/remount.h"
#include "daemon/file/access_time.h"
#include "daemon/file/commit.h"
#include "daemon/file/dir_names.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_return.h"
#include "daemon/fuse/notifier.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/lease.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"

/* The kernel of a mount that is alone keeps an answer for this part of the lease time at most. */
enum { TTL_SHARE = 4 };

/* A caller may be late to note its answer, which the kernel counts the time from. */
enum { LATE_MS = 250 };

static enum conversion_phase phase_of(const struct fs *fs)
{
	return atomic_load_explicit(&fs->conversion->phase, memory_order_acquire);
}

static bool conversion_holds(const struct fs *fs)
{
	enum conversion_phase phase = phase_of(fs);

	return phase != CONVERSION_NONE && phase != CONVERSION_FORGETS;
}

void conversion_init(
	struct conversion *c, struct fs *fs, void (*begin)(struct request *req, int status))
{
	*c = (struct conversion){.begin = begin};
	pthread_mutex_init(&c->lock, NULL);
	barrier_init(&c->hold, fs, OP_AT_CONVERSION, conversion_holds);
}

void conversion_fini(struct conversion *c)
{
	pthread_mutex_destroy(&c->lock);
}

bool conversion_is_under_way(const struct fs *fs)
{
	return phase_of(fs) != CONVERSION_NONE;
}

uint32_t conversion_told_ms(const struct fs *fs)
{
	return fs->conversion->ttl_ms;
}

void conversion_adopt(struct fs *fs, uint32_t told_ms)
{
	fs->conversion->ttl_ms = told_ms;
}

uint32_t conversion_ttl_ms(const struct fs *fs, uint32_t ms)
{
	if (!fs->options.session.converts)
		return ms;
	if (phase_of(fs) != CONVERSION_NONE)
		return 0;
	return (uint32_t)min_u64(ms, session_lease_ms(fs->session) / TTL_SHARE);
}

/* A server that was started again may have another lease time than when the kernel was told. */
static void note_ttl(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct conversion *c = fs->conversion;

	if (!thread->index && !fs->sharing)
		c->ttl_ms = (uint32_t)max_u64(c->ttl_ms, session_lease_ms(fs->session) / TTL_SHARE);
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* True: it was in this phase, and is in the next. */
static bool conversion_go_on(struct fs *fs, enum conversion_phase from, enum conversion_phase to)
{
	struct conversion *c = fs->conversion;
	bool was;

	pthread_mutex_lock(&c->lock);
	was = phase_of(fs) == from;
	if (was) {
		c->idle = 0;
		atomic_store_explicit(&c->phase, to, memory_order_release);
	}
	pthread_mutex_unlock(&c->lock);
	if (was && !conversion_holds(fs))
		barrier_wake(&c->hold);
	return was;
}

/* Access times, which may wait, are told at once while the mount is to stand still. */
static void commit_all(struct fs *fs, bool all)
{
	if (atomic_load(&fs->remount->phase) == REMOUNT_DONE)
		atomic_store(&fs->committing_all, all);
}

void conversion_is_over(struct fs *fs)
{
	enum conversion_phase phase = phase_of(fs);

	if (phase == CONVERSION_NONE)
		return;
	fs->conversion->telling = false;
	commit_all(fs, false);
	conversion_go_on(fs, phase, CONVERSION_NONE);
}

void conversion_wanted(struct io_thread *thread)
{
	struct fs *fs = thread->fs;

	if (fs->sharing || fs_is_renewing(fs) || fs_is_paused(fs) ||
		!conversion_go_on(fs, CONVERSION_NONE, CONVERSION_DRAINS))
		return;
	fs->conversion->began_ms = now_ms();
	log_notice("server %s: another mount of the export waits: this one ends what it is at, and "
		   "shares the export from then on",
		session_server(fs->session));
}

/* ---- what comes meanwhile -------------------------------------------------------------------- */

/* The kernel's own: an operation may wait for it. */
static bool conversion_is_for_cache(const struct request *req)
{
	return (req->op == OP_READ || req->op == OP_WRITE) && req->args.cached;
}

/* A program that closes a file may be about to end, and no signal tells of that. */
static bool conversion_is_looked_after(const struct request *req)
{
	return req->op == OP_FLUSH || req->op == OP_FSYNC;
}

bool conversion_enter(struct request *req)
{
	struct fs *fs = req->thread->fs;
	bool passes = phase_of(fs) == CONVERSION_DRAINS && conversion_is_for_cache(req);

	if (!conversion_holds(fs) || passes || req->op == OP_STATFS)
		return true;
	barrier_hold(&fs->conversion->hold, req, fs->conversion->begin);
	if (conversion_is_looked_after(req))
		op_watch(req);
	return false;
}

/* ---- standing still -------------------------------------------------------------------------- */

struct running {
	bool drains; /* requests for the kernel's cache do not count */
	unsigned n;
};

static void count_running(struct request *req, void *arg)
{
	struct running *running = arg;

	if (op_of(req)->wait == OP_AT_CONVERSION || req->op == OP_STATFS)
		return;
	running->n += !(running->drains && conversion_is_for_cache(req));
}

static bool conversion_is_idle(struct io_thread *thread, bool drains)
{
	struct fs_thread *ft = fs_thread_of(thread);
	struct running running = {.drains = drains};
	bool committed, told;

	request_each(thread, count_running, &running);
	if (drains)
		return !running.n;
	commit_all(thread->fs, true);
	committed = commit_tick(thread);
	told = access_time_tick(thread);
	inode_return_flush(thread);
	return !running.n && committed && told && !ft->nbackground && !ft->nacked &&
	       remote_connected(thread) && remote_has_no_calls(thread);
}

/* True: all threads are idle, and this is thread 0. Nothing makes a thread busy again. A thread may
 * have looked in the phase before, which says nothing of this one. */
static bool conversion_say_idle(struct io_thread *thread, enum conversion_phase phase, bool idle)
{
	struct conversion *c = thread->fs->conversion;
	uint32_t bit = UINT32_C(1) << thread->index;
	bool all = false;

	pthread_mutex_lock(&c->lock);
	if (phase_of(thread->fs) == phase) {
		c->idle = idle ? c->idle | bit : c->idle & ~bit;
		all = c->idle == (UINT32_C(1) << thread->fs->options.session.io_threads) - 1;
	}
	pthread_mutex_unlock(&c->lock);
	return all && !thread->index;
}

/* Answers wait for these two; names, whose notifier may wait for a request that is held, do not
 * count. */
static bool kernel_is_told(struct fs *fs)
{
	return notifier_is_idle(&fs->dropper) && notifier_is_idle(&fs->notifier);
}

static bool has_no_orphans_to_return(struct fs *fs)
{
	return inode_return_is_idle(fs);
}

/* ---- the moment ------------------------------------------------------------------------------ */

static void begin_anew(struct inode *inode, void *arg)
{
	struct fs *fs = arg;

	pthread_mutex_lock(&inode->lock);
	/* Data that the server has refused was told to its writers. */
	if (!commit_is_clean_locked(inode))
		commit_forget_locked(inode);
	inode_unlease_locked(inode);
	dir_names_forget(&inode->names, &fs->inodes->names);
	kernel_pages_share_locked(inode, fs->threads[0].thread);
	kernel_owner_share_locked(inode);
	pthread_mutex_unlock(&inode->lock);
}

/* Without its pin an open file could be removed for good by others. A pin that was refused, for
 * want of room, is asked for again: until all are there nobody else is let in. */
static void pin_open(struct inode *inode, void *arg)
{
	struct fs *fs = arg;

	pthread_mutex_lock(&inode->lock);
	if (inode_is_regular(inode) && inode->nopen && !inode->lease->pinned) {
		fs->conversion->nlacking++;
		lease_pin_locked(inode, fs->threads[0].thread);
	}
	pthread_mutex_unlock(&inode->lock);
}

/* Returns how many files lack a pin, which they are asked for. */
static unsigned pin_all(struct fs *fs)
{
	fs->conversion->nlacking = 0;
	inode_each(fs, pin_open, fs);
	return fs->conversion->nlacking;
}

static void conversion_refused(struct fs *fs, const struct rpc_reply *rep)
{
	if (session_has_ended(fs->session) || session_lost(fs->session))
		return;
	log_error("server %s: it refuses that the mount shares its export: %s",
		session_server(fs->session), errno_text(rep->status));
	conversion_is_over(fs);
}

static void shares(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct conversion *c = container_of(call, struct conversion, call);
	struct fs *fs = c->hold.fs;

	if (rep->status) {
		conversion_refused(fs, rep);
		return;
	}
	c->forgot_ms = now_ms() + c->ttl_ms + LATE_MS;
	inode_each(fs, begin_anew, fs);
	atomic_store(&fs->sharing, true);
	session_share(fs->session);
	c->nopen = pin_all(fs);
	conversion_go_on(fs, CONVERSION_TELLS, CONVERSION_PINS);
}

static void conversion_send(struct io_thread *thread, enum rpc_convert_state state,
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep))
{
	struct conversion *c = thread->fs->conversion;

	c->call = (struct rpc_call){.done = done};
	list_init(&c->call.link);
	c->call.req.op = RPC_CONVERT;
	c->call.req.convert.state = (uint8_t)state;
	rpc_start(thread, &c->call);
}

static void forgot(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct conversion *c = container_of(call, struct conversion, call);
	struct fs *fs = c->hold.fs;

	c->telling = false;
	if (rep->status) {
		conversion_refused(fs, rep);
		return;
	}
	log_notice(
		"server %s: the export has other mounts from now on", session_server(fs->session));
	conversion_go_on(fs, CONVERSION_FORGETS, CONVERSION_NONE);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void drain_or_stand(struct io_thread *thread, enum conversion_phase phase)
{
	struct fs *fs = thread->fs;
	bool drains = phase == CONVERSION_DRAINS;

	if (!conversion_say_idle(thread, phase, conversion_is_idle(thread, drains)))
		return;
	if (drains && kernel_is_told(fs))
		conversion_go_on(fs, phase, CONVERSION_STILL);
	else if (!drains && has_no_orphans_to_return(fs) &&
		 conversion_go_on(fs, phase, CONVERSION_TELLS))
		conversion_send(thread, CONVERT_SHARES, shares);
}

static void pinned(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	const struct conversion *c = fs->conversion;

	if (thread->index || !remote_has_no_calls(thread) || pin_all(fs))
		return;
	commit_all(fs, false);
	log_info(
		"server %s: the mount goes by leases after a pause of %lld ms; files that are open: "
		"%u; in %lld ms the kernel has forgotten what it was told before",
		session_server(fs->session), (long long)(now_ms() - c->began_ms), c->nopen,
		(long long)max_i64(0, c->forgot_ms - now_ms()));
	conversion_go_on(fs, CONVERSION_PINS, CONVERSION_FORGETS);
}

static void forget_in_time(struct io_thread *thread)
{
	struct conversion *c = thread->fs->conversion;

	if (thread->index || c->telling || now_ms() < c->forgot_ms)
		return;
	c->telling = true;
	conversion_send(thread, CONVERT_FORGOT, forgot);
}

void conversion_step(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	enum conversion_phase phase = phase_of(fs);

	if (!fs->options.session.converts)
		return;
	note_ttl(thread);
	if (phase == CONVERSION_NONE || fs_is_renewing(fs) || session_has_ended(fs->session))
		return;
	if (session_lost(fs->session))
		conversion_is_over(fs);
	else if (phase == CONVERSION_DRAINS || phase == CONVERSION_STILL)
		drain_or_stand(thread, phase);
	else if (phase == CONVERSION_PINS)
		pinned(thread);
	else if (phase == CONVERSION_FORGETS)
		forget_in_time(thread);
}
