/* return.c - how leases go back: by a RETURN, with a batch of others, or by a COMMIT. */
#include <errno.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/file/inode_path.h"
#include "daemon/lease/lease_private.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode.h"
#include "daemon/file/commit.h"

/* ---- what is due ----------------------------------------------------------------------------- */

static bool is_open(const struct inode *inode)
{
	return inode->nopen || lease_is_used_locked(inode);
}

/* Keeps only what is of use here: nothing below LEASE_SHARED of a file that is not open, and
 * LEASE_LAYOUT instead of LEASE_OVERWRITE where no handle may write. */
static uint8_t kept_of_recalled(const struct inode *inode)
{
	const struct inode_lease *l = inode->lease;
	uint8_t keep = lease_common(l->keep, inode->lease_type);

	if (keep < LEASE_SHARED && !is_open(inode))
		return LEASE_NONE;
	return keep == LEASE_OVERWRITE && !inode->nwriters ? LEASE_LAYOUT : keep;
}

/* An operation that opens the file may be about to write. No other client wants an inode without a
 * name. */
static bool is_left_by_writers(const struct inode *inode)
{
	const struct inode_lease *l = inode->lease;

	return inode->lease_type == LEASE_EXCLUSIVE && !l->users[LEASE_EXCLUSIVE] &&
	       !l->users[LEASE_NONE] && list_empty(&l->inode->lease_waiters) &&
	       (!inode->nwriters || l->closing) && !inode->orphan;
}

/* Whether the lease or the pin is of no use here, and of none to others while it is here. */
static bool is_of_no_use(const struct inode *inode)
{
	const struct inode_lease *l = inode->lease;

	/* If this client removed the last name, all goes back at once (inode_return.h). A pin that
	 * a late OPEN has brought since then goes back by itself. */
	if (inode->nopen || lease_has_users(l) || (inode->orphan && !inode->returned))
		return false;
	return inode->lease_type
		       ? l->passing || !inode->attr.nlink || inode->lease_type < LEASE_SHARED
		       : l->pinned || l->unsure;
}

/* If a waiter wants more, the lease is returned first, so that this client holds nothing while it
 * waits. The lease stays only if more may come at once, which does not happen beside other
 * writers. */
bool lease_is_to_return(const struct inode *inode, uint8_t *keep)
{
	const struct inode_lease *l = inode->lease;

	*keep = LEASE_NONE;
	if (lease_is_recalled(l)) {
		*keep = kept_of_recalled(inode);
		return true;
	}
	if (!list_empty(&l->inode->lease_waiters))
		return inode->lease_type && lease_is_waited_for(inode) &&
		       (l->tried || inode->lease_type == LEASE_OVERWRITE);
	return is_of_no_use(inode);
}

/* With a batch go leases of inodes that the kernel has forgotten or that were not used for long. So
 * does what writers have left, unless the server refuses data: then the lease stays until it must
 * go. */
bool lease_is_to_leave(const struct inode *inode, uint8_t *keep)
{
	const struct inode_lease *l = inode->lease;

	*keep = LEASE_NONE;
	if (!inode->lease_type || l->state != LEASE_IDLE || !list_empty(&l->inode->lease_waiters) ||
		lease_is_recalled(l) || inode->orphan)
		return false;
	if (!lease_has_users(l) &&
		(l->evicted || (inode->ino != ROOT_INO &&
				       !__atomic_load_n(&inode->nlookup, __ATOMIC_RELAXED))))
		return true;
	*keep = LEASE_SHARED;
	return is_left_by_writers(inode) && !inode->commit.refused;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static bool is_refused_locked(const struct inode *inode)
{
	return inode->commit.refused && !commit_is_clean_locked(inode);
}

/* True as soon as the kernel has nothing of the inode, no operation uses more than *keep, and all
 * data is committed. Data that the server refuses is lost, and its writers are told. Then *keep is
 * LEASE_NONE, and so nothing stays cached. */
static bool can_give_back_locked(struct inode *inode, struct io_thread *thread, uint8_t *keep)
{
	const struct inode_lease *l = inode->lease;
	const struct commit *c = &inode->commit;

	if (!kernel_attr_take_back_locked(inode, thread))
		return false;
	if (is_refused_locked(inode))
		*keep = LEASE_NONE;
	if (kernel_pages_hinders_locked(inode, *keep)) {
		kernel_pages_drop_locked(inode, thread, *keep);
		if (kernel_pages_hinders_locked(inode, *keep))
			return false;
	}
	if (lease_is_used_beyond(l, *keep) || c->running)
		return false;
	if (!commit_is_clean_locked(inode) && !c->refused) {
		commit_start_locked(inode, thread);
		if (c->running)
			return false;
	}
	if (!commit_is_clean_locked(inode)) {
		if (*keep) /* it was refused just now */
			return can_give_back_locked(inode, thread, keep);
		commit_forget_locked(inode);
	}
	return true;
}

/* The only client knows all of the file, its access time, too. From now on others may change some
 * of that, which is not known any more. */
static void lower_locked(struct inode *inode, struct io_thread *thread, uint8_t keep)
{
	struct inode_lease *l = inode->lease;

	if (keep)
		inode_share_locked(inode, keep >= LEASE_SHARED);
	else
		inode_unlease_locked(inode);
	if (keep == LEASE_SHARED)
		inode->looked_ms = io_thread_now(thread);
	/* Operations that ask for the size meanwhile tell the kernel. */
	if (keep && keep < LEASE_SHARED)
		kernel_pages_end_is_told_locked(inode);
	lease_set_type_locked(inode, thread, keep);
	l->closing = l->tried = false;
}

/* From here on the lease counts as returned. The recall may be about a grant whose answer is on its
 * way (CREATE): that grant's pin stays. */
static struct rpc_returned return_give_locked(
	struct inode *inode, struct io_thread *thread, uint8_t keep)
{
	struct inode_lease *l = inode->lease;
	struct rpc_returned r = {.ino = inode->ino,
		.number = max_u64(inode->lease_number, l->recalled),
		.keep = keep};

	if (r.number > inode->lease_number)
		lease_note(inode->fs, inode->ino);
	if (!keep && inode_is_regular(inode)) {
		l->pinned = is_open(inode);
		l->unsure = false;
		if (l->pinned)
			r.pin = RETURN_PIN;
		else if (r.number == inode->lease_number)
			r.pin = RETURN_UNPIN;
	}
	lower_locked(inode, thread, keep);
	l->returned = r.number;
	l->recalled = 0;
	l->evicted = false;
	return r;
}

/* ---- by a RETURN ----------------------------------------------------------------------------- */

/* Forgets a recall that was repeated by an answer from before the return. */
static void forget_recall(struct inode_lease *l)
{
	if (l->recalled <= l->returned && lease_includes(l->keep, l->inode->lease_type))
		l->recalled = 0;
}

static void given_back(struct inode *inode, struct io_thread *thread, enum lease_state state)
{
	pthread_mutex_lock(&inode->lock);
	lease_state_end(inode->lease, state);
	forget_recall(inode->lease);
	lease_step_and_put(inode, thread);
}

static void returned(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct inode *inode = container_of(call, struct inode_lease, call)->inode;
	char text[PATH_INODE_BYTES];

	if (rep->status && rep->status != -ESTALE)
		log_error("%s: the server refused to take a lease back: %s",
			path_name_inode(inode, text), errno_text(rep->status));
	given_back(inode, inode->lease->thread, LEASE_RETURNING);
}

void lease_put_returned(struct rpc_return *ret, uint8_t *tail, const struct rpc_returned *returned)
{
	struct wire_out w;

	wire_out_init(&w, tail, RPC_RETURNED_BYTES);
	rpc_put_returned(&w, returned);
	*ret = (struct rpc_return){
		.kind = RETURN_LEASES,
		.tail = {.data = tail, .len = RPC_RETURNED_BYTES},
	};
}

void lease_return_locked(struct inode *inode, struct io_thread *thread, uint8_t keep)
{
	struct inode_lease *l = inode->lease;
	struct rpc_returned r;

	if (!can_give_back_locked(inode, thread, &keep))
		return;
	r = return_give_locked(inode, thread, keep);
	l->call = (struct rpc_call){.done = returned};
	l->call.req.op = RPC_RETURN;
	lease_put_returned(&l->call.req.ret, l->tail, &r);
	lease_send_locked(inode, thread, LEASE_RETURNING);
}

/* ---- with a batch ---------------------------------------------------------------------------- */

bool lease_leave_locked(
	struct inode *inode, struct io_thread *thread, struct rpc_returned *returned)
{
	uint8_t keep;

	if (fs_is_renewing(inode->fs) || lease_keep_is_held(inode->fs) ||
		!lease_is_to_leave(inode, &keep) || !can_give_back_locked(inode, thread, &keep))
		return false;
	*returned = return_give_locked(inode, thread, keep);
	lease_state_begin(inode->lease, LEASE_LEAVING);
	return true;
}

void lease_left(struct inode *inode, struct io_thread *thread)
{
	given_back(inode, thread, LEASE_LEAVING);
}

void lease_give_all_locked(struct inode *inode, struct io_thread *thread)
{
	inode->lease->evicted = inode->lease_type != LEASE_NONE;
	lease_step_locked(inode, thread);
}

void lease_evict(struct inode *inode, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	lease_give_all_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
}

/* ---- by a COMMIT ----------------------------------------------------------------------------- */

/* Recalls are served in this way, too. */
uint64_t lease_lower_locked(struct inode *inode, uint8_t *keep)
{
	struct inode_lease *l = inode->lease;
	uint8_t left = LEASE_NONE;

	*keep = LEASE_NONE;
	if (l->state != LEASE_IDLE)
		return 0;
	if (lease_is_recalled(l))
		left = kept_of_recalled(inode);
	else if (is_left_by_writers(inode))
		left = LEASE_SHARED;
	if (!left || left == inode->lease_type || lease_is_used_beyond(l, left) ||
		kernel_pages_hinders_locked(inode, left))
		return 0;
	/* From then on other clients see the new data, perhaps before its writer has its answer. */
	if (!kernel_attr_try_take_back_locked(inode) && left < LEASE_SHARED)
		return 0;
	lease_state_begin(l, LEASE_LOWERING);
	l->lowered_to = *keep = left;
	return inode->lease_number;
}

void lease_lowered_locked(struct inode *inode, struct io_thread *thread, bool done)
{
	struct inode_lease *l = inode->lease;

	lease_state_end(l, LEASE_LOWERING);
	l->closing = false;
	if (!done)
		return;
	l->returned = max_u64(l->returned, inode->commit.call.req.commit.lease);
	lower_locked(inode, thread, l->lowered_to);
	forget_recall(l);
}

/* Counts only a handle's first flush. Else a file that many handles close in turn would be asked
 * for again each time. A mapped file may still be written, so it does not count as closing. */
void lease_note_closing(struct inode *inode, struct handle *handle)
{
	pthread_mutex_lock(&inode->lock);
	if (!commit_is_clean_locked(inode)) {
		inode->lease->closing = !handle->flushed && inode->nwriters == 1 &&
					!kernel_pages_hinders_locked(inode, LEASE_SHARED);
		handle->flushed = true;
	}
	pthread_mutex_unlock(&inode->lock);
}
