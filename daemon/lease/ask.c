/* ask.c - sends one LEASE for all waiters. */
#include <errno.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/lease/lease_private.h"
#include "daemon/op/op.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode.h"

/* ---- the answer ------------------------------------------------------------------------------ */

/* If the inode had a lease before, what is known of it stays, except what other clients may have
 * changed beside that lease, and what is in doubt. */
static void take_lease_locked(struct inode *inode, const struct rpc_entry_reply *entry)
{
	struct inode_lease *l = inode->lease;
	uint8_t had = inode->lease_type;
	bool news = had && (had < LEASE_SHARED || !inode->attr_valid);

	l->passing = entry->lease.passing;
	l->tried = had && lease_includes(had, entry->lease.type);
	if (news)
		inode_see_others_locked(inode, &entry->attr);
	lease_set_type_locked(inode, l->thread, entry->lease.type);
	if (!had)
		inode_lease_locked(inode, &entry->attr, entry, l->epoch);
	else if (news)
		inode_sure_locked(inode, l->epoch);
	if (had)
		kernel_pages_end_is_told_locked(inode);
}

static void granted(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct inode *inode = container_of(call, struct inode_lease, call)->inode;
	struct inode_lease *l = inode->lease;
	const struct rpc_lease *asked = &call->req.lease;

	pthread_mutex_lock(&inode->lock);
	lease_state_end(l, LEASE_ASKING);
	if (rep->status) {
		/* A LEASE that waited at the server has lost what the client had before. No answer
		 * on its way may bring that back. */
		lease_note(inode->fs, inode->ino);
		/* Operations that came after it was taken back ask anew. */
		if (rep->status != -EINTR)
			waiters_wake(&l->inode->lease_waiters, rep->status);
	} else {
		inode->lease_number = max_u64(inode->lease_number, rep->entry.lease.number);
		if (asked->flags & LEASE_PIN) {
			l->pinned = true;
			l->unsure = false;
		}
		if (asked->type)
			take_lease_locked(inode, &rep->entry);
		if (!lease_is_recalled(l))
			l->recalled = 0;
		lease_wake_covered_locked(inode);
	}
	lease_step_and_put(inode, l->thread);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Whether it uses a lease besides the one that it waits for, which is the last. A pin keeps no
 * other client waiting. */
static bool has_another(struct op *op)
{
	return shared_op(op)->nleases > 1 && shared_op(op)->leases[0].type;
}

/* The most that is possible where no other client is in the way. */
static struct rpc_lease asking_for(const struct inode *inode, uint8_t types)
{
	uint8_t strict = lease_bit(LEASE_SHARED) | lease_bit(LEASE_EXCLUSIVE);
	uint8_t writing = lease_bit(LEASE_OVERWRITE) | lease_bit(LEASE_EXCLUSIVE);
	struct rpc_lease ask = {.ino = inode->ino};

	if (types)
		ask.type = types & writing ? LEASE_EXCLUSIVE : LEASE_SHARED;
	if (types && !(types & strict))
		ask.flags = LEASE_OR_LAYOUT;
	return ask;
}

/* One LEASE for all waiters. A pin alone leaves the type as it is. */
void lease_ask_locked(struct inode *inode, struct io_thread *thread)
{
	struct inode_lease *l = inode->lease;
	uint8_t hint = LEASE_NONE, types = 0;
	bool nested = false, waits, pin = false;
	struct rpc_lease ask;

	list_for_each (pos, &l->inode->lease_waiters) {
		const struct op_lease *want = lease_wanted_by(pos);

		types |= lease_bit(lease_type_for(inode, want));
		hint = (uint8_t)max_u64(hint, want->hint);
		pin |= want->pin && !l->pinned;
		nested |= has_another(op_of(list_entry(pos, struct waiter, link)->req));
	}
	waits = types && !inode->lease_type;
	ask = asking_for(inode, types ? types : lease_bit(hint));
	ask.flags |= pin ? LEASE_PIN : 0;
	if (ask.type && !waits)
		ask.flags |= LEASE_IF_FREE;
	l->epoch = inode_epoch(inode->fs);
	l->call = (struct rpc_call){.done = granted, .nested = nested};
	l->call.req.op = RPC_LEASE;
	l->call.req.lease = ask;
	lease_send_locked(inode, thread, LEASE_ASKING);
}

static void ask_at_once_locked(struct inode *inode, struct io_thread *thread, struct rpc_lease ask)
{
	struct inode_lease *l = inode->lease;

	if (l->state != LEASE_IDLE)
		return;
	ask.ino = inode->ino;
	ask.flags |= LEASE_PIN;
	l->epoch = inode_epoch(inode->fs);
	l->call = (struct rpc_call){.done = granted};
	l->call.req.op = RPC_LEASE;
	l->call.req.lease = ask;
	lease_send_locked(inode, thread, LEASE_ASKING);
}

/* Pages need it, even beyond the number of leases that the session may keep. */
void lease_pin_locked(struct inode *inode, struct io_thread *thread)
{
	bool reads = session_is_read_only(inode->fs->session);
	struct rpc_lease ask = {
		.type = reads ? LEASE_SHARED : LEASE_EXCLUSIVE,
		.flags = kernel_pages_any_locked(inode) ? 0 : LEASE_IF_FREE,
	};

	ask_at_once_locked(inode, thread, ask);
}

/* It waits for nobody: if others have come, the mount stays as it is. Less than what there is would
 * not be given. */
void lease_ask_for_all_locked(struct inode *inode, struct io_thread *thread)
{
	const struct inode_lease *l = inode->lease;
	struct rpc_lease ask = {
		.type = inode->lease_type == LEASE_OVERWRITE ? LEASE_EXCLUSIVE : LEASE_SHARED,
		.flags = LEASE_IF_FREE,
	};

	if (l->state != LEASE_IDLE || lease_is_recalled(l) || lease_covers_all_locked(inode))
		return;
	/* Pages of a lease that was lost are dropped before. */
	if (inode->lease_type == LEASE_NONE && kernel_pages_any_locked(inode))
		return;
	/* The answer's attributes count then. */
	inode->attr_valid &= inode->sure;
	ask_at_once_locked(inode, thread, ask);
}

/* ---- taking it back -------------------------------------------------------------------------- */

static void look_whether_wanted(struct thread_call *call);

/* If no operation wants the LEASE any more, it would still wait at the server, and others behind
 * it. Only the thread that has sent it can take it back. True: it was not sent, and its reference
 * is the caller's. */
static bool ask_take_back_locked(struct inode *inode, struct io_thread *thread)
{
	struct inode_lease *l = inode->lease;

	if (l->state != LEASE_ASKING || l->taking_back || !list_empty(&l->inode->lease_waiters))
		return false;
	if (l->thread != thread) {
		inode_ref(inode);
		l->taking_back = l->thread;
		l->take_back.run = look_whether_wanted;
		list_init(&l->take_back.link);
		io_thread_call(l->thread, &l->take_back);
		return false;
	}
	if (rpc_cancel(thread, &l->call)) {
		lease_state_end(l, LEASE_ASKING);
		return true;
	}
	rpc_withdraw(thread, &l->call);
	return false;
}

void lease_unask_and_put(struct inode *inode, struct io_thread *thread)
{
	bool unsent = ask_take_back_locked(inode, thread);

	lease_step_and_put(inode, thread);
	if (unsent)
		inode_put(inode);
}

static void look_whether_wanted(struct thread_call *call)
{
	struct inode *inode = container_of(call, struct inode_lease, take_back)->inode;

	pthread_mutex_lock(&inode->lock);
	lease_unask_and_put(inode, steal_ptr(&inode->lease->taking_back));
}
