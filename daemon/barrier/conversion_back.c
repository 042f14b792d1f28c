/* conversion_back.c - a mount has its export for itself again: see conversion.h. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/barrier/conversion_private.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_return.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/kcache/kernel_names.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/local_answer.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"

/* When it is tried again, if a file is in its way; how long it may take to stand still, and to
 * settle leases; when it is tried again if it took longer, or was refused: first, and at most. */
enum { BACK_MS = 5000, STEP_MS = 1000, FAILED_MS = 10000, FAILED_MAX_MS = 300000 };

/* ---- whether it can be ----------------------------------------------------------------------- */

/* The server lets go of it at CONVERT_ALONE, and not before. */
static bool keeps_its_lease(const struct inode *inode)
{
	return (inode_is_regular(inode) && inode->nopen) ||
	       (inode->orphan && inode->lease_type != LEASE_NONE);
}

struct obstacles {
	const struct fs *fs;
	unsigned nkept;
	bool any;
};

static void look_for_obstacle(struct inode *inode, void *arg)
{
	struct obstacles *o = arg;

	pthread_mutex_lock(&inode->lock);
	o->nkept += keeps_its_lease(inode) || inode->orphan;
	if (inode_is_regular(inode) && inode->nopen)
		o->any |= !o->fs->features.direct_io_allow_mmap ||
			  kernel_pages_end_is_open_locked(inode);
	pthread_mutex_unlock(&inode->lock);
}

static bool something_is_in_the_way(struct fs *fs)
{
	struct obstacles o = {.fs = fs};

	inode_each(fs, look_for_obstacle, &o);
	return o.any || o.nkept > CONVERT_ALONE_MAX / 2;
}

/* True: it is time to try, and not again soon. */
static bool takes_turn(struct fs *fs)
{
	struct conversion *c = fs->conversion;
	int64_t now = now_ms();
	bool turn;

	pthread_mutex_lock(&c->lock);
	turn = conversion_phase_of(fs) == CONVERSION_NONE && now >= c->back_ms;
	if (turn)
		c->back_ms = now + BACK_MS;
	pthread_mutex_unlock(&c->lock);
	return turn;
}

void conversion_back_wanted(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct conversion *c = fs->conversion;

	if (!fs->options.session.converts || !fs->sharing || fs_is_renewing(fs) ||
		fs_is_paused(fs) || !takes_turn(fs) || something_is_in_the_way(fs))
		return;
	pthread_mutex_lock(&c->lock);
	if (conversion_phase_of(fs) == CONVERSION_NONE) {
		c->idle = 0;
		c->back = true;
		c->began_ms = now_ms();
		atomic_store_explicit(&c->phase, CONVERSION_DRAINS, memory_order_release);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Each try holds requests for a moment. So there are fewer and fewer. */
static void back_failed(struct fs *fs)
{
	struct conversion *c = fs->conversion;

	pthread_mutex_lock(&c->lock);
	c->failed_ms = c->failed_ms ? min_i64(2 * c->failed_ms, FAILED_MAX_MS) : FAILED_MS;
	c->back_ms = now_ms() + c->failed_ms;
	pthread_mutex_unlock(&c->lock);
	conversion_is_over(fs);
}

static void back_done(struct conversion *c)
{
	pthread_mutex_lock(&c->lock);
	c->failed_ms = 0;
	pthread_mutex_unlock(&c->lock);
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* A request that had begun may have opened a file. */
void conversion_back_returns(struct fs *fs)
{
	struct conversion *c = fs->conversion;

	if (something_is_in_the_way(fs)) {
		conversion_is_over(fs);
		return;
	}
	c->began_ms = now_ms();
	c->ends_told = false;
	conversion_go_on(fs, CONVERSION_STILL, CONVERSION_RETURNS);
}

bool conversion_back_gives_up(struct io_thread *thread, enum conversion_phase phase)
{
	const struct conversion *c = thread->fs->conversion;

	if (thread->index || !c->back || phase == CONVERSION_TELLS ||
		now_ms() - c->began_ms <= STEP_MS)
		return false;
	back_failed(thread->fs);
	return true;
}

/* Under such a lease all is known of a file that a mount has to know which is alone. */
static bool is_known_locked(const struct inode *inode)
{
	return !inode_is_regular(inode) || lease_covers_all_locked(inode);
}

/* The kernel has no page of it from before its end was moved. */
static bool is_settled_locked(const struct inode *inode)
{
	return is_known_locked(inode) && !kernel_pages_have_old_end_locked(inode);
}

static void settle_kept_locked(struct inode *inode, struct io_thread *thread)
{
	if (is_known_locked(inode))
		kernel_pages_drop_locked(inode, thread, LEASE_SHARED);
	else
		lease_ask_for_all_locked(inode, thread);
}

struct leases_left {
	struct io_thread *thread; /* NULL: they are only counted */
	unsigned nleases;
	unsigned nbusy; /* the kernel is being told something of their pages */
};

static void settle_lease(struct inode *inode, void *arg)
{
	struct leases_left *left = arg;
	bool keeps, settled;

	pthread_mutex_lock(&inode->lock);
	keeps = keeps_its_lease(inode);
	settled = keeps ? is_settled_locked(inode) : lease_has_nothing_locked(inode);
	left->nleases += !settled;
	left->nbusy += keeps && !kernel_pages_keep_still_locked(inode);
	if (!settled && left->thread && keeps)
		settle_kept_locked(inode, left->thread);
	else if (!settled && left->thread)
		lease_give_all_locked(inode, left->thread);
	pthread_mutex_unlock(&inode->lock);
}

struct ends {
	struct io_thread *thread;
	bool told;
};

static void tell_end(struct inode *inode, void *arg)
{
	struct ends *ends = arg;

	pthread_mutex_lock(&inode->lock);
	if (inode_is_regular(inode) && inode->nopen)
		ends->told &= kernel_pages_raise_end_locked(inode, ends->thread);
	pthread_mutex_unlock(&inode->lock);
}

/* A program that has the file open may map it next. */
static bool tell_ends(struct io_thread *thread)
{
	struct ends ends = {.thread = thread, .told = true};

	inode_each(thread->fs, tell_end, &ends);
	return ends.told;
}

/* A lease that had to be asked for again may bring another end. */
static bool all_is_settled(struct io_thread *thread)
{
	struct fs *fs = thread->fs;
	struct conversion *c = fs->conversion;
	struct leases_left left = {.thread = thread};

	inode_each(fs, settle_lease, &left);
	if (left.nleases)
		c->ends_told = false;
	else if (!c->ends_told)
		c->ends_told = tell_ends(thread);
	else
		return !left.nbusy && lease_keep_give_all(thread) &&
		       conversion_kernel_is_told(fs) && notifier_is_idle(&fs->giver) &&
		       inode_return_is_idle(fs) && remote_has_no_calls(thread);
	return false;
}

/* A recall, or a keeper that has too many, may have taken a lease meanwhile. None can from now on.
 */
static bool holds_all(struct fs *fs)
{
	struct leases_left left = {0};

	lease_keep_hold(fs, true);
	inode_each(fs, settle_lease, &left);
	if (!left.nleases && !left.nbusy)
		return true;
	lease_keep_hold(fs, false);
	return false;
}

/* ---- the moment ------------------------------------------------------------------------------ */

/* Others may have read the file under a lesser lease, which moves its access time. The attributes
 * of one without a name are not asked for again. Returns whether another mount has taken its last
 * name. */
static bool goes_alone_locked(struct fs *fs, struct inode *inode)
{
	bool leased = inode->lease_type != LEASE_NONE, nameless = leased && !inode->attr.nlink;

	if (leased) {
		inode->attr_valid &= inode->lease_type == LEASE_EXCLUSIVE || nameless;
		lease_end_locked(inode);
	} else {
		conversion_forget_locked(fs, inode);
	}
	kernel_attr_forget_locked(inode);
	return nameless && !inode->orphan;
}

static void goes_alone(struct inode *inode, void *arg)
{
	struct fs *fs = arg;
	bool nameless;

	pthread_mutex_lock(&inode->lock);
	nameless = goes_alone_locked(fs, inode);
	pthread_mutex_unlock(&inode->lock);
	if (nameless)
		inode_return_orphan(inode, 0, fs->threads[0].thread);
}

static void is_alone(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct conversion *c = container_of(call, struct conversion, call);
	struct fs *fs = c->hold.fs;

	if (!rep->status) {
		c->told_ms = now_ms() + session_lease_ms(fs->session);
		c->ttl_ms = 0;
		back_done(c);
		inode_each(fs, goes_alone, fs);
		kernel_names_forget(&fs->looks->shown);
		atomic_fetch_add(&c->nended, 1);
		atomic_store(&fs->sharing, false);
		session_is_alone(fs->session);
		conversion_note_told(fs);
		/* Locks that the server has stay there. */
		if (!lock_owners_any(fs))
			local_locks_begin(fs);
		log_notice("server %s: no other mount has the export any more: this one needs no "
			   "leases",
			session_server(fs->session));
		conversion_is_over(fs);
	} else if (!session_has_ended(fs->session) && !session_lost(fs->session)) {
		back_failed(fs);
	}
}

void conversion_back_step(struct io_thread *thread)
{
	struct fs *fs = thread->fs;

	if (thread->index)
		return;
	if (something_is_in_the_way(fs))
		conversion_is_over(fs);
	else if (!all_is_settled(thread) || !holds_all(fs))
		return;
	else if (conversion_go_on(fs, CONVERSION_RETURNS, CONVERSION_TELLS))
		conversion_send(thread, CONVERT_ALONE, is_alone);
	else
		lease_keep_hold(fs, false); /* the session has ended */
}
