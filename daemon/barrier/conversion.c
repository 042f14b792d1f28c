/* conversion.c - see conversion.h. */
#include "daemon/barrier/conversion_private.h"

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
#include "daemon/file/unmade.h"
#include "daemon/fuse/notifier.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/kcache/kernel_names.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/append_order.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/local_answer.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_register.h"
#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/record/record.h"

/* The kernel of a mount that is alone keeps an answer for this part of the lease time at most. */
enum { TTL_SHARE = 4 };

/* REST: when it is tried again if a request that had begun has opened a file. NOT_NOW: between two
 * lines of the log about it. */
enum { REST_MS = 5000, NOT_NOW_MS = 60000 };

/* A caller may be late to note its answer, which the kernel counts the time from. */
enum { LATE_MS = 250 };

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
	return conversion_phase_of(fs) != CONVERSION_NONE;
}

struct conversion_told conversion_told(const struct fs *fs)
{
	const struct conversion *c = fs->conversion;

	return (struct conversion_told){
		.ttl_ms = c->ttl_ms,
		.left_ms = (uint32_t)max_i64(0, c->told_ms - now_ms()),
	};
}

void conversion_adopt(struct fs *fs, struct conversion_told told)
{
	fs->conversion->ttl_ms = told.ttl_ms;
	fs->conversion->told_ms = now_ms() + told.left_ms;
	conversion_note_told(fs);
}

void conversion_revive(struct fs *fs)
{
	const struct record_head *head = record_head(fs->record);

	atomic_store(&fs->has_shared, atomic_load(&head->has_shared));
	fs->conversion->ttl_ms = atomic_load(&head->ttl_ms);
	fs->conversion->told_ms = atomic_load(&head->told_ms);
}

uint32_t conversion_ttl_ms(const struct fs *fs, uint32_t ms)
{
	if (!fs->options.session.converts)
		return ms;
	if (conversion_phase_of(fs) != CONVERSION_NONE)
		return 0;
	return (uint32_t)min_u64(ms, session_lease_ms(fs->session) / TTL_SHARE);
}

/* A server that was started again may have another lease time than when the kernel was told. */
static void note_ttl(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct conversion *c = fs->conversion;

	uint32_t ttl_ms = session_lease_ms(fs->session) / TTL_SHARE;

	if (thread->index || fs->sharing || ttl_ms <= c->ttl_ms)
		return;
	c->ttl_ms = ttl_ms;
	conversion_note_told(fs);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void conversion_refused(struct fs *fs, const struct rpc_reply *rep)
{
	if (session_has_ended(fs->session) || session_lost(fs->session))
		return;
	log_error("server %s: it refuses that the mount shares its export: %s",
		session_server(fs->session), errno_text(rep->status));
	conversion_is_over(fs);
}

/* ---- not now --------------------------------------------------------------------------------- */

static void say_not_now(struct fs *fs)
{
	atomic_store(&fs->conversion->kept_out_ms, now_ms());
	atomic_store(&fs->conversion->not_now, true);
}

/* Whether files that are open for writing keep others out. Then the server is to be told. */
static bool can_not_now(struct fs *fs)
{
	static struct log_ratelimit limit;
	unsigned nwriters = kernel_pages_writers(fs);

	if (!nwriters)
		return false;
	say_not_now(fs);
	if (log_ratelimit_ok(&limit, NOT_NOW_MS))
		log_notice("server %s: another mount of the export waits, and files that are open "
			   "for writing keep it out: %u; this kernel can't share them (Linux 6.9 "
			   "can): close them, or mount with share",
			session_server(fs->session), nwriters);
	return true;
}

static void told_not_now(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct conversion *c = container_of(call, struct conversion, call);

	c->telling = false;
	if (rep->status)
		conversion_refused(c->hold.fs, rep);
}

static void tell_not_now(struct io_thread *thread)
{
	struct conversion *c = thread->fs->conversion;

	if (thread->index || c->telling || !atomic_exchange(&c->not_now, false) ||
		thread->fs->sharing)
		return;
	c->telling = true;
	conversion_send(thread, CONVERT_NOT_NOW, told_not_now);
}

static void conversion_begins(struct fs *fs)
{
	static struct log_ratelimit limit = {.burst = 4};

	record_set_alone(fs->record, false);
	fs->conversion->began_ms = now_ms();
	if (log_ratelimit_ok(&limit, NOT_NOW_MS))
		log_notice("server %s: another mount of the export waits: this one ends what it is "
			   "at, and shares the export from then on",
			session_server(fs->session));
}

void conversion_wanted(struct io_thread *thread)
{
	struct fs *fs = thread->fs;

	if (fs->sharing || fs_is_renewing(fs) || fs_is_paused(fs) || conversion_is_under_way(fs))
		return;
	if (now_ms() < atomic_load(&fs->conversion->rest_ms))
		say_not_now(fs);
	else if (!can_not_now(fs) && conversion_go_on(fs, CONVERSION_NONE, CONVERSION_DRAINS))
		conversion_begins(fs);
}

/* ---- what comes meanwhile -------------------------------------------------------------------- */

/* A program that closes a file may be about to end, and no signal tells of that. */
static bool conversion_is_looked_after(const struct request *req)
{
	return req->op == OP_FLUSH || req->op == OP_FSYNC;
}

bool conversion_enter(struct request *req)
{
	struct fs *fs = req->thread->fs;
	bool passes = conversion_phase_of(fs) == CONVERSION_DRAINS &&
		      (request_is_for_cache(req) || append_order_is_waited_for(req));

	if (!conversion_holds(fs) || passes || req->op == OP_STATFS)
		return true;
	append_order_hold(req);
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

/* A remount to read-only waits for this, if the mount keeps locks. */
static bool is_held_by_us(const struct request *req, const struct op *op)
{
	return op->wait == OP_AT_CONVERSION ||
	       (op->wait == OP_AT_REMOUNT && local_locks_are_kept(req->thread->fs));
}

static void count_running(struct request *req, void *arg)
{
	struct running *running = arg;

	if (is_held_by_us(req, op_of(req)) || req->op == OP_STATFS)
		return;
	running->n += !(running->drains && request_is_for_cache(req));
}

static bool conversion_is_idle(struct io_thread *thread, bool drains)
{
	struct fs_thread *ft = fs_thread_of(thread);
	struct running running = {.drains = drains};
	bool committed, told;

	request_each(thread, count_running, &running);
	if (drains)
		return !running.n;
	conversion_commit_all(thread->fs, true);
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
	if (conversion_phase_of(thread->fs) == phase) {
		c->idle = idle ? c->idle | bit : c->idle & ~bit;
		all = c->idle == (UINT32_C(1) << thread->fs->options.session.io_threads) - 1;
	}
	pthread_mutex_unlock(&c->lock);
	return all && !thread->index;
}

/* ---- the moment ------------------------------------------------------------------------------ */

static void begin_anew(struct inode *inode, void *arg)
{
	struct fs *fs = arg;

	pthread_mutex_lock(&inode->lock);
	if (fs_kernel_knows_ends(fs))
		append_order_share_locked(inode);
	kernel_pages_share_locked(inode, fs->threads[0].thread);
	conversion_forget_locked(fs, inode);
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
	if (!fs->conversion->locks)
		inode_each(fs, pin_open, fs);
	return fs->conversion->nlacking;
}

/* Whether the server knows all that it has to before others are let in. */
static bool is_all_told(struct fs *fs)
{
	unsigned npins = pin_all(fs), nlocks = lock_register_all(fs);

	return !npins && !nlocks;
}

static void shares(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct conversion *c = container_of(call, struct conversion, call);
	struct fs *fs = c->hold.fs;

	if (rep->status) {
		conversion_refused(fs, rep);
		return;
	}
	c->forgot_ms = max_i64(now_ms() + c->ttl_ms, c->told_ms) + LATE_MS;
	inode_each(fs, begin_anew, fs);
	unmade_forget_numbers(fs->unmade);
	local_answer_forget_alone(fs->looks);
	atomic_fetch_add(&c->nbegun, 1);
	fs_begin_sharing(fs);
	session_share(fs->session);
	c->nopen = pin_all(fs);
	conversion_go_on(fs, CONVERSION_TELLS, CONVERSION_PINS);
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

/* A request that had begun has opened a file. Each try holds requests for a moment. */
static bool gives_up(struct fs *fs)
{
	if (!can_not_now(fs))
		return false;
	atomic_store(&fs->conversion->rest_ms, now_ms() + REST_MS);
	conversion_is_over(fs);
	return true;
}

static void drain_or_stand(struct io_thread *thread, enum conversion_phase phase)
{
	struct fs *fs = thread->fs;
	bool drains = phase == CONVERSION_DRAINS;

	if (!conversion_say_idle(thread, phase, conversion_is_idle(thread, drains)))
		return;
	if (drains && conversion_kernel_is_told(fs))
		conversion_go_on(fs, phase, CONVERSION_STILL);
	else if (!drains && fs->conversion->back)
		conversion_back_returns(fs);
	else if (!drains && fs->conversion->locks)
		conversion_go_on(fs, phase, CONVERSION_PINS);
	else if (!drains && !gives_up(fs) && inode_return_is_idle(fs) &&
		 conversion_go_on(fs, phase, CONVERSION_TELLS))
		conversion_send(thread, CONVERT_SHARES, shares);
}

static void pinned(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	const struct conversion *c = fs->conversion;

	if (thread->index || !remote_has_no_calls(thread) || !is_all_told(fs))
		return;
	lock_register_end(fs);
	if (c->locks) {
		conversion_is_over(fs);
		return;
	}
	conversion_commit_all(fs, false);
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

/* A remount to read-only has begun (remount.h). */
static void tell_locks(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct conversion *c = fs->conversion;

	if (thread->index || atomic_load(&fs->remount->phase) != REMOUNT_COMMITS ||
		!local_locks_are_kept(fs))
		return;
	pthread_mutex_lock(&c->lock);
	if (conversion_phase_of(fs) == CONVERSION_NONE) {
		c->idle = 0;
		c->locks = true;
		record_set_alone(fs->record, false);
		atomic_store_explicit(&c->phase, CONVERSION_DRAINS, memory_order_release);
	}
	pthread_mutex_unlock(&c->lock);
}

static void step(struct io_thread *thread, enum conversion_phase phase)
{
	if (conversion_back_gives_up(thread, phase))
		return;
	if (phase == CONVERSION_DRAINS || phase == CONVERSION_STILL)
		drain_or_stand(thread, phase);
	else if (phase == CONVERSION_RETURNS)
		conversion_back_step(thread);
	else if (phase == CONVERSION_PINS)
		pinned(thread);
	else if (phase == CONVERSION_FORGETS)
		forget_in_time(thread);
}

void conversion_step(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	enum conversion_phase phase = conversion_phase_of(fs);

	if (!fs->options.session.converts)
		return;
	note_ttl(thread);
	if (fs_is_renewing(fs) || session_has_ended(fs->session))
		return;
	if (phase == CONVERSION_NONE) {
		tell_not_now(thread);
		tell_locks(thread);
	} else if (session_lost(fs->session)) {
		conversion_is_over(fs);
	} else {
		step(thread, phase);
	}
}
