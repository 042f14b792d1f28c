#include "daemon/lease/lease.h"

#include <errno.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/lease/lease_private.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/inode.h"

void inode_lease_init(struct inode_lease *lease, struct inode *inode)
{
	lease->inode = inode;
	list_init(&inode->lease_waiters);
	list_init(&lease->listed);
	list_init(&lease->leaving);
}

void lease_fini(struct inode *inode)
{
	if (inode->lease_type != LEASE_NONE)
		lease_unlist_locked(inode);
}

void lease_set_type_locked(struct inode *inode, struct io_thread *thread, uint8_t type)
{
	if (type != LEASE_NONE && inode->lease_type == LEASE_NONE)
		lease_list_locked(inode, thread);
	else if (type == LEASE_NONE && inode->lease_type != LEASE_NONE)
		lease_unlist_locked(inode);
	inode->lease_type = type;
}

void lease_end_locked(struct inode *inode)
{
	struct inode_lease *l = inode->lease;

	assert(l->state == LEASE_IDLE);
	lease_set_type_locked(inode, NULL, LEASE_NONE);
	l->pinned = l->unsure = l->evicted = l->closing = false;
	l->returned = inode->lease_number;
	l->recalled = 0;
	inode_unsure_locked(inode);
}

void lease_forget_locked(struct inode *inode)
{
	struct inode_lease *l = inode->lease;

	assert(l->state == LEASE_IDLE);
	lease_set_type_locked(inode, NULL, LEASE_NONE);
	l->pinned = l->unsure = l->passing = l->evicted = l->closing = l->tried = false;
	inode->lease_number = l->returned = l->recalled = 0;
}

bool lease_has_nothing_locked(const struct inode *inode)
{
	const struct inode_lease *l = inode->lease;

	return inode->lease_type == LEASE_NONE && !l->pinned && !l->unsure &&
	       l->state == LEASE_IDLE;
}

bool lease_covers_all_locked(const struct inode *inode)
{
	const struct inode_lease *l = inode->lease;

	return lease_includes(inode->lease_type, LEASE_SHARED) && l->state == LEASE_IDLE &&
	       (inode->sure || inode->orphan) && !l->unsure && !lease_is_recalled(l);
}

/* ---- what is due ----------------------------------------------------------------------------- */

void lease_step_locked(struct inode *inode, struct io_thread *thread)
{
	struct inode_lease *l = inode->lease;
	uint8_t keep;

	if (l->state != LEASE_IDLE || lease_keep_is_held(inode->fs))
		return;
	if (fs_is_renewing(inode->fs)) {
		waiters_wake(&l->inode->lease_waiters, -EIO);
		return;
	}
	if (!lease_is_recalled(l) && lease_wake_covered_locked(inode))
		return;
	if (lease_is_to_return(inode, &keep)) {
		lease_return_locked(inode, thread, keep);
	} else if (!list_empty(&l->inode->lease_waiters)) {
		/* First the kernel drops pages of a lost lease, and pages behind the end. */
		if (!kernel_pages_drops_behind_locked(inode) &&
			(inode->lease_type != LEASE_NONE || !kernel_pages_any_locked(inode)))
			lease_ask_locked(inode, thread);
	} else if (lease_is_to_leave(inode, &keep)) {
		lease_leave_later_locked(inode, thread);
	}
}

void lease_step_and_put(struct inode *inode, struct io_thread *thread)
{
	bool orphan;

	lease_step_locked(inode, thread);
	orphan = inode->orphan;
	pthread_mutex_unlock(&inode->lock);
	if (orphan)
		inode_return_settle(inode, thread);
	inode_put(inode);
}

void lease_send_locked(struct inode *inode, struct io_thread *thread, enum lease_state state)
{
	struct inode_lease *l = inode->lease;

	lease_state_begin(l, state);
	list_init(&l->call.link);
	l->thread = thread;
	inode_ref(inode);
	rpc_start(thread, &l->call);
}

void lease_settle(struct inode *inode, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	lease_step_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
}

/* ---- another daemon -------------------------------------------------------------------------- */

bool lease_keeps_still_locked(const struct inode *inode)
{
	const struct inode_lease *l = inode->lease;

	return l->state == LEASE_IDLE && !lease_is_recalled(l) && !lease_is_used_locked(inode) &&
	       list_empty(&l->leaving) && !l->taking_back;
}

/* A recall is not told: the server repeats it to whoever goes on. */
void lease_describe_locked(const struct inode *inode, struct lease_kept *kept)
{
	const struct inode_lease *l = inode->lease;

	*kept = (struct lease_kept){
		.number = inode->lease_number,
		.returned = l->returned,
		.type = inode->lease_type,
		.pinned = l->pinned,
		.unsure = l->unsure,
		.passing = l->passing,
	};
}

void lease_adopt_locked(struct inode *inode, const struct lease_kept *kept)
{
	struct inode_lease *l = inode->lease;

	assert(inode->lease_type == LEASE_NONE && l->state == LEASE_IDLE);
	inode->lease_number = kept->number;
	inode->lease_type = kept->type;
	l->returned = kept->returned;
	l->pinned = kept->pinned;
	l->unsure = kept->unsure;
	l->passing = kept->passing;
	if (kept->type != LEASE_NONE)
		lease_keep_adopt_locked(inode);
}

/* ---- leases by looking ----------------------------------------------------------------------- */

enum { REFUSED_MS = 1000 };

/* A call that is on its way tells more than this answer. A lease that was returned is gone, whether
 * or not the server had told of it before. */
static bool is_news_locked(const struct inode *inode, const struct lease *lease)
{
	const struct inode_lease *l = inode->lease;

	return lease->type == LEASE_SHARED && inode->lease_type == LEASE_NONE &&
	       l->state == LEASE_IDLE && lease->number >= inode->lease_number &&
	       lease->number > l->returned && !lease_is_recalled(l) && !inode->orphan &&
	       !inode->returned && !kernel_pages_any_locked(inode);
}

static void refuse_locked(struct inode *inode, struct io_thread *thread, const struct lease *lease)
{
	if (lease->type == LEASE_NONE)
		inode->lease->refused_ms = io_thread_now(thread);
}

bool lease_looked(struct inode *inode, struct io_thread *thread, const struct lease_look *look)
{
	struct inode_lease *l = inode->lease;
	bool noted = lease_noted_since(inode->fs, look->notes, inode->ino), news;

	pthread_mutex_lock(&inode->lock);
	news = !noted && is_news_locked(inode, look->lease);
	if (news) {
		inode->lease_number = look->lease->number;
		l->passing = look->lease->passing;
		lease_set_type_locked(inode, thread, LEASE_SHARED);
		inode_lease_locked(inode, look->attr, look->entry, look->epoch);
		lease_step_locked(inode, thread);
	} else {
		refuse_locked(inode, thread, look->lease);
	}
	pthread_mutex_unlock(&inode->lock);
	return news;
}

uint64_t lease_known_locked(struct inode *inode)
{
	struct inode_lease *l = inode->lease;

	if (inode->lease_type < LEASE_SHARED)
		return 0;
	if (!__atomic_load_n(&l->used, __ATOMIC_RELAXED))
		__atomic_store_n(&l->used, true, __ATOMIC_RELAXED);
	return inode->lease_number;
}

bool lease_is_leaving_locked(const struct inode *inode)
{
	return lease_is_recalled(inode->lease);
}

bool lease_lacks_locked(const struct inode *inode, int64_t now)
{
	const struct inode_lease *l = inode->lease;

	return inode->lease_type == LEASE_NONE && l->state == LEASE_IDLE &&
	       (!l->refused_ms || now - l->refused_ms > REFUSED_MS);
}

/* ---- recalls --------------------------------------------------------------------------------- */

static void recall_locked(struct inode_lease *l, const struct rpc_recall *recall)
{
	/* It is about an older grant, or was repeated while the RETURN was on its way. */
	if (recall->number < l->inode->lease_number)
		return;
	if (recall->number <= l->returned && lease_includes(recall->keep, l->inode->lease_type))
		return;
	l->keep = l->recalled ? lease_common(l->keep, recall->keep) : recall->keep;
	l->recalled = max_u64(l->recalled, recall->number);
}

void lease_recalled(struct inode *inode, struct io_thread *thread, const struct rpc_recall *recall)
{
	/* It is about a lease from before the mount was alone. */
	if (!inode->fs->sharing)
		return;
	pthread_mutex_lock(&inode->lock);
	recall_locked(inode->lease, recall);
	lease_step_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
}
