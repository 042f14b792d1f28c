/* enter.c - which operations may use the lease that there is, and which wait for more. */
#include <errno.h>
#include <fcntl.h>

#include "common/base/probes.h"
#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/lease/lease_private.h"
#include "daemon/op/op.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode.h"

struct op_lease *lease_wanted_by(const struct list *link)
{
	return shared_op_of(list_entry(link, struct waiter, link)->req)->at_lease;
}

/* ---- what one needs -------------------------------------------------------------------------- */

/* Also when it is being lowered. */
static bool is_shared(const struct inode_lease *l)
{
	return l->inode->lease_type == LEASE_SHARED || l->state == LEASE_LOWERING;
}

/* A file that a mapping may store into has no cached pages under LEASE_SHARED. So the kernel drops
 * the pages that there are before the file is opened in this way. */
uint8_t lease_type_for(const struct inode *inode, const struct op_lease *want)
{
	switch (want->use) {
	case USE_READS_PAGES:
		return inode->cached->nstorers ? LEASE_EXCLUSIVE : LEASE_SHARED;
	case USE_MAY_STORE:
		return is_shared(inode->lease) && kernel_pages_any_locked(inode) ? LEASE_EXCLUSIVE
										 : want->type;
	case USE_TELLS_END:
		return kernel_pages_is_endless_locked(inode) ? LEASE_LAYOUT : LEASE_NONE;
	default:
		/* Under LEASE_EXCLUSIVE a write relies on all that this lease allows. */
		return want->type == LEASE_OVERWRITE && inode->lease_type == LEASE_EXCLUSIVE
			       ? LEASE_EXCLUSIVE
			       : want->type;
	}
}

/* Any lease is as good as a pin. */
static bool covers(const struct inode *inode, const struct op_lease *want)
{
	const struct inode_lease *l = inode->lease;

	return (!want->pin || l->pinned || inode->lease_type != LEASE_NONE) &&
	       lease_includes(inode->lease_type, lease_type_for(inode, want));
}

bool lease_is_waited_for(const struct inode *inode)
{
	list_for_each (pos, &inode->lease_waiters)
		if (lease_type_for(inode, lease_wanted_by(pos)))
			return true;
	return false;
}

/* ---- who may use it -------------------------------------------------------------------------- */

/* Whether pages may be dirty, under this lease or one that was lost. */
static bool may_have_dirty(const struct inode_lease *l)
{
	return (l->inode->lease_type == LEASE_EXCLUSIVE && l->state != LEASE_LOWERING) ||
	       l->inode->lease_type == LEASE_NONE;
}

/* Whether the kernel can't drop pages, as it was asked to, before this request is answered. */
static bool holds_up_dropping(const struct request *req, const struct op_lease *want)
{
	const struct inode *inode = want->inode;

	switch (want->use) {
	case USE_READS_PAGES:
		return kernel_pages_drops_locked(inode, req->args.offset, req->args.size);
	case USE_WRITES_PAGES_BACK:
		return true;
	case USE_HOLDS_WRITING_BACK:
		return kernel_pages_any_locked(inode) && may_have_dirty(inode->lease) &&
		       !kernel_pages_are_clean_locked(inode);
	default:
		return false;
	}
}

/* The kernel drops pages behind the end first: stores there must not become part of the file. */
static bool waits_for_end(const struct inode *inode, const struct op_lease *want)
{
	return want->use == USE_PLAIN && lease_type_for(inode, want) == LEASE_EXCLUSIVE &&
	       kernel_pages_drops_behind_locked(inode);
}

enum entry { ENTERS, WAITS, FAILS };

/* A new operation does not pass those that wait, and does not use what is recalled. */
static enum entry entry_of(const struct request *req, const struct op_lease *want)
{
	const struct inode_lease *l = want->inode->lease;
	uint8_t type = lease_type_for(want->inode, want);

	if (want->use == USE_READS_PAGES && !kernel_pages_make_locked(want->inode))
		return FAILS;
	/* If no lease covers it, the lease was lost, and the contents of its pages with it. */
	if (holds_up_dropping(req, want))
		return covers(want->inode, want) ? ENTERS : FAILS;
	if (!covers(want->inode, want) || waits_for_end(want->inode, want) ||
		(l->state == LEASE_LOWERING && !lease_includes(l->lowered_to, type)))
		return WAITS;
	if (type && (lease_is_waited_for(want->inode) ||
			    (lease_is_recalled(l) && !lease_includes(l->keep, type))))
		return WAITS;
	return ENTERS;
}

static void use_locked(const struct request *req, struct op_lease *want)
{
	struct inode *inode = want->inode;
	struct inode_lease *l = inode->lease;

	want->type = lease_type_for(inode, want);
	l->users[want->type]++;
	l->evicted = false;
	l->closing &= want->type != LEASE_EXCLUSIVE;
	if (!__atomic_load_n(&l->used, __ATOMIC_RELAXED))
		__atomic_store_n(&l->used, true, __ATOMIC_RELAXED);
	if (want->use == USE_READS_PAGES)
		kernel_pages_note_locked(inode, req->thread,
			(struct cached_range){req->args.offset, req->args.offset + req->args.size},
			kernel_pages_is_for_mapping(req));
	else if (want->use == USE_MAY_STORE)
		inode->cached->nstorers++;
	if (want->use == USE_TELLS_END || want->use == USE_READS_PAGES ||
		(want->type && !lease_is_recalled(l)))
		kernel_pages_end_is_told_locked(inode);
}

/* Operations that want a pin only go before those that want a lease. */
static void queue_locked(struct inode *inode, struct op *op)
{
	struct list *before = &inode->lease_waiters;

	if (!lease_type_for(inode, shared_op(op)->at_lease)) {
		list_for_each (pos, &inode->lease_waiters) {
			if (lease_type_for(inode, lease_wanted_by(pos))) {
				before = pos;
				break;
			}
		}
	}
	list_add_tail(before, &op->waiter.link);
}

static bool is_transfer(const struct request *req)
{
	return req->op == OP_READ || req->op == OP_WRITE;
}

/* In the order in which they came. */
bool lease_wake_covered_locked(struct inode *inode)
{
	struct inode_lease *l = inode->lease;

	list_for_each_safe (pos, &l->inode->lease_waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);
		struct op_lease *want = lease_wanted_by(pos);

		if (!covers(inode, want) || waits_for_end(inode, want)) {
			if (lease_type_for(inode, want))
				return false;
			continue;
		}
		if (is_transfer(w->req)) {
			if (l->nturn == LEASE_TURN)
				return true;
			l->nturn++;
			want->in_turn = true;
		}
		use_locked(w->req, want);
		list_del(pos);
		waiter_wake(w, 0);
	}
	return false;
}

bool lease_is_used_beyond(const struct inode_lease *l, uint8_t keep)
{
	for (unsigned type = LEASE_LAYOUT; type < LEASE_TYPES; type++)
		if (l->users[type] && !lease_includes(keep, (uint8_t)type))
			return true;
	return false;
}

bool lease_has_users(const struct inode_lease *l)
{
	return l->users[LEASE_NONE] || lease_is_used_beyond(l, LEASE_NONE);
}

bool lease_is_used_locked(const struct inode *inode)
{
	return lease_has_users(inode->lease) || !list_empty(&inode->lease_waiters);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* A pin keeps no other client waiting. */
static void note_leased(struct op *op)
{
	const struct shared_op *shared = shared_op(op);

	op->leased = false;
	for (unsigned i = 0; i < shared->nleases; i++)
		op->leased |= shared->leases[i].type != LEASE_NONE;
}

/* Takes over the reference in want. */
static bool enter(struct request *req, const struct op_lease *want,
	void (*then)(struct request *req, int status))
{
	struct shared_op *shared = shared_op_of(req);
	struct op *op = op_of(req);
	struct inode *inode = want->inode;
	enum entry entry;

	shared->lease_hold.yields = true;
	if (!shared->nleases)
		op_is_inside(req, &shared->lease_hold, lease_leave);
	shared->at_lease = &shared->leases[shared->nleases++];
	*shared->at_lease = *want;
	pthread_mutex_lock(&inode->lock);
	entry = entry_of(req, want);
	if (entry == ENTERS) {
		use_locked(req, shared->at_lease);
		note_leased(op);
	} else {
		waiter_init(&op->waiter, req, then);
		op_waits(op, OP_AT_LEASE, &inode->lock);
		PROBE(rmemfs, lease_wait, req->unique, inode->ino);
	}
	if (entry == FAILS) {
		waiter_wake(&op->waiter, -EIO);
	} else if (entry == WAITS) {
		queue_locked(inode, op);
		lease_step_locked(inode, req->thread);
	}
	pthread_mutex_unlock(&inode->lock);
	return entry == ENTERS;
}

static void enter_leave(struct op_lease *had, struct io_thread *thread)
{
	struct inode *inode = steal_ptr(&had->inode);

	pthread_mutex_lock(&inode->lock);
	inode->lease->users[had->type]--;
	inode->lease->nturn -= had->in_turn;
	inode->cached->nstorers -= had->use == USE_MAY_STORE;
	lease_step_and_put(inode, thread);
}

void lease_leave(struct request *req)
{
	struct shared_op *shared = shared_op_of(req);

	op_has_left(req, &shared->lease_hold);
	while (shared->nleases)
		enter_leave(&shared->leases[--shared->nleases], req->thread);
	op_of(req)->leased = false;
}

/* The operation gives up the last lease, for which it waited in vain. Waiters behind it may want
 * less. */
static void enter_withdraw(struct request *req)
{
	struct shared_op *shared = shared_op_of(req);
	struct op_lease *had = &shared->leases[--shared->nleases];
	struct inode *inode = steal_ptr(&had->inode);

	if (!shared->nleases)
		op_has_left(req, &shared->lease_hold);
	note_leased(op_of(req));
	pthread_mutex_lock(&inode->lock);
	lease_unask_and_put(inode, req->thread);
}

static bool admit_rest(struct request *req);

static void admitted(struct request *req, int status)
{
	struct shared_op *shared = shared_op_of(req);

	PROBE(rmemfs, lease_go, req->unique, status);
	if (status) {
		enter_withdraw(req);
		lease_leave(req);
		shared->lease_then(req, status);
		return;
	}
	note_leased(op_of(req));
	if (admit_rest(req))
		shared->lease_then(req, 0);
}

static bool admit_rest(struct request *req)
{
	struct shared_op *shared = shared_op_of(req);
	struct op_lease needs[OP_LEASES];
	unsigned n = lease_needs_of(req, needs), at = shared->nleases;
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
	shared_op_of(req)->lease_then = then;
	if (admit_rest(req))
		return true;
	op_watch_begin(req);
	return false;
}

bool lease_is_alone(const struct request *req)
{
	const struct shared_op *shared = shared_op_of((struct request *)req);

	return !shared->nleases || shared->leases[0].type == LEASE_EXCLUSIVE;
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
	PROBE(rmemfs, lease_go, req->unique, status);
	if (status)
		enter_withdraw(req);
	else
		note_leased(op_of(req));
	shared_op_of(req)->lease_then(req, status);
}

bool lease_take(struct request *req, struct inode *inode, enum lease_type type,
	void (*then)(struct request *req, int status))
{
	struct op_lease want = {.inode = inode_ref(inode), .type = (uint8_t)type};

	shared_op_of(req)->lease_then = then;
	return enter(req, &want, taken);
}

/* An answer that was overtaken is older than what is known here. Its lease and pin are taken only
 * if they can't have been given back. */
static void open_locked(struct inode *inode, struct io_thread *thread,
	const struct rpc_entry_reply *entry, uint64_t epoch, bool noted)
{
	struct inode_lease *l = inode->lease;
	const struct lease *lease = &entry->lease;
	bool newest = lease->number > inode->lease_number;

	inode->lease_number = max_u64(inode->lease_number, lease->number);
	l->unsure = noted || lease->number <= l->returned;
	if (l->unsure)
		return;
	l->pinned = true;
	if (!entry->created || !newest || l->state != LEASE_IDLE || lease->type == LEASE_NONE)
		return;
	l->passing = lease->passing;
	lease_set_type_locked(inode, thread, lease->type);
	inode_lease_locked(inode, &entry->attr, entry, epoch);
}

bool lease_take_opened(struct request *req, struct inode *inode,
	const struct rpc_entry_reply *entry, uint64_t epoch, uint64_t notes,
	void (*then)(struct request *req, int status))
{
	bool cuts = !entry->created && req->args.flags & O_TRUNC && inode_is_regular(inode);
	struct op_lease want = {
		.inode = inode_ref(inode),
		.pin = true,
		.hint = LEASE_OVERWRITE,
		.use = handle_may_store(req) ? USE_MAY_STORE : USE_PLAIN,
		.type = cuts ? LEASE_EXCLUSIVE : LEASE_NONE,
	};
	bool noted = lease_noted_since(inode->fs, notes, inode->ino);

	pthread_mutex_lock(&inode->lock);
	open_locked(inode, req->thread, entry, epoch, noted);
	pthread_mutex_unlock(&inode->lock);
	shared_op_of(req)->lease_then = then;
	return enter(req, &want, taken);
}

void lease_not_opened(
	struct inode *inode, struct io_thread *thread, const struct rpc_entry_reply *entry)
{
	struct inode_lease *l = inode->lease;

	pthread_mutex_lock(&inode->lock);
	inode->lease_number = max_u64(inode->lease_number, entry->lease.number);
	l->unsure = true;
	pthread_mutex_unlock(&inode->lock);
	lease_settle(inode, thread);
}
