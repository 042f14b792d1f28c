#include "daemon/lease.h"

#include <assert.h>
#include <errno.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/fs_internal.h"
#include "daemon/handle.h"
#include "daemon/lease_private.h"
#include "daemon/op.h"

void inode_lease_init(struct inode_lease *lease)
{
	list_init(&lease->waiters);
	list_init(&lease->listed);
	list_init(&lease->leaving);
}

static void set_type_locked(struct inode *inode, struct io_thread *thread, uint8_t type)
{
	struct inode_lease *l = &inode->lease;

	if (type != LEASE_NONE && l->type == LEASE_NONE)
		lease_list_locked(inode, thread);
	else if (type == LEASE_NONE && l->type != LEASE_NONE)
		lease_unlist_locked(inode);
	l->type = type;
}

void lease_fini(struct inode *inode)
{
	if (inode->lease.type != LEASE_NONE)
		lease_unlist_locked(inode);
}

/* Something is on its way, and is no more. */
static void state_begin(struct inode_lease *l, enum lease_state state)
{
	assert(l->state == LEASE_IDLE && state != LEASE_IDLE);
	l->state = state;
}

static void state_end(struct inode_lease *l, enum lease_state state)
{
	assert(l->state == state && state != LEASE_IDLE);
	l->state = LEASE_IDLE;
}

/* The operation that waits, and what it waits for. */
static struct op_lease *wanted_by(const struct list *link)
{
	return op_of(list_entry(link, struct waiter, link)->req)->at_lease;
}

/* ---- who may use it -------------------------------------------------------------------------- */

static bool is_recalled(const struct inode_lease *l)
{
	return l->recalled && l->recalled >= l->number;
}

/* Or about to be. */
static bool is_shared(const struct inode_lease *l)
{
	return l->type == LEASE_SHARED || l->state == LEASE_LOWERING;
}

/* What it needs by now. Of a file that may be stored into there are no pages under a shared lease:
 * those that there are go before it is opened so. */
static uint8_t type_for(const struct inode *inode, const struct op_lease *want)
{
	switch (want->use) {
	case USE_READS_PAGES:
		return inode->cached.nstorers ? LEASE_EXCLUSIVE : LEASE_SHARED;
	case USE_MAY_STORE:
		return is_shared(&inode->lease) && cached_any_locked(inode) ? LEASE_EXCLUSIVE
									    : want->type;
	default:
		/* Who writes under all there is takes that for granted. */
		return want->type == LEASE_OVERWRITE && inode->lease.type == LEASE_EXCLUSIVE
			       ? LEASE_EXCLUSIVE
			       : want->type;
	}
}

/* Any lease is as good as a pin. */
static bool covers(const struct inode *inode, const struct op_lease *want)
{
	const struct inode_lease *l = &inode->lease;

	return (!want->pin || l->pinned || l->type != LEASE_NONE) &&
	       lease_includes(l->type, type_for(inode, want));
}

static bool somebody_waits_for_a_type(const struct inode *inode)
{
	list_for_each (pos, &inode->lease.waiters)
		if (type_for(inode, wanted_by(pos)))
			return true;
	return false;
}

/* Pages are dirty under it, or were under one that was lost. */
static bool may_have_dirty(const struct inode_lease *l)
{
	return (l->type == LEASE_EXCLUSIVE && l->state != LEASE_LOWERING) || l->type == LEASE_NONE;
}

/* Until it is answered the kernel can't drop what it is asked to. */
static bool holds_up_dropping(const struct request *req, const struct op_lease *want)
{
	const struct inode *inode = want->inode;

	switch (want->use) {
	case USE_READS_PAGES:
		return cached_drops_locked(inode, req->args.offset, req->args.size);
	case USE_WRITES_PAGES_BACK:
		return true;
	case USE_HOLDS_WRITING_BACK:
		return cached_any_locked(inode) && may_have_dirty(&inode->lease);
	default:
		return false;
	}
}

enum entry { ENTERS, WAITS, FAILS };

/* One that comes now: not past those that wait, nor into what is recalled. */
static enum entry entry_of(const struct request *req, const struct op_lease *want)
{
	const struct inode_lease *l = &want->inode->lease;
	uint8_t type = type_for(want->inode, want);

	if (want->use == USE_READS_PAGES && !cached_make_locked(want->inode))
		return FAILS;
	/* Where nothing covers it the lease was lost, and what the pages had with it. */
	if (holds_up_dropping(req, want))
		return covers(want->inode, want) ? ENTERS : FAILS;
	if (!covers(want->inode, want) ||
		(l->state == LEASE_LOWERING && !lease_includes(l->lowered_to, type)))
		return WAITS;
	if (type && (somebody_waits_for_a_type(want->inode) ||
			    (is_recalled(l) && !lease_includes(l->keep, type))))
		return WAITS;
	return ENTERS;
}

static void use_locked(const struct request *req, struct op_lease *want)
{
	struct inode *inode = want->inode;
	struct inode_lease *l = &inode->lease;

	want->type = type_for(inode, want);
	l->users[want->type]++;
	l->evicted = false;
	l->closing &= want->type != LEASE_EXCLUSIVE;
	if (!__atomic_load_n(&l->used, __ATOMIC_RELAXED))
		__atomic_store_n(&l->used, true, __ATOMIC_RELAXED);
	if (want->use == USE_READS_PAGES)
		cached_note_locked(inode, req->args.offset, req->args.size);
	else if (want->use == USE_MAY_STORE)
		inode->cached.nstorers++;
}

/* In the order they came; pins pass those who wait for more. */
static void wake_covered_locked(struct inode *inode)
{
	bool blocked = false;

	list_for_each_safe (pos, &inode->lease.waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);
		struct op_lease *want = wanted_by(pos);
		uint8_t type = type_for(inode, want);

		if (!covers(inode, want) || (type && blocked)) {
			blocked |= type != LEASE_NONE;
			continue;
		}
		use_locked(w->req, want);
		list_del(pos);
		waiter_wake(w, 0);
	}
}

/* By somebody who needs more than that. */
static bool is_used_beyond(const struct inode_lease *l, uint8_t keep)
{
	for (unsigned type = LEASE_LAYOUT; type < LEASE_TYPES; type++)
		if (l->users[type] && !lease_includes(keep, (uint8_t)type))
			return true;
	return false;
}

static bool is_used(const struct inode_lease *l)
{
	return l->users[LEASE_NONE] || is_used_beyond(l, LEASE_NONE);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void step_locked(struct inode *inode, struct io_thread *thread);

/* Unlocks, too. */
static void step_and_put(struct inode *inode, struct io_thread *thread)
{
	bool orphan;

	step_locked(inode, thread);
	orphan = inode->orphan;
	pthread_mutex_unlock(&inode->lock);
	if (orphan)
		returns_settle(inode, thread);
	inode_put(inode);
}

/* What was told again by an answer that was made before. */
static void forget_recall(struct inode_lease *l)
{
	if (l->recalled <= l->returned && lease_includes(l->keep, l->type))
		l->recalled = 0;
}

static void given_back(struct inode *inode, struct io_thread *thread, enum lease_state state)
{
	pthread_mutex_lock(&inode->lock);
	state_end(&inode->lease, state);
	forget_recall(&inode->lease);
	step_and_put(inode, thread);
}

static void returned(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct inode *inode = container_of(call, struct inode, lease.call);

	if (rep->status && rep->status != -ESTALE)
		log_error("inode %llu: the server refused to take a lease back: %s",
			(unsigned long long)inode->ino, errno_text(rep->status));
	given_back(inode, inode->lease.thread, LEASE_RETURNING);
}

/* Sends lease.call, whose end ends this state. */
static void send_locked(struct inode *inode, struct io_thread *thread, enum lease_state state)
{
	struct inode_lease *l = &inode->lease;

	state_begin(l, state);
	list_init(&l->call.link);
	l->thread = thread;
	inode_ref(inode);
	rpc_start(thread, &l->call);
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

bool lease_is_used_locked(const struct inode *inode)
{
	return is_used(&inode->lease) || !list_empty(&inode->lease.waiters);
}

static bool is_open(const struct inode *inode)
{
	return inode->nopen || lease_is_used_locked(inode);
}

/* Of who has had it alone all is known, the time of reading, too; what others may change from now
 * on is not. */
static void lower_locked(struct inode *inode, struct io_thread *thread, uint8_t keep)
{
	struct inode_lease *l = &inode->lease;

	if (keep)
		inode_share_locked(inode, keep >= LEASE_SHARED);
	else
		inode_unlease_locked(inode);
	if (keep == LEASE_SHARED)
		inode->looked_ms = io_thread_now(thread);
	/* Whoever asks for the size meanwhile tells the kernel. */
	if (keep && keep < LEASE_SHARED)
		cached_leased_locked(inode);
	set_type_locked(inode, thread, keep);
	l->closing = l->tried = false;
}

/* From here on it is as if that had been returned. A recall's number may be that of a grant whose
 * answer is on its way (CREATE): its pin stays. */
static struct rpc_returned give_locked(struct inode *inode, struct io_thread *thread, uint8_t keep)
{
	struct inode_lease *l = &inode->lease;
	struct rpc_returned r = {
		.ino = inode->ino, .number = max_u64(l->number, l->recalled), .keep = keep};

	if (r.number > l->number)
		lease_note(inode->fs, inode->ino);
	if (!keep && inode_is_regular(inode)) {
		l->pinned = is_open(inode);
		l->unsure = false;
		if (l->pinned)
			r.pin = RETURN_PIN;
		else if (r.number == l->number)
			r.pin = RETURN_UNPIN;
	}
	lower_locked(inode, thread, keep);
	l->returned = r.number;
	l->recalled = 0;
	l->evicted = false;
	return r;
}

static void send_return_locked(struct inode *inode, struct io_thread *thread, uint8_t keep)
{
	struct inode_lease *l = &inode->lease;
	struct rpc_returned r = give_locked(inode, thread, keep);

	l->call = (struct rpc_call){.done = returned};
	l->call.req.op = RPC_RETURN;
	lease_put_returned(&l->call.req.ret, l->tail, &r);
	send_locked(inode, thread, LEASE_RETURNING);
}

/* As soon as the kernel has no pages of it, nobody uses more than what is kept, and all that was
 * written is committed. What the server does not take is lost, and those who wrote it are told:
 * nothing is kept then. */
static bool can_give_back_locked(struct inode *inode, struct io_thread *thread, uint8_t *keep)
{
	const struct inode_lease *l = &inode->lease;
	const struct commit *c = &inode->commit;

	if (cached_hinders_locked(inode, *keep)) {
		cached_drop_locked(inode, thread, *keep);
		if (cached_hinders_locked(inode, *keep))
			return false;
	}
	if (is_used_beyond(l, *keep) || c->running)
		return false;
	if (!commit_is_clean_locked(inode) && !c->refused) {
		commit_start_locked(inode, thread);
		if (c->running)
			return false;
	}
	if (!commit_is_clean_locked(inode)) {
		commit_forget_locked(inode);
		*keep = LEASE_NONE;
	}
	return true;
}

/* ---- of who has written ---------------------------------------------------------------------- */

/* Of what is not open nothing is kept that others could be in the way of, and of what nobody may
 * write to nothing to do so. */
static uint8_t kept_of_recalled(const struct inode *inode)
{
	const struct inode_lease *l = &inode->lease;
	uint8_t keep = lease_common(l->keep, l->type);

	if (keep < LEASE_SHARED && !is_open(inode))
		return LEASE_NONE;
	return keep == LEASE_OVERWRITE && !inode->nwriters ? LEASE_LAYOUT : keep;
}

/* Who opens it may be about to write. An inode without a name is nobody else's. */
static bool is_left_by_writers(const struct inode *inode)
{
	const struct inode_lease *l = &inode->lease;

	return l->type == LEASE_EXCLUSIVE && !l->users[LEASE_EXCLUSIVE] && !l->users[LEASE_NONE] &&
	       list_empty(&l->waiters) && (!inode->nwriters || l->closing) && !inode->orphan;
}

/* Others are served by it, too. */
uint64_t lease_lower_locked(struct inode *inode, uint8_t *keep)
{
	struct inode_lease *l = &inode->lease;
	uint8_t left = LEASE_NONE;

	*keep = LEASE_NONE;
	if (l->state != LEASE_IDLE)
		return 0;
	if (is_recalled(l))
		left = kept_of_recalled(inode);
	else if (is_left_by_writers(inode))
		left = LEASE_SHARED;
	if (!left || left == l->type || is_used_beyond(l, left) ||
		cached_hinders_locked(inode, left))
		return 0;
	/* Others see then what was written, perhaps before who wrote it has his answer. */
	if (!told_try_take_back_locked(inode) && left < LEASE_SHARED)
		return 0;
	state_begin(l, LEASE_LOWERING);
	l->lowered_to = *keep = left;
	return l->number;
}

void lease_lowered_locked(struct inode *inode, struct io_thread *thread, bool done)
{
	struct inode_lease *l = &inode->lease;

	state_end(l, LEASE_LOWERING);
	l->closing = false;
	if (!done)
		return;
	l->returned = max_u64(l->returned, inode->commit.call.req.commit.lease);
	lower_locked(inode, thread, l->lowered_to);
	forget_recall(l);
}

/* Only once, or what many write to that close it one after the other would be asked for again each
 * time; and what is mapped may be written to all the same. */
void lease_note_closing(struct inode *inode, struct handle *handle)
{
	pthread_mutex_lock(&inode->lock);
	if (!commit_is_clean_locked(inode)) {
		inode->lease.closing = !handle->flushed && inode->nwriters == 1 &&
				       !cached_hinders_locked(inode, LEASE_SHARED);
		handle->flushed = true;
	}
	pthread_mutex_unlock(&inode->lock);
}

/* Nobody else has a use for it while it is here, and nobody here either. */
static bool is_of_no_use(const struct inode *inode)
{
	const struct inode_lease *l = &inode->lease;

	/* Of one whose last name we have taken all goes at once (returns.h); what has come since
	 * then, by an OPEN that was too late, goes by itself. */
	if (inode->nopen || is_used(l) || (inode->orphan && !inode->returned))
		return false;
	return l->type ? l->passing || !inode->attr.nlink || l->type < LEASE_SHARED
		       : l->pinned || l->unsure;
}

/* Less than what a waiter wants is returned first, unless more comes at once, which it does not
 * beside other writers: so it holds nothing while it waits. */
static bool must_give_back(const struct inode *inode, uint8_t *keep)
{
	const struct inode_lease *l = &inode->lease;

	*keep = LEASE_NONE;
	if (is_recalled(l)) {
		*keep = kept_of_recalled(inode);
		return true;
	}
	if (!list_empty(&l->waiters))
		return l->type && somebody_waits_for_a_type(inode) &&
		       (l->tried || l->type == LEASE_OVERWRITE);
	return is_of_no_use(inode);
}

/* With others: who is known to nobody any more, or was not used for long; and what writers have
 * left, but what the server does not take stays until it must go. */
static bool is_to_leave(const struct inode *inode, uint8_t *keep)
{
	const struct inode_lease *l = &inode->lease;

	*keep = LEASE_NONE;
	if (!l->type || l->state != LEASE_IDLE || !list_empty(&l->waiters) || is_recalled(l) ||
		inode->orphan)
		return false;
	if (!is_used(l) &&
		(l->evicted || (inode->ino != ROOT_INO &&
				       !__atomic_load_n(&inode->nlookup, __ATOMIC_RELAXED))))
		return true;
	*keep = LEASE_SHARED;
	return is_left_by_writers(inode) && !inode->commit.refused;
}

bool lease_leave_locked(
	struct inode *inode, struct io_thread *thread, struct rpc_returned *returned)
{
	uint8_t keep;

	if (renewal_is_running(&inode->fs->renewal) || !is_to_leave(inode, &keep) ||
		!told_take_back_locked(inode, thread) ||
		!can_give_back_locked(inode, thread, &keep))
		return false;
	*returned = give_locked(inode, thread, keep);
	state_begin(&inode->lease, LEASE_LEAVING);
	return true;
}

void lease_left(struct inode *inode, struct io_thread *thread)
{
	given_back(inode, thread, LEASE_LEAVING);
}

void lease_evict(struct inode *inode, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	inode->lease.evicted = true;
	step_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
	inode_put(inode);
}

void lease_end_locked(struct inode *inode)
{
	struct inode_lease *l = &inode->lease;

	assert(l->state == LEASE_IDLE);
	set_type_locked(inode, NULL, LEASE_NONE);
	l->pinned = l->unsure = false;
	l->returned = l->number;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* What is known of the inode stays so where there was a lease of it before, but for what others may
 * have changed beside that, and what is in doubt. */
static void take_lease_locked(struct inode *inode, const struct rpc_entry_reply *entry)
{
	struct inode_lease *l = &inode->lease;
	uint8_t had = l->type;
	bool news = had && (had < LEASE_SHARED || !inode->attr_valid);

	l->passing = entry->lease.passing;
	l->tried = had && lease_includes(had, entry->lease.type);
	if (news)
		inode_see_others_locked(inode, &entry->attr);
	set_type_locked(inode, l->thread, entry->lease.type);
	if (!had)
		inode_lease_locked(inode, &entry->attr, entry, l->epoch);
	else if (news)
		inode_sure_locked(inode, l->epoch);
	if (had)
		cached_leased_locked(inode);
}

static void granted(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct inode *inode = container_of(call, struct inode, lease.call);
	struct inode_lease *l = &inode->lease;
	const struct rpc_lease *asked = &call->req.lease;

	pthread_mutex_lock(&inode->lock);
	state_end(l, LEASE_ASKING);
	if (rep->status) {
		/* Before it waited there it had nothing any more, whatever an answer says that is
		 * on its way. */
		lease_note(inode->fs, inode->ino);
		/* Who has come since it was taken back asks anew. */
		if (rep->status != -EINTR)
			waiters_wake(&l->waiters, rep->status);
	} else {
		l->number = max_u64(l->number, rep->entry.lease.number);
		if (asked->flags & LEASE_PIN) {
			l->pinned = true;
			l->unsure = false;
		}
		if (asked->type)
			take_lease_locked(inode, &rep->entry);
		if (!is_recalled(l))
			l->recalled = 0;
		wake_covered_locked(inode);
	}
	step_and_put(inode, l->thread);
}

/* Besides the one that it waits for, which is the last. A pin keeps nobody waiting. */
static bool has_another(const struct op *op)
{
	return op->nleases > 1 && op->leases[0].type;
}

/* As much as there can be, where nobody is in the way. */
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

/* All that is waited for in one. A pin alone leaves the type as it is. */
static void ask_locked(struct inode *inode, struct io_thread *thread)
{
	struct inode_lease *l = &inode->lease;
	uint8_t hint = LEASE_NONE, types = 0;
	bool nested = false, waits, pin = false;
	struct rpc_lease ask;

	list_for_each (pos, &l->waiters) {
		const struct op_lease *want = wanted_by(pos);

		types |= lease_bit(type_for(inode, want));
		hint = (uint8_t)max_u64(hint, want->hint);
		pin |= want->pin && !l->pinned;
		nested |= has_another(op_of(list_entry(pos, struct waiter, link)->req));
	}
	waits = types && !l->type;
	ask = asking_for(inode, types ? types : lease_bit(hint));
	ask.flags |= pin ? LEASE_PIN : 0;
	if (ask.type && !waits)
		ask.flags |= LEASE_IF_FREE;
	l->epoch = inode_epoch(inode->fs);
	l->call = (struct rpc_call){.done = granted, .nested = nested};
	l->call.req.op = RPC_LEASE;
	l->call.req.lease = ask;
	send_locked(inode, thread, LEASE_ASKING);
}

static void look_whether_wanted(struct thread_call *call);

/* What is asked for nobody may want any more: it would wait at the server, and others behind it.
 * Only the thread that has asked can take that back. True: it was not sent, and its reference is
 * the caller's. */
static bool take_back_locked(struct inode *inode, struct io_thread *thread)
{
	struct inode_lease *l = &inode->lease;

	if (l->state != LEASE_ASKING || l->taking_back || !list_empty(&l->waiters))
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
		state_end(l, LEASE_ASKING);
		return true;
	}
	rpc_withdraw(thread, &l->call);
	return false;
}

/* Unlocks, too, and a reference goes. */
static void see_whether_wanted(struct inode *inode, struct io_thread *thread)
{
	bool unsent = take_back_locked(inode, thread);

	step_and_put(inode, thread);
	if (unsent)
		inode_put(inode);
}

static void look_whether_wanted(struct thread_call *call)
{
	struct inode *inode = container_of(call, struct inode, lease.take_back);

	pthread_mutex_lock(&inode->lock);
	see_whether_wanted(inode, steal_ptr(&inode->lease.taking_back));
}

/* What is due. */
static void step_locked(struct inode *inode, struct io_thread *thread)
{
	struct inode_lease *l = &inode->lease;
	uint8_t keep;

	if (l->state != LEASE_IDLE)
		return;
	if (renewal_is_running(&inode->fs->renewal)) {
		waiters_wake(&l->waiters, -EIO);
		return;
	}
	if (!is_recalled(l))
		wake_covered_locked(inode);
	if (must_give_back(inode, &keep)) {
		if (told_take_back_locked(inode, thread) &&
			can_give_back_locked(inode, thread, &keep))
			send_return_locked(inode, thread, keep);
	} else if (!list_empty(&l->waiters)) {
		/* What a lost lease has left goes first. */
		if (l->type != LEASE_NONE || !cached_any_locked(inode))
			ask_locked(inode, thread);
	} else if (is_to_leave(inode, &keep)) {
		lease_leave_later_locked(inode, thread);
	}
}

void lease_settle(struct inode *inode, struct io_thread *thread)
{
	pthread_mutex_lock(&inode->lock);
	step_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
}

void lease_forget_locked(struct inode *inode)
{
	struct inode_lease *l = &inode->lease;

	assert(l->state == LEASE_IDLE);
	set_type_locked(inode, NULL, LEASE_NONE);
	l->pinned = l->unsure = l->passing = l->evicted = l->closing = l->tried = false;
	l->number = l->returned = l->recalled = 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Takes over the reference in want. */
static bool enter(struct request *req, const struct op_lease *want,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = want->inode;
	enum entry entry;

	op->at_lease = &op->leases[op->nleases++];
	*op->at_lease = *want;
	pthread_mutex_lock(&inode->lock);
	entry = entry_of(req, want);
	if (entry == ENTERS) {
		use_locked(req, op->at_lease);
	} else {
		waiter_init(&op->waiter, req, then);
		op->wait = OP_AT_LEASE;
		op->at_inode = inode;
	}
	if (entry == FAILS) {
		waiter_wake(&op->waiter, -EIO);
	} else if (entry == WAITS) {
		list_add_tail(&inode->lease.waiters, &op->waiter.link);
		step_locked(inode, req->thread);
	}
	pthread_mutex_unlock(&inode->lock);
	return entry == ENTERS;
}

static void leave(struct op_lease *had, struct io_thread *thread)
{
	struct inode *inode = steal_ptr(&had->inode);

	pthread_mutex_lock(&inode->lock);
	inode->lease.users[had->type]--;
	inode->cached.nstorers -= had->use == USE_MAY_STORE;
	step_and_put(inode, thread);
}

void lease_leave(struct request *req)
{
	struct op *op = op_of(req);

	while (op->nleases)
		leave(&op->leases[--op->nleases], req->thread);
}

/* The last one was waited for, and did not come; somebody behind may want less. */
static void withdraw(struct request *req)
{
	struct op *op = op_of(req);
	struct op_lease *had = &op->leases[--op->nleases];
	struct inode *inode = steal_ptr(&had->inode);

	pthread_mutex_lock(&inode->lock);
	see_whether_wanted(inode, req->thread);
}

static bool admit_rest(struct request *req);

static void admitted(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (status) {
		withdraw(req);
		lease_leave(req);
		op->lease_then(req, status);
	} else if (admit_rest(req)) {
		op->lease_then(req, 0);
	}
}

static bool admit_rest(struct request *req)
{
	struct op *op = op_of(req);
	struct op_lease needs[OP_LEASES];
	unsigned n = lease_needs_of(req, needs), at = op->nleases;
	bool inside = true;

	for (unsigned i = 0; i < n; i++) {
		if (i < at || !inside)
			inode_put(needs[i].inode);
		else
			inside = enter(req, &needs[i], admitted);
	}
	return inside;
}

bool lease_admit(struct request *req, void (*then)(struct request *req, int status))
{
	op_of(req)->lease_then = then;
	if (admit_rest(req))
		return true;
	fs_watch_begin(req);
	return false;
}

bool lease_is_alone(const struct request *req)
{
	const struct op *op = op_of((struct request *)req);

	return !op->nleases || op->leases[0].type == LEASE_EXCLUSIVE;
}

bool lease_withdraw(struct request *req)
{
	struct op *op = op_of(req);
	struct inode *inode = op->at_inode;
	bool waits;

	pthread_mutex_lock(&inode->lock);
	waits = !list_empty(&op->waiter.link);
	list_del(&op->waiter.link);
	pthread_mutex_unlock(&inode->lock);
	if (!waits)
		return false;
	op->wait = OP_RUNS;
	withdraw(req);
	lease_leave(req);
	return true;
}

bool lease_holds_up_dropping(const struct request *req)
{
	struct op_lease needs[OP_LEASES];
	unsigned n = lease_needs_of(req, needs);
	bool holds = false;

	for (unsigned i = 0; i < n; i++) {
		struct inode *inode = needs[i].inode;

		pthread_mutex_lock(&inode->lock);
		holds |= holds_up_dropping(req, &needs[i]);
		pthread_mutex_unlock(&inode->lock);
		inode_put(inode);
	}
	return holds;
}

static void taken(struct request *req, int status)
{
	if (status)
		withdraw(req);
	op_of(req)->lease_then(req, status);
}

bool lease_take(struct request *req, struct inode *inode, enum lease_type type,
	void (*then)(struct request *req, int status))
{
	struct op_lease want = {.inode = inode_ref(inode), .type = (uint8_t)type};

	op_of(req)->lease_then = then;
	return enter(req, &want, taken);
}

/* An answer that was overtaken says less than what is known here, or nothing any more: what it
 * brings is only taken if nothing of it can have been given back. */
static void open_locked(struct inode *inode, struct io_thread *thread,
	const struct rpc_entry_reply *entry, uint64_t epoch, bool noted)
{
	struct inode_lease *l = &inode->lease;
	const struct lease *lease = &entry->lease;
	bool newest = lease->number > l->number;

	l->number = max_u64(l->number, lease->number);
	l->unsure = noted || lease->number <= l->returned;
	if (l->unsure)
		return;
	l->pinned = true;
	if (!entry->created || !newest || l->state != LEASE_IDLE || lease->type == LEASE_NONE)
		return;
	l->passing = lease->passing;
	set_type_locked(inode, thread, lease->type);
	inode_lease_locked(inode, &entry->attr, entry, epoch);
}

bool lease_take_opened(struct request *req, struct inode *inode,
	const struct rpc_entry_reply *entry, uint64_t epoch, uint64_t notes,
	void (*then)(struct request *req, int status))
{
	struct op_lease want = {
		.inode = inode_ref(inode),
		.pin = true,
		.hint = LEASE_OVERWRITE,
		.use = handle_may_store(req) ? USE_MAY_STORE : USE_PLAIN,
	};
	bool noted = lease_noted_since(inode->fs, notes, inode->ino);

	pthread_mutex_lock(&inode->lock);
	open_locked(inode, req->thread, entry, epoch, noted);
	pthread_mutex_unlock(&inode->lock);
	op_of(req)->lease_then = then;
	return enter(req, &want, taken);
}

/* ---- leases by looking ----------------------------------------------------------------------- */

enum { REFUSED_MS = 1000 };

/* What is on its way says more than this answer, and what was given back is not had any more, if
 * the server has said so before or not. */
static bool is_news_locked(const struct inode *inode, const struct lease *lease)
{
	const struct inode_lease *l = &inode->lease;

	return lease->type == LEASE_SHARED && l->type == LEASE_NONE && l->state == LEASE_IDLE &&
	       lease->number >= l->number && lease->number > l->returned && !is_recalled(l) &&
	       !inode->orphan && !inode->returned && !cached_any_locked(inode);
}

static void refuse_locked(struct inode *inode, struct io_thread *thread, const struct lease *lease)
{
	if (lease->type == LEASE_NONE)
		inode->lease.refused_ms = io_thread_now(thread);
}

bool lease_looked(struct inode *inode, struct io_thread *thread, const struct lease_look *look)
{
	struct inode_lease *l = &inode->lease;
	bool noted = lease_noted_since(inode->fs, look->notes, inode->ino), news;

	pthread_mutex_lock(&inode->lock);
	news = !noted && is_news_locked(inode, look->lease);
	if (news) {
		l->number = look->lease->number;
		l->passing = look->lease->passing;
		set_type_locked(inode, thread, LEASE_SHARED);
		inode_lease_locked(inode, look->attr, look->entry, look->epoch);
		step_locked(inode, thread);
	} else {
		refuse_locked(inode, thread, look->lease);
	}
	pthread_mutex_unlock(&inode->lock);
	return news;
}

uint64_t lease_known_locked(struct inode *inode)
{
	struct inode_lease *l = &inode->lease;

	if (l->type < LEASE_SHARED)
		return 0;
	if (!__atomic_load_n(&l->used, __ATOMIC_RELAXED))
		__atomic_store_n(&l->used, true, __ATOMIC_RELAXED);
	return l->number;
}

bool lease_is_leaving_locked(const struct inode *inode)
{
	return is_recalled(&inode->lease);
}

bool lease_lacks_locked(const struct inode *inode, int64_t now)
{
	const struct inode_lease *l = &inode->lease;

	return l->type == LEASE_NONE && l->state == LEASE_IDLE &&
	       (!l->refused_ms || now - l->refused_ms > REFUSED_MS);
}

/* ---- recalls --------------------------------------------------------------------------------- */

static void recall_locked(struct inode_lease *l, const struct rpc_recall *recall)
{
	/* Of an older grant than what there is, or told again while the RETURN was on its way. */
	if (recall->number < l->number)
		return;
	if (recall->number <= l->returned && lease_includes(recall->keep, l->type))
		return;
	l->keep = l->recalled ? lease_common(l->keep, recall->keep) : recall->keep;
	l->recalled = max_u64(l->recalled, recall->number);
}

void lease_recalled(struct inode *inode, struct io_thread *thread, const struct rpc_recall *recall)
{
	pthread_mutex_lock(&inode->lock);
	recall_locked(&inode->lease, recall);
	step_locked(inode, thread);
	pthread_mutex_unlock(&inode->lock);
}
